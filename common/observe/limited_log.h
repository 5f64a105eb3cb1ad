// LimitedLog: at most kMost lines within kPeriod, for warnings that others can cause at any rate. The first line
// after a pause reports the number of lines left out.
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

  // `text()` is called only if a line is due. It may be slow: other threads do not wait for it.
  template <typename Text>
  void Warn(const Text& text) {
    const std::optional<uint64_t> left_out = Event();
    if (left_out)
      LogWarning(text(), *left_out != 0 ? Concat(" (", *left_out, " such lines were left out before)") : "");
  }

 private:
  // Returns the number of lines left out before, if a line is due; else no value.
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
