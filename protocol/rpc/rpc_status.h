// Conversions between the gRPC status of a whole call or stream and our Status. The status of a single item travels
// inside messages (types.proto). The end of a whole call reports a broken connection, a refused peer or a message that
// is too large.
// Thread-safety: pure functions.
#ifndef PROTOCOL_RPC_RPC_STATUS_H_
#define PROTOCOL_RPC_RPC_STATUS_H_

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpc/support/time.h"
#include "grpcpp/support/status.h"

namespace deut {

// Key of the trailing metadata with which a server says that it has run nothing on the stream since its last answer.
inline constexpr char kNothingRunKey[] = "deut-nothing-run";

// For a server that ends a call. Codes that gRPC does not have become FAILED_PRECONDITION.
grpc::Status ToRpcStatus(const Status& status);

// Returns the status that the end of a call means to its caller. `peer` names the other side in the message. OK stays
// OK.
Status FromRpcStatus(const grpc::Status& status, std::string_view peer);

// Convert a moment between our clock and gRPC's clock.
gpr_timespec ToRpcTime(Runtime& runtime, Deadline deadline);
Deadline FromRpcTime(Runtime& runtime, gpr_timespec deadline);

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_STATUS_H_
