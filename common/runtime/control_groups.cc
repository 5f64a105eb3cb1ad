#include "common/runtime/control_groups.h"

#include <algorithm>
#include <fstream>

#include "common/base/concat.h"

namespace deut {
namespace {

using Visit = std::function<void(ControlGroupVersion version, const std::string& folder)>;

// In a container the path may be the one outside the container, which does not exist there. The container's own group is
// then at the top, `mount` itself.
void VisitUpwards(ControlGroupVersion version, const std::string& mount, std::string path, const Visit& visit) {
  for (;;) {
    visit(version, Concat(mount, path == "/" ? "" : path));
    if (path.empty() || path == "/") return;
    path.resize(path.rfind('/'));
  }
}

// Whether `name` is in a list that commas separate.
bool Has(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

void VisitControlGroups(const std::string& root, std::string_view controller, const Visit& visit) {
  // Each line has a number, the controllers and the path of the group. In version 2 the number is 0, and no controllers
  // are named.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    const std::string mount = root + "/sys/fs/cgroup";
    if (controllers.empty()) VisitUpwards(ControlGroupVersion::k2, mount, path, visit);
    if (Has(controllers, controller))
      VisitUpwards(ControlGroupVersion::k1, Concat(mount, "/", controller), path, visit);
  }
}

std::optional<uint64_t> ReadControlGroupNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

}  // namespace deut
