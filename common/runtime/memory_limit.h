// MemoryLimit: the memory that this process may use at most: that of the machine, or the limit of a control group.
// Thread-safety: reads files of the system only. Errors: a file that cannot be read counts as no limit.
#ifndef COMMON_RUNTIME_MEMORY_LIMIT_H_
#define COMMON_RUNTIME_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace deut {

struct MemoryLimit {
  uint64_t bytes = UINT64_MAX;
  std::string name;  // what limits it, such as the control group's folder; empty: nothing is known
};

// Returns the lowest of the machine's memory and the limits of this process's control group and of the groups above it.
// Tests pass another `root` for /proc and /sys.
MemoryLimit ReadMemoryLimit(const std::string& root = {});

}  // namespace deut

#endif  // COMMON_RUNTIME_MEMORY_LIMIT_H_
