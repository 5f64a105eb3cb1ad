// RecordedLog: while it lives what is logged goes to it, and not to stderr. For tests.
// Thread-safety: all methods from any thread; one at a time, as the sink is the process's.
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
  // All lines, each with its end.
  std::string text() const {
    const MutexLock lock(mutex_);
    return text_;
  }
  // How often it occurs in them.
  size_t Count(std::string_view piece) const {
    const std::string all = text();
    size_t count = 0;
    for (size_t at = all.find(piece); at != std::string::npos; at = all.find(piece, at + 1)) ++count;
    return count;
  }
  // The errors since the last call.
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
