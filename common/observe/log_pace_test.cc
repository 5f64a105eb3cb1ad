#include "common/observe/log_pace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"

namespace deut {
namespace {

TEST(LogPaceTest, OneLineInEachIntervalSaysHowManyWereLeftOut) {
  LogPace pace(seconds(1));
  const MonotonicTime start{seconds(100)};
  EXPECT_EQ(pace.Event(start), 0u);
  EXPECT_EQ(pace.Event(start + milliseconds(1)), std::nullopt);
  EXPECT_EQ(pace.Event(start + milliseconds(999)), std::nullopt);
  EXPECT_EQ(pace.Event(start + seconds(1)), 2u);
  EXPECT_EQ(pace.Event(start + seconds(1)), std::nullopt);
  EXPECT_EQ(pace.Event(start + seconds(60)), 1u);
}

TEST(LogPaceTest, OnlyOneOfSeveralThreadsGetsTheLine) {
  LogPace pace(seconds(1));
  std::atomic<int> lines{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(RealRuntime().StartThread("pace", [&] {
      for (int j = 0; j < 1000; ++j) lines += pace.Event(MonotonicTime(seconds(5))).has_value();
    }));
  }
  for (const auto& thread : threads) thread->Join();
  EXPECT_EQ(lines.load(), 1);
  EXPECT_EQ(pace.Event(MonotonicTime(seconds(7))), 3999u);
}

}  // namespace
}  // namespace deut
