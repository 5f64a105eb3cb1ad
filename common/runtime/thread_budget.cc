#include "common/runtime/thread_budget.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "common/base/concat.h"

namespace deut {
namespace {

// Nothing: there is no such file, or it holds no number ("max").
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? std::optional<uint64_t>(number) : std::nullopt;
}

// Of the group at `path` below `mount` and of all above it.
std::optional<uint64_t> LeastLeft(const std::string& mount, std::string path) {
  std::optional<uint64_t> least;
  for (;;) {
    const std::string folder = Concat(mount, path);
    const std::optional<uint64_t> limit = NumberIn(folder + "/pids.max"), current = NumberIn(folder + "/pids.current");
    if (limit && current) {
      const uint64_t left = *limit > *current ? *limit - *current : 0;
      least = std::min(least.value_or(left), left);
    }
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

}  // namespace

std::optional<uint64_t> ThreadsLeft(const std::string& root) {
  std::optional<uint64_t> least;
  std::ifstream groups(root + "proc/self/cgroup");
  // NUMBER:CONTROLLERS:PATH; of version 2, "0::PATH".
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "pids") continue;
    const std::string mount = Concat(root, "sys/fs/cgroup", controllers.empty() ? "" : "/pids");
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    if (const std::optional<uint64_t> left = LeastLeft(mount, path)) least = std::min(least.value_or(*left), *left);
  }
  return least;
}

Result<int> PlanRequestThreads(std::optional<uint64_t> left, int wanted) {
  if (!left) return wanted;
  constexpr uint64_t kNeeded = kThreadsBesideRequests + kLeastRequestThreads;
  if (*left < kNeeded) {
    return DEUT_ERROR(kInvalidArgument, "at least ", kNeeded, " threads are needed (", kLeastRequestThreads,
                      " for requests, ", kThreadsBesideRequests, " for all else), and the control group leaves ", *left,
                      "; raise its limit (pids.max, TasksMax= in a systemd unit)");
  }
  return static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(wanted), *left - kThreadsBesideRequests));
}

}  // namespace deut
