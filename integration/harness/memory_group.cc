#include "integration/harness/memory_group.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/base/concat.h"

namespace deut::testing {
namespace {

// The place of control groups, and the names of their files.
struct Version {
  const char* root;
  const char* limit;
  const char* peak;
};
constexpr Version kVersions[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
    {"/sys/fs/cgroup", "memory.max", "memory.peak"},
};

bool WriteTo(const std::string& path, uint64_t value) {
  std::ofstream file(path);
  file << value << std::flush;
  return file.good();
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::unique_ptr<MemoryGroup> MemoryGroup::Create(uint64_t limit_bytes) {
  for (const Version& version : kVersions) {
    const std::string folder = Concat(version.root, "/deut-test-", getpid());
    if (mkdir(folder.c_str(), 0755) != 0) continue;
    std::unique_ptr<MemoryGroup> group(new MemoryGroup(folder, version.peak));
    // A folder outside of a tree of groups has no such file.
    if (access(Concat(folder, "/", version.limit).c_str(), W_OK) == 0 &&
        WriteTo(Concat(folder, "/", version.limit), limit_bytes)) {
      return group;
    }
  }
  return nullptr;
}

MemoryGroup::~MemoryGroup() { (void)rmdir(folder_.c_str()); }

std::vector<std::string> MemoryGroup::Prefix() const {
  return {"/bin/sh", "-c", Concat("echo $$ > ", folder_, "/cgroup.procs && exec \"$@\""), "sh"};
}

uint64_t MemoryGroup::PeakBytes() const {
  return std::strtoull(ReadAll(Concat(folder_, "/", peak_)).c_str(), nullptr, 10);
}

uint64_t PeakResidentBytes(pid_t process) {
  constexpr std::string_view kField = "VmHWM:";
  const std::string status = ReadAll(Concat("/proc/", process, "/status"));
  const size_t at = status.find(kField);
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + kField.size(), nullptr, 10) << 10;
}

FilesInCache LookAtFiles(const std::string& folder) {
  FilesInCache sum;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::error_code ignored;  // files may appear and disappear meanwhile
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    if (!entry.is_regular_file(ignored)) continue;
    const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    struct stat found{};
    const uint64_t bytes = fstat(file, &found) == 0 ? static_cast<uint64_t>(found.st_size) : 0;
    void* const mapped = bytes == 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) continue;
    std::vector<unsigned char> resident((bytes + page - 1) / page);
    if (mincore(mapped, bytes, resident.data()) == 0) {
      sum.bytes += bytes;
      sum.cached += page * static_cast<uint64_t>(std::count_if(resident.begin(), resident.end(),
                                                               [](unsigned char in) { return in & 1; }));
    }
    munmap(mapped, bytes);
  }
  return sum;
}

}  // namespace deut::testing
