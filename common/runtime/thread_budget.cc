#include "common/runtime/thread_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/control_groups.h"

namespace deut {
namespace {

void Lower(ThreadLimit* limit, uint64_t threads, std::string name) {
  if (threads >= limit->threads) return;
  limit->threads = threads;
  limit->name = std::move(name);
}

}  // namespace

ThreadLimit ReadThreadLimit(const std::string& root, uid_t user) {
  ThreadLimit limit;
  rlimit processes{};
  if (user != 0 && getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur != RLIM_INFINITY) {
    Lower(&limit, processes.rlim_cur, Concat("the user's limit of processes, ", processes.rlim_cur, " (ulimit -u)"));
  }
  VisitControlGroups(root, "pids", [&](ControlGroupVersion /*version*/, const std::string& folder) {
    const std::optional<uint64_t> most = ReadControlGroupNumber(folder + "/pids.max");
    if (!most.has_value()) return;
    const uint64_t now = ReadControlGroupNumber(folder + "/pids.current").value_or(0);
    Lower(&limit, *most - std::min(*most, now),
          Concat("the control group's pids.max of ", *most, " (", folder, ", with ", now, " at present)"));
  });
  return limit;
}

Result<ThreadBudget> PlanThreads(const ThreadLimit& limit, int wanted, int min_threads) {
  const uint64_t fit = limit.threads - std::min(limit.threads, kThreadReserve);
  if (fit < static_cast<uint64_t>(min_threads)) {
    return DEUT_ERROR(kInvalidArgument, "at least ", kThreadReserve + static_cast<uint64_t>(min_threads),
                      " threads are needed (", min_threads, " for requests, ", kThreadReserve, " in reserve), and ",
                      limit.name, " leaves ", limit.threads,
                      "; raise it (TasksMax= and LimitNPROC= in a systemd unit, --pids-limit of a container)");
  }
  if (fit >= static_cast<uint64_t>(wanted)) return ThreadBudget{.requests = wanted, .lowered_by = {}};
  return ThreadBudget{.requests = static_cast<int>(fit), .lowered_by = limit.name};
}

}  // namespace deut
