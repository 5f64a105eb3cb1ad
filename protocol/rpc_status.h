// Between gRPC's status of a call or stream and ours. Ours of single items travel inside messages (types.proto); what stands here is the
// end of a whole call: connections that break, peers that are refused, messages that are too large.
// Thread-safety: pure functions.
#ifndef PROTOCOL_RPC_STATUS_H_
#define PROTOCOL_RPC_STATUS_H_

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpc/support/time.h"
#include "grpcpp/support/status.h"

namespace deut {

// For the end of a call by the server. Codes that gRPC has no word for become FAILED_PRECONDITION.
// Trailing metadata of a stream that its server has ended without having run anything since its last answer.
inline constexpr char kNothingRunKey[] = "deut-nothing-run";

grpc::Status ToRpcStatus(const Status& status);

// What a call that ended like this means to its caller; `peer` says with whom, for the message. OK stays OK.
Status FromRpcStatus(const grpc::Status& status, std::string_view peer);

// The same moment on gRPC's clock.
gpr_timespec ToRpcTime(Runtime& runtime, Deadline deadline);
Deadline FromRpcTime(Runtime& runtime, gpr_timespec deadline);

}  // namespace deut

#endif  // PROTOCOL_RPC_STATUS_H_
