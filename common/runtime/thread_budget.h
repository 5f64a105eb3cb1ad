// ThreadBudget: how many threads the system lets this process have, and how many of them are for the requests of peers. A process whose threads run
// out in the middle of its work can only wait for them, so the share of requests is fixed at the start.
// Thread-safety: pure functions; ReadThreadLimit reads the system's files.
#ifndef COMMON_RUNTIME_THREAD_BUDGET_H_
#define COMMON_RUNTIME_THREAD_BUDGET_H_

#include <unistd.h>

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace deut {

struct ThreadLimit {
  uint64_t threads = UINT64_MAX;  // that may be started from now on
  std::string name;               // what limits them, with its figures; empty: nothing does
};

// The lowest of RLIMIT_NPROC, which does not bind root, and pids.max of this process's control group and of those above it (version 1 or 2). What
// cannot be read counts as no limit. RLIMIT_NPROC counts the threads of all processes of the user, of which those that run are not known here. Tests
// give another `root` for /proc and /sys, and another user.
ThreadLimit ReadThreadLimit(const std::string& root = {}, uid_t user = geteuid());

struct ThreadBudget {
  int requests = 0;
  std::string lowered_by;  // the limit's name, if there are fewer than wanted
};

// A process needs this many for what is no request: its own, gRPC's, and those of the kernel that count as its.
constexpr uint64_t kThreadReserve = 64;

// How many of `wanted` threads for requests fit. INVALID_ARGUMENT says what is needed, what there is, and what to change, if fewer than `least` do.
Result<ThreadBudget> PlanThreads(const ThreadLimit& limit, int wanted, int least);

}  // namespace deut

#endif  // COMMON_RUNTIME_THREAD_BUDGET_H_
