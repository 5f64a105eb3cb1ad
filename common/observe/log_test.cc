#include "common/observe/log.h"

#include <memory>
#include <regex>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class Recorded final : public LogSink {
 public:
  Recorded() : before_(SetLogSink(this)) {}
  ~Recorded() override { SetLogSink(before_); }
  void Write(LogLevel level, std::string_view text) override { lines.emplace_back(level, text); }
  std::vector<std::pair<LogLevel, std::string>> lines;

 private:
  LogSink* const before_;
};

TEST(Log, PutsPiecesTogetherOnOneLine) {
  Recorded recorded;
  LogInfo("listening on ", std::string_view("localhost"), ":", 4711);
  LogWarning("two\nlines\tand a bell\a");
  LogError("failed");
  ASSERT_EQ(recorded.lines.size(), 3u);
  EXPECT_EQ(recorded.lines[0], (std::pair<LogLevel, std::string>(LogLevel::kInfo, "listening on localhost:4711")));
  EXPECT_EQ(recorded.lines[1],
            (std::pair<LogLevel, std::string>(LogLevel::kWarning, "two\\nlines\\x09and a bell\\x07")));
  EXPECT_EQ(recorded.lines[2].first, LogLevel::kError);
}

TEST(Log, GoesToStderrWithTimeAndLevel) {
  ::testing::internal::CaptureStderr();
  LogWarning("disk is slow");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z W disk is slow\n)"))) << text;
}

TEST(Log, LinesOfSeveralThreadsDoNotMix) {
  ::testing::internal::CaptureStderr();
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < 4; ++t) {
      threads.push_back(RealRuntime().StartThread("logger", [] {
        for (int i = 0; i < 100; ++i) LogInfo("a line that is long enough to be torn if it were written in pieces");
      }));
    }
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    const size_t end = text.find('\n', at);
    ASSERT_TRUE(text.substr(0, end).ends_with("written in pieces"));
    at = end + 1;
  }
  EXPECT_EQ(lines, 400u);
}

}  // namespace
}  // namespace deut
