// LimitedLog: at most kMaxLinesPerPeriod lines within kPeriod, for warnings that others can cause at any rate. The first line
// after a pause reports the number of lines left out.
// Time is the Runtime's, so that a simulated runtime decides which lines are due. No given library does that.
// Thread-safety: any thread (a mutex; cold).
#ifndef COMMON_OBSERVE_LIMITED_LOG_H_
#define COMMON_OBSERVE_LIMITED_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

class LimitedLog {
 public:
  static constexpr int kMaxLinesPerPeriod = 10;
  static constexpr Duration kPeriod = seconds(10);

  explicit LimitedLog(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  // `text()` is called only if a line is due. It may be slow: other threads do not wait for it.
  template <typename Text>
  void Warn(const Text& text) {
    const std::optional<uint64_t> unlogged = Event();
    if (unlogged)
      LogWarning(text(), *unlogged != 0 ? Concat(" (", *unlogged, " such lines were left out before)") : "");
  }

 private:
  // Returns the number of lines not logged before, if a line is due; else no value.
  std::optional<uint64_t> Event() {
    const MutexLock lock(mutex_);
    const MonotonicTime now = runtime_.Now();
    if (now >= period_end_) {
      period_end_ = now + kPeriod;
      lines_ = 0;
    }
    if (lines_ == kMaxLinesPerPeriod) {
      ++unlogged_lines_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(unlogged_lines_, 0);
  }

  Runtime& runtime_;
  Mutex mutex_;
  MonotonicTime period_end_ DEUT_GUARDED_BY(mutex_){};
  int lines_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t unlogged_lines_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut

#endif  // COMMON_OBSERVE_LIMITED_LOG_H_
