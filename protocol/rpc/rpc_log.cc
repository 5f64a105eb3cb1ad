#include "protocol/rpc/rpc_log.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/observe/limited_log.h"
#include "common/observe/log.h"
#include "common/observe/log_pace.h"
#include "common/runtime/runtime.h"
#include "protocol/connections/peer_addresses.h"

namespace deut {
namespace {

// Messages without any use for an operator.
constexpr std::string_view kIgnored[] = {
    // RpcServer::Start returns an error that also gives the reason.
    "No address added out of total",
    // A client names the host name that it expects of the server. gRPC looks for a server certificate with that host
    // name. It finds that the only one has none (it may carry the name elsewhere), and uses it all the same. Nothing is
    // wrong: both sides recognize each other by their allow-lists. The line would come once for every connection of a
    // well-behaved client, and would crowd out others.
    "No match found for server name",
};

bool IsIgnored(std::string_view message) {
  return std::ranges::any_of(kIgnored, [&](std::string_view text) { return message.find(text) != message.npos; });
}

}  // namespace

void LogFromRpc(gpr_log_func_args* args) {
  const std::string_view message = args->message;
  if (IsIgnored(message)) return;
  if (message.find("Handshake failed") != std::string_view::npos) {
    static LimitedLog& handshakes = *new LimitedLog(RealRuntime());
    const std::string peer = TakeLastHandshake();
    return handshakes.Warn([&] {
      return Concat("a TLS handshake was refused", peer.empty() ? "" : ", of a peer at ", peer, ": ",
                    message.substr(0, kMaxRpcMessageBytes));
    });
  }
  static LogPace pace(kRpcLogEvery);
  const std::optional<uint64_t> unlogged = pace.Event(RealRuntime().Now());
  if (!unlogged) return;
  std::string_view file = args->file;
  file.remove_prefix(file.find_last_of('/') + 1);
  LogLine(args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo,
          Concat("gRPC: ", message.substr(0, kMaxRpcMessageBytes), " (", file, ":", args->line, ")",
                 *unlogged == 0 ? "" : Concat("; ", *unlogged, " more messages of gRPC were not logged")));
}

}  // namespace deut
