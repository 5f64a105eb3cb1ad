// LogFromRpc: writes gRPC's own messages as lines of our log. A daemon installs it with gpr_set_log_function. gRPC
// passes only errors, unless the environment variable GRPC_VERBOSITY asks for more.
// Peers can cause many of these messages at any rate. Refused TLS handshakes have a LimitedLog of their own, which
// names the peer. All other messages share one line every kRpcLogEvery, so a flood of one kind does not fill the disk.
// Thread-safety: any thread; gRPC calls it from its own.
#ifndef PROTOCOL_RPC_RPC_LOG_H_
#define PROTOCOL_RPC_RPC_LOG_H_

#include <cstddef>

#include "common/runtime/time.h"
#include "grpc/support/log.h"

namespace deut {

constexpr Duration kRpcLogEvery = milliseconds(100);
// A longer message is cut off.
constexpr size_t kMaxRpcMessageBytes = 1000;

void LogFromRpc(gpr_log_func_args* args);

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_LOG_H_
