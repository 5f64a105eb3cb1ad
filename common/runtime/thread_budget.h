// ThreadBudget: the number of threads that the system lets this process have, and the part of them that may serve requests of peers. A process that
// runs out of threads in the middle of its work can only wait for them, so the part for requests is fixed at the start.
// Thread-safety: pure functions; ReadThreadLimit reads the system's files.
#ifndef COMMON_RUNTIME_THREAD_BUDGET_H_
#define COMMON_RUNTIME_THREAD_BUDGET_H_

#include <unistd.h>

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace deut {

struct ThreadLimit {
  uint64_t threads = UINT64_MAX;  // the number that may be started from now on
  std::string name;               // the setting that limits them, with its figures; empty: nothing does
};

// Returns the lowest of RLIMIT_NPROC, which does not bind root, and pids.max of this process's control group and of the groups above it (version 1
// or 2). A file that cannot be read counts as no limit. RLIMIT_NPROC counts the threads of all processes of the user; those that run already are not
// known here, so they are not subtracted. Tests pass another `root` for /proc and /sys, and another user.
ThreadLimit ReadThreadLimit(const std::string& root = {}, uid_t user = geteuid());

struct ThreadBudget {
  int requests = 0;
  std::string lowered_by;  // the limit's name, if fewer threads than wanted fit
};

// Threads that a process needs beside those for requests: its own, gRPC's, and kernel threads that count as the process's.
constexpr uint64_t kThreadReserve = 64;

// Returns how many of `wanted` threads for requests fit. INVALID_ARGUMENT if fewer than `min_threads` fit; the message states the need, the limit and
// the settings to change.
Result<ThreadBudget> PlanThreads(const ThreadLimit& limit, int wanted, int min_threads);

}  // namespace deut

#endif  // COMMON_RUNTIME_THREAD_BUDGET_H_
