#include "common/io/shortage.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <system_error>

#include "common/observe/log.h"
#include "common/observe/log_pace.h"

namespace deut {
namespace {

constexpr Duration kFirstPause = milliseconds(1);
constexpr Duration kLongestPause = milliseconds(64);
constexpr Duration kLogEvery = seconds(1);

std::atomic<uint64_t> shortages{0};

}  // namespace

void RecordShortage(Runtime& runtime, std::string_view operation, std::string_view path, int error) {
  shortages.fetch_add(1, std::memory_order_relaxed);
  static LogPace pace(kLogEvery);
  const std::optional<uint64_t> unlogged = pace.Event(runtime.Now());
  if (!unlogged) return;
  LogWarning(
      operation, " ", path, ": ", std::generic_category().message(error), "; retrying (", *unlogged,
      " more such failures since the last such line). Raise the limit of open files (ulimit -n, LimitNOFILE=), or "
      "lower --max_connections; if memory is short, give the process more (MemoryMax=)");
}

bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == EAGAIN;
}

int RetryShortage(Runtime& runtime, std::string_view operation, std::string_view path,
                  const std::function<int()>& attempt) {
  const MonotonicTime give_up = runtime.Now() + kShortagePatience;
  for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const int descriptor = attempt();
    if (descriptor >= 0) return descriptor;
    const int error = errno;
    if (!IsShortage(error)) return descriptor;
    RecordShortage(runtime, operation, path, error);
    if (runtime.Now() + pause > give_up) {
      errno = error;
      return descriptor;
    }
    runtime.SleepUntil(runtime.Now() + pause);
  }
}

uint64_t ShortageCount() { return shortages.load(std::memory_order_relaxed); }

}  // namespace deut
