#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace deut {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "FATAL %s:%d: invariant does not hold: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

void FailStop(std::string_view message) {
  std::fprintf(stderr, "FATAL fail-stop: %.*s\n", static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::_Exit(3);
}

}  // namespace deut
