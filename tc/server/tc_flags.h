// The options of a TC by their flag names, for tcd and for programs that embed a TC.
#ifndef TC_SERVER_TC_FLAGS_H_
#define TC_SERVER_TC_FLAGS_H_

#include "common/config/flags.h"
#include "tc/server/transaction_component_options.h"

namespace deut::tc {

// Binds everything but the data directory (options->log.directory), which every program names in its own way.
void AddTcFlags(FlagSet* flags, TransactionComponentOptions* options);

}  // namespace deut::tc

#endif  // TC_SERVER_TC_FLAGS_H_
