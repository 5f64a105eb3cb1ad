// LimitedLog: warnings that others can cause as often as they like: at most kMost lines within kPeriod. The first line after a pause says how many
// were left out.
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
  static constexpr int kMost = 10;
  static constexpr Duration kPeriod = seconds(10);

  explicit LimitedLog(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  // `text()` is made only if there is to be a line. It may take its time: other threads do not wait for it.
  template <typename Text>
  void Warn(const Text& text) {
    const std::optional<uint64_t> left_out = Event();
    if (left_out)
      LogWarning(text(), *left_out != 0 ? Concat(" (", *left_out, " such lines were left out before)") : "");
  }

 private:
  // Whether there is to be a line, and how many were left out before it.
  std::optional<uint64_t> Event() {
    const MutexLock lock(mutex_);
    const MonotonicTime now = runtime_.Now();
    if (now >= period_end_) {
      period_end_ = now + kPeriod;
      lines_ = 0;
    }
    if (lines_ == kMost) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }

  Runtime& runtime_;
  Mutex mutex_;
  MonotonicTime period_end_ DEUT_GUARDED_BY(mutex_){};
  int lines_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut

#endif  // COMMON_OBSERVE_LIMITED_LOG_H_
