// MemoryGroup: a limit on what a process that a test starts may take of the machine's memory, its page cache included.
// The limit is the kernel's (a control group, version 1 or 2) where this machine lets us make one, which needs root: a process that goes beyond
// it is killed. Elsewhere there is only the measuring of resident memory (PeakResidentBytes).
// Thread-safety: one thread at a time. Ownership: the group's folder is removed by the destructor, after its processes have ended.
#ifndef INTEGRATION_HARNESS_MEMORY_GROUP_H_
#define INTEGRATION_HARNESS_MEMORY_GROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deut::testing {

class MemoryGroup {
 public:
  // Null where no group can be made.
  static std::unique_ptr<MemoryGroup> Create(uint64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // Words before a program's path and arguments: it enters the group before it begins.
  std::vector<std::string> Prefix() const;
  // The most that its processes have had at once, page cache and kernel memory on their behalf included. 0 where the kernel does not tell.
  uint64_t PeakBytes() const;

 private:
  MemoryGroup(std::string folder, const char* peak) : folder_(std::move(folder)), peak_(peak) {}

  const std::string folder_;
  const char* const peak_;  // the file that tells
};

// The most that a running process has had resident; 0 if it has ended.
uint64_t PeakResidentBytes(pid_t process);

// Bytes of the files in a folder and those below it; and of these what is in the machine's page cache.
struct FilesInCache {
  uint64_t bytes = 0;
  uint64_t cached = 0;
};
FilesInCache LookAtFiles(const std::string& folder);

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_MEMORY_GROUP_H_
