#include "common/observe/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "common/runtime/runtime.h"

namespace deut {
namespace {

std::atomic<LogSink*> current_sink{nullptr};

void WriteToStderr(LogLevel level, std::string_view text) {
  const absl::Time now = absl::FromUnixMicros(RealRuntime().WallMicros());
  const char letter = level == LogLevel::kInfo ? 'I' : level == LogLevel::kWarning ? 'W' : 'E';
  std::string line = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ ", now, absl::UTCTimeZone());
  line.push_back(letter);
  line.push_back(' ');
  line.append(text).push_back('\n');
  // One system call, so that lines of several threads do not mix. An error is ignored, because nothing could report
  // that stderr is gone.
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; }

// (absl::CEscape would also escape quotation marks, which most messages have.)
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else if (IsControl(c)) {
      escaped += absl::StrFormat("\\x%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

}  // namespace

LogSink* SetLogSink(LogSink* sink) { return current_sink.exchange(sink, std::memory_order_acq_rel); }

void LogLine(LogLevel level, std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (!IsControl(c)) continue;
    escaped = Escape(text);
    text = escaped;
    break;
  }
  LogSink* sink = current_sink.load(std::memory_order_acquire);
  if (sink != nullptr) {
    sink->Write(level, text);
  } else {
    WriteToStderr(level, text);
  }
}

}  // namespace deut
