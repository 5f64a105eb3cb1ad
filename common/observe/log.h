// Logging for people: one line per message on stderr, "2026-01-31T12:00:00.000123Z I text".
//   LogError: an operator must look at it.
//   LogWarning: unusual, and the process copes.
//   LogInfo: start, stop, configuration, recovery.
// The code that handles an error logs it, once. Not for hot paths.
// Pieces are concatenated as by Concat; line breaks and other control characters in them are escaped.
// Thread-safety: all functions from any thread; lines do not mix. The only global is the sink.
// The Abseil that scripts/setup builds (20220623) has no absl/log yet. Time and text are formatted by Abseil.
#ifndef COMMON_OBSERVE_LOG_H_
#define COMMON_OBSERVE_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/concat.h"

namespace deut {

enum class LogLevel : uint8_t { kInfo, kWarning, kError };

class LogSink {
 public:
  virtual ~LogSink() = default;
  // `text` is one line, escaped, without a line break.
  virtual void Write(LogLevel level, std::string_view text) = 0;
};

// From now on lines go to `sink`, which outlives its use; null: to stderr. Returns the previous sink (null: stderr).
LogSink* SetLogSink(LogSink* sink);

void LogLine(LogLevel level, std::string_view text);

template <typename... Pieces>
void LogInfo(const Pieces&... pieces) {
  LogLine(LogLevel::kInfo, Concat(pieces...));
}
template <typename... Pieces>
void LogWarning(const Pieces&... pieces) {
  LogLine(LogLevel::kWarning, Concat(pieces...));
}
template <typename... Pieces>
void LogError(const Pieces&... pieces) {
  LogLine(LogLevel::kError, Concat(pieces...));
}

}  // namespace deut

#endif  // COMMON_OBSERVE_LOG_H_
