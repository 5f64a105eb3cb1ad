#include "protocol/rpc_polling.h"

#include <cstdlib>

namespace deut {

void PollByStream() { (void)setenv("GRPC_POLL_STRATEGY", "poll", /*overwrite=*/0); }

}  // namespace deut
