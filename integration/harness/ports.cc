#include "integration/harness/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "common/base/check.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"

namespace deut::testing {
namespace {

bool IsFree(uint16_t port) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(socket_fd);
  return free;
}

}  // namespace

uint16_t FreePort() {
  static Random random(RealRuntime().RandomSeed());
  static std::set<uint16_t> given;
  for (int i = 0; i < 10000; ++i) {
    const auto port = static_cast<uint16_t>(random.Between(20000, 31999));
    if (IsFree(port) && given.insert(port).second) return port;
  }
  DEUT_CHECK(false);
}

}  // namespace deut::testing
