// RecordedLog: while it lives, log lines go to it, and not to stderr. For tests.
// Thread-safety: all methods from any thread; only one object at a time, because the process has one sink.
#ifndef COMMON_TESTING_RECORDED_LOG_H_
#define COMMON_TESTING_RECORDED_LOG_H_

#include <algorithm>
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
    lines_.emplace_back(text);
  }
  std::vector<std::string> lines() const {
    const MutexLock lock(mutex_);
    return lines_;
  }
  // Returns all lines, each with its line break.
  std::string text() const {
    std::string all;
    for (const std::string& line : lines()) all.append(line).append("\n");
    return all;
  }
  // True if one line contains both texts.
  bool HasLineWith(std::string_view first, std::string_view second) const {
    const std::vector<std::string> now = lines();
    return std::ranges::any_of(now, [&](const std::string& line) {
      return line.find(first) != std::string::npos && line.find(second) != std::string::npos;
    });
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
  mutable Mutex mutex_{RealRuntime()};
  std::vector<std::string> lines_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::string> errors_ DEUT_GUARDED_BY(mutex_);
  LogSink* const before_;  // the last member: lines may come as soon as the sink is set
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_RECORDED_LOG_H_
