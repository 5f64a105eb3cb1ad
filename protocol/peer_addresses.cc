#include "protocol/peer_addresses.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/concat.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"

namespace deut {
namespace {

constexpr size_t kMostTold = 3;
constexpr intptr_t kPage = 500;

// Takes over what gRPC has allocated.
std::string Take(char* text) {
  if (text == nullptr) return std::string();
  std::string taken(text);
  gpr_free(text);
  return taken;
}

// The values of all members of that name whose values are texts without escapes, in order: ids, names and certificates are.
std::vector<std::string> ValuesOf(std::string_view json, std::string_view name) {
  const std::string begin = Concat("\"", name, "\":\"");
  std::vector<std::string> values;
  for (size_t at = json.find(begin); at != std::string_view::npos; at = json.find(begin, at)) {
    at += begin.size();
    values.emplace_back(json.substr(at, json.find('"', at) - at));
  }
  return values;
}

}  // namespace

std::string PeerAddresses(std::string_view certificate_pem) {
  const std::string certificate = absl::Base64Escape(absl::string_view(certificate_pem.data(), certificate_pem.size()));
  std::string told;
  size_t found = 0, looked = 0;
  for (const std::string& server : ValuesOf(Take(grpc_channelz_get_servers(0)), "serverId")) {
    const intptr_t id = std::atol(server.c_str());
    for (intptr_t from = 0; looked < kMostConnections && found < kMostTold;) {
      const std::string page = Take(grpc_channelz_get_server_sockets(id, from, kPage));
      const std::vector<std::string> sockets = ValuesOf(page, "socketId"), names = ValuesOf(page, "name");
      if (sockets.empty() || sockets.size() != names.size()) break;
      for (size_t i = 0; i < sockets.size() && found < kMostTold; ++i, ++looked) {
        const intptr_t socket = std::atol(sockets[i].c_str());
        from = socket + 1;
        const std::string about = Take(grpc_channelz_get_socket(socket));
        const std::vector<std::string> shown = ValuesOf(about, "remote_certificate");
        if (shown.empty() || shown.front() != certificate) continue;
        // "TRANSPORT ADDRESS".
        ConcatTo(&told, told.empty() ? "" : ", ", std::string_view(names[i]).substr(names[i].find(' ') + 1));
        ++found;
      }
    }
  }
  return told.empty() ? "an unknown address" : told;
}

}  // namespace deut
