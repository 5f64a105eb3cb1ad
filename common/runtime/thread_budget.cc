#include "common/runtime/thread_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/concat.h"

namespace deut {
namespace {

// Returns nothing if the file holds no number, as "max", or cannot be read.
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

void Lower(ThreadLimit* limit, uint64_t threads, std::string name) {
  if (threads >= limit->threads) return;
  limit->threads = threads;
  limit->name = std::move(name);
}

// Applies pids.max of the group at `path` below the folder `mount`, and of all groups above it. In a container the path may be the one outside the
// container, which does not exist there. The container's own group is then at the top.
void LowerByGroups(const std::string& mount, std::string path, ThreadLimit* limit) {
  for (;;) {
    const std::string folder = Concat(mount, path == "/" ? "" : path);
    const std::optional<uint64_t> most = ReadNumber(folder + "/pids.max");
    if (most.has_value()) {
      const uint64_t now = ReadNumber(folder + "/pids.current").value_or(0);
      Lower(limit, *most - std::min(*most, now),
            Concat("the control group's pids.max of ", *most, " (", folder, ", with ", now, " at present)"));
    }
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

ThreadLimit ReadThreadLimit(const std::string& root, uid_t user) {
  ThreadLimit limit;
  rlimit processes{};
  if (user != 0 && getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur != RLIM_INFINITY) {
    Lower(&limit, processes.rlim_cur, Concat("the user's limit of processes, ", processes.rlim_cur, " (ulimit -u)"));
  }
  // Each line has a number, the controllers and the path of the group. In version 2 the number is 0, and no controllers are named.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (controllers.empty()) LowerByGroups(root + "/sys/fs/cgroup", path, &limit);
    if (Has(controllers, "pids")) LowerByGroups(root + "/sys/fs/cgroup/pids", path, &limit);
  }
  return limit;
}

Result<ThreadBudget> PlanThreads(const ThreadLimit& limit, int wanted, int least) {
  const uint64_t fit = limit.threads - std::min(limit.threads, kThreadReserve);
  if (fit < static_cast<uint64_t>(least)) {
    return DEUT_ERROR(kInvalidArgument, "at least ", kThreadReserve + static_cast<uint64_t>(least),
                      " threads are needed (", least, " for requests, ", kThreadReserve, " in reserve), and ",
                      limit.name, " leaves ", limit.threads,
                      "; raise it (TasksMax= and LimitNPROC= in a systemd unit, --pids-limit of a container)");
  }
  if (fit >= static_cast<uint64_t>(wanted)) return ThreadBudget{.requests = wanted, .lowered_by = {}};
  return ThreadBudget{.requests = static_cast<int>(fit), .lowered_by = limit.name};
}

}  // namespace deut
