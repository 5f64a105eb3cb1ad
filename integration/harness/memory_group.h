// MemoryGroup: a limit on the machine's memory that a process of a test may use, including its page cache. Where this
// machine allows a control group (version 1 or 2), which needs root, the kernel enforces the limit and kills a
// process that exceeds it. Elsewhere resident memory can only be measured (PeakResidentBytes).
// Thread-safety: one thread at a time. Ownership: the destructor removes the group's folder; its processes must have
// ended before.
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
  // Returns null where no group can be made.
  static std::unique_ptr<MemoryGroup> Create(uint64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // Returns words to put before a program's path and arguments. The program enters the group before it begins.
  std::vector<std::string> Prefix() const;
  // Returns the peak of the memory of its processes, including page cache and kernel memory on their behalf. 0 where
  // the kernel does not report it.
  uint64_t PeakBytes() const;

 private:
  MemoryGroup(std::string folder, const char* peak) : folder_(std::move(folder)), peak_(peak) {}

  const std::string folder_;
  const char* const peak_;  // the file that contains the peak
};

// Returns the peak of a running process's resident memory; 0 if it has ended.
uint64_t PeakResidentBytes(pid_t process);

// Bytes of the files in a folder and below it, and how many of them are in the machine's page cache.
struct FilesInCache {
  uint64_t bytes = 0;
  uint64_t cached = 0;
};
FilesInCache LookAtFiles(const std::string& folder);

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_MEMORY_GROUP_H_
