#include "common/runtime/runtime.h"

#include <atomic>
#include <set>

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(RealRuntime, ClockAdvancesAndSleepsReachTheirTime) {
  Runtime& runtime = RealRuntime();
  const MonotonicTime start = runtime.Now();
  runtime.SleepUntil(start + milliseconds(5));
  EXPECT_GE(runtime.Now() - start, milliseconds(5));
  runtime.SleepUntil(start);  // a time in the past: returns at once
  EXPECT_GT(runtime.WallMicros(), int64_t{1'600'000'000} * 1'000'000);
}

TEST(RealRuntime, WaitReturnsWhenTheWordDiffersOrTheDeadlinePasses) {
  Runtime& runtime = RealRuntime();
  std::atomic<uint32_t> word{1};
  EXPECT_TRUE(runtime.Wait(word, 0, kNoDeadline));
  EXPECT_FALSE(runtime.Wait(word, 1, runtime.Now() + milliseconds(2)));
  EXPECT_FALSE(runtime.Wait(word, 1, MonotonicTime(Duration(-5))));
}

TEST(RealRuntime, NoWakeUpIsMissed) {
  // Two threads pass a token back and forth; a lost wake-up would hang.
  Runtime& runtime = RealRuntime();
  constexpr uint32_t kRounds = 20000;
  std::atomic<uint32_t> turn{0};
  const auto play = [&](uint32_t mine) {
    for (uint32_t next = mine; next < kRounds; next += 2) {
      for (uint32_t seen; (seen = turn.load(std::memory_order_acquire)) != next;) runtime.Wait(turn, seen, kNoDeadline);
      turn.store(next + 1, std::memory_order_release);
      runtime.WakeAll(turn);
    }
  };
  auto other = runtime.StartThread("other", [&] { play(1); });
  play(0);
  other->Join();
  EXPECT_EQ(turn.load(), kRounds);
}

TEST(RealRuntime, DestructorOfAThreadJoins) {
  std::atomic<bool> ran{false};
  {
    auto thread = RealRuntime().StartThread("a-name-longer-than-15-bytes", [&] { ran = true; });
  }
  EXPECT_TRUE(ran.load());
}

TEST(RealRuntime, SeedsDiffer) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 16; ++i) seeds.insert(RealRuntime().RandomSeed());
  EXPECT_EQ(seeds.size(), 16u);
}

}  // namespace
}  // namespace deut
