#include "common/runtime/memory_limit.h"

#include <fstream>
#include <optional>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/control_groups.h"

namespace deut {
namespace {

void Lower(MemoryLimit* limit, uint64_t bytes, std::string name) {
  if (bytes >= limit->bytes) return;
  limit->bytes = bytes;
  limit->name = std::move(name);
}

// The first line of /proc/meminfo is "MemTotal:", a number, "kB".
std::optional<uint64_t> ReadMachineBytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string word;
  uint64_t kibibytes = 0;
  if (file >> word >> kibibytes && word == "MemTotal:") return kibibytes << 10;
  return std::nullopt;
}

}  // namespace

MemoryLimit ReadMemoryLimit(const std::string& root) {
  MemoryLimit limit;
  if (const std::optional<uint64_t> machine = ReadMachineBytes(root)) Lower(&limit, *machine, "the machine's memory");
  VisitControlGroups(root, "memory", [&](ControlGroupVersion version, const std::string& folder) {
    const char* const name = version == ControlGroupVersion::k2 ? "memory.max" : "memory.limit_in_bytes";
    if (const std::optional<uint64_t> bytes = ReadControlGroupNumber(Concat(folder, "/", name))) {
      Lower(&limit, *bytes, Concat("the control group's ", name, " (", folder, ")"));
    }
  });
  return limit;
}

}  // namespace deut
