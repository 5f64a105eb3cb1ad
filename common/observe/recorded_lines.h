// RecordedLines: records the lines of the log while it lives, for tests that search them.
// Thread-safety: any thread. Only one object at a time.
#ifndef COMMON_OBSERVE_RECORDED_LINES_H_
#define COMMON_OBSERVE_RECORDED_LINES_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

class RecordedLines final : public LogSink {
 public:
  RecordedLines() : before_(SetLogSink(this)) {}
  ~RecordedLines() override { SetLogSink(before_); }

  void Write(LogLevel, std::string_view text) override {
    const MutexLock lock(mutex_);
    lines_.emplace_back(text);
  }
  std::vector<std::string> lines() const {
    const MutexLock lock(mutex_);
    return lines_;
  }
  // True if one line contains both texts.
  bool Have(std::string_view first, std::string_view second) const {
    const std::vector<std::string> now = lines();
    return std::ranges::any_of(now, [&](const std::string& line) {
      return line.find(first) != std::string::npos && line.find(second) != std::string::npos;
    });
  }

 private:
  mutable Mutex mutex_{RealRuntime()};
  std::vector<std::string> lines_ DEUT_GUARDED_BY(mutex_);
  LogSink* const before_;  // the last member: lines may come as soon as the sink is set
};

}  // namespace deut

#endif  // COMMON_OBSERVE_RECORDED_LINES_H_
