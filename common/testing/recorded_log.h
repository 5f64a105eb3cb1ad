// RecordedLog: while it lives, log lines go to it, and not to stderr. For tests.
// Thread-safety: all methods from any thread; only one object at a time, because the process has one sink.
#ifndef COMMON_TESTING_RECORDED_LOG_H_
#define COMMON_TESTING_RECORDED_LOG_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut::testing {

class RecordedLog final : public LogSink {
 public:
  RecordedLog() : before_(SetLogSink(this)) {}
  ~RecordedLog() override { SetLogSink(before_); }
  RecordedLog(const RecordedLog&) = delete;
  RecordedLog& operator=(const RecordedLog&) = delete;

  void Write(LogLevel level, std::string_view text) override {
    const MutexLock lock(mutex_);
    if (level == LogLevel::kError) errors_.emplace_back(text);
    text_.append(text).append("\n");
  }
  // Returns all lines, each with its line break.
  std::string text() const {
    const MutexLock lock(mutex_);
    return text_;
  }
  // Number of times that `piece` occurs in the lines.
  size_t Count(std::string_view piece) const {
    const std::string all = text();
    size_t count = 0;
    for (size_t at = all.find(piece); at != std::string::npos; at = all.find(piece, at + 1)) ++count;
    return count;
  }
  // Returns the errors since the last call.
  std::vector<std::string> TakeErrors() {
    const MutexLock lock(mutex_);
    return std::exchange(errors_, {});
  }

 private:
  LogSink* const before_;
  mutable Mutex mutex_{RealRuntime()};
  std::string text_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::string> errors_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_RECORDED_LOG_H_
