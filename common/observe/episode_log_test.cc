#include "common/observe/episode_log.h"

#include <string>

#include "common/observe/limited_log.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr auto kFull = [] { return std::string("full"); };
constexpr auto kRoom = [] { return std::string("room again"); };

TEST(EpisodeLogTest, AnEpisodeHasOneLineAtEachEnd) {
  testing::RecordedLog lines;
  EpisodeLog log(RealRuntime());
  log.End(kRoom);
  EXPECT_THAT(lines.lines(), IsEmpty());
  for (int i = 0; i < 5; ++i) log.Begin(kFull);
  EXPECT_THAT(lines.lines(), ElementsAre("full"));
  for (int i = 0; i < 5; ++i) log.End(kRoom);
  EXPECT_THAT(lines.lines(), ElementsAre("full", StartsWith("room again, after ")));
}

TEST(EpisodeLogTest, EpisodesThatFollowCloselyAreCountedInTheNextLine) {
  testing::RecordedLog lines;
  EpisodeLog log(RealRuntime(), seconds(2));
  log.Begin(kFull);
  log.End(kRoom);
  for (int i = 0; i < 3; ++i) {
    log.Begin(kFull);
    log.End(kRoom);
  }
  ASSERT_EQ(lines.lines().size(), 2u);
  RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(2100));
  log.Begin(kFull);
  EXPECT_THAT(lines.lines().back(), HasSubstr("full (4 times since the last such line)"));
}

// An episode that began within the pause and lasts beyond it is logged.
TEST(EpisodeLogTest, ALongEpisodeIsLoggedAfterThePause) {
  testing::RecordedLog lines;
  EpisodeLog log(RealRuntime(), milliseconds(30));
  log.Begin(kFull);
  log.End(kRoom);
  const size_t before = lines.lines().size();
  const Deadline limit = RealRuntime().Now() + seconds(20);
  while (lines.lines().size() == before && RealRuntime().Now() < limit) log.Begin(kFull);
  EXPECT_THAT(lines.lines().back(), StartsWith("full"));
}

TEST(LimitedLogTest, LinesBeyondTheLimitAreLeftOut) {
  testing::RecordedLog lines;
  LimitedLog log(RealRuntime());
  for (int i = 0; i < 3 * LimitedLog::kMaxLinesPerPeriod; ++i) log.Warn([] { return "refused"; });
  EXPECT_EQ(lines.lines().size(), static_cast<size_t>(LimitedLog::kMaxLinesPerPeriod));
}

// The text may be slow to make, and threads of a network library log through this.
TEST(LimitedLogTest, ATextIsMadeWhileOthersLog) {
  testing::RecordedLog lines;
  LimitedLog log(RealRuntime());
  log.Warn([&] {
    log.Warn([] { return "inner"; });
    return "outer";
  });
  EXPECT_THAT(lines.lines(), ElementsAre("inner", "outer"));
}

}  // namespace
}  // namespace deut
