// EpisodeLog: log lines about a condition that comes and goes, such as a full disk. It logs one line when the
// condition begins, one a minute while it lasts, and one when it has ended. A condition that flaps leaves at most one
// pair of lines every `pause`; the next first line then counts the episodes that were not logged.
// Begin and End report the present state and may be called at any rate; they make the text only when a line is due.
// Time is the Runtime's, so that a simulated runtime decides which lines are due. No given library does that.
// Thread-safety: any thread; calls are short and cold (a mutex).
#ifndef COMMON_OBSERVE_EPISODE_LOG_H_
#define COMMON_OBSERVE_EPISODE_LOG_H_

#include <cstdint>
#include <string>

#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

class EpisodeLog {
 public:
  static constexpr Duration kPause = seconds(10);
  static constexpr Duration kReminder = seconds(60);

  explicit EpisodeLog(Runtime& runtime, Duration pause = kPause) : runtime_(runtime), pause_(pause), mutex_(runtime) {}

  // The condition holds. `text()` makes the line.
  template <typename Text>
  void Begin(const Text& text) {
    const MutexLock lock(mutex_);
    const MonotonicTime now = runtime_.Now();
    if (!holds_) {
      holds_ = true;
      began_ = now;
      ++unlogged_episodes_;
    }
    if (!logged_ && (!ever_logged_ || now >= last_line_ + pause_)) {
      LogWarning(text(),
                 unlogged_episodes_ > 1 ? Concat(" (", unlogged_episodes_, " times since the last such line)") : "");
      logged_ = ever_logged_ = true;
      unlogged_episodes_ = 0;
      last_line_ = now;
    } else if (logged_ && now >= last_line_ + kReminder) {
      LogWarning(text(), " (for ", duration_cast<seconds>(now - began_).count(), " s)");
      last_line_ = now;
    }
  }

  // The condition does not hold. `text()` makes the line; its duration is added.
  template <typename Text>
  void End(const Text& text) {
    const MutexLock lock(mutex_);
    if (!holds_) return;
    holds_ = false;
    if (!logged_) return;
    logged_ = false;
    last_line_ = runtime_.Now();
    LogInfo(text(), ", after ", duration_cast<milliseconds>(last_line_ - began_).count(), " ms");
  }

 private:
  Runtime& runtime_;
  const Duration pause_;
  Mutex mutex_;
  bool holds_ DEUT_GUARDED_BY(mutex_) = false;
  bool logged_ DEUT_GUARDED_BY(mutex_) = false;  // the present episode has been logged
  bool ever_logged_ DEUT_GUARDED_BY(mutex_) = false;
  uint64_t unlogged_episodes_ DEUT_GUARDED_BY(mutex_) = 0;
  MonotonicTime began_ DEUT_GUARDED_BY(mutex_);
  MonotonicTime last_line_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut

#endif  // COMMON_OBSERVE_EPISODE_LOG_H_
