// ThreadBudget: how many threads the control groups of this process leave it (pids.max; TasksMax= in a systemd unit), and how many of them may work
// for peers. A process that counts on more than it gets serves nobody once all that it has are waiting for one peer.
// Thread-safety: pure functions of what the kernel says at the moment.
#ifndef COMMON_RUNTIME_THREAD_BUDGET_H_
#define COMMON_RUNTIME_THREAD_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"

namespace deut {

// A process has about this many threads at the most for everything but its peers' requests.
constexpr uint64_t kThreadsBesideRequests = 64;
constexpr int kLeastRequestThreads = 16;

// The least that the process's control group, of either version, or one above it leaves of its limit. Nothing: none of them has a limit, or none
// can be read. `root`: where proc and sys/fs/cgroup are, with a slash at the end; for tests.
std::optional<uint64_t> ThreadsLeft(const std::string& root = "/");

// At most `wanted`. INVALID_ARGUMENT says what is needed, what there is, and what to change.
Result<int> PlanRequestThreads(std::optional<uint64_t> left, int wanted);

}  // namespace deut

#endif  // COMMON_RUNTIME_THREAD_BUDGET_H_
