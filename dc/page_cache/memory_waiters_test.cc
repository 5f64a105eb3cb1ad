#include "dc/page_cache/memory_waiters.h"

#include <chrono>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Returns how many of `threads` threads proceed without progress.
int Admitted(MemoryWaiters& waiters, int threads) {
  int admitted = 0;
  for (int i = 0; i < threads; ++i) admitted += waiters.AdmitsWithoutProgress() ? 1 : 0;
  return admitted;
}

TEST(MemoryWaitersTest, AThreadThatLoadedProgressBeforeAWakeDoesNotBlock) {
  MemoryWaiters waiters(RealRuntime());
  const uint32_t seen = waiters.progress();
  waiters.Wake();
  EXPECT_NE(waiters.progress(), seen);
  waiters.Wait(seen, kNoDeadline);
}

TEST(MemoryWaitersTest, AThreadWaitsUntilItsDeadlineOrAReport) {
  MemoryWaiters waiters(RealRuntime());
  waiters.Wait(waiters.progress(), RealRuntime().Now() + std::chrono::milliseconds(1));
  for (const bool room : {false, true}) {
    const uint32_t seen = waiters.progress();
    const auto evictor = RealRuntime().StartThread("evictor", [&] {
      if (room) {
        waiters.ReportRoom();
      } else {
        waiters.ReportAttempt(/*freed=*/false, /*exceeded=*/true);
      }
    });
    while (waiters.progress() == seen) waiters.Wait(seen, kNoDeadline);
    EXPECT_EQ(waiters.exhausted(), !room);
  }
}

TEST(MemoryWaitersTest, EachAttemptWithoutProgressAdmitsALimitedNumberOfThreads) {
  MemoryWaiters waiters(RealRuntime());
  EXPECT_EQ(Admitted(waiters, 10), 0);
  for (int attempt = 0; attempt < 3; ++attempt) {
    waiters.ReportAttempt(/*freed=*/false, /*exceeded=*/true);
    EXPECT_EQ(Admitted(waiters, 10), 10);
    EXPECT_EQ(Admitted(waiters, 1000), MemoryWaiters::kMaxAdmissionsPerAttempt - 10);
  }
}

TEST(MemoryWaitersTest, ProgressOrRoomEndsAdmissionsAndExhaustion) {
  for (const bool room : {false, true}) {
    MemoryWaiters waiters(RealRuntime());
    waiters.ReportAttempt(/*freed=*/false, /*exceeded=*/true);
    EXPECT_TRUE(waiters.exhausted());
    if (room) {
      waiters.ReportRoom();
    } else {
      waiters.ReportAttempt(/*freed=*/true, /*exceeded=*/true);
    }
    EXPECT_FALSE(waiters.exhausted());
    EXPECT_EQ(Admitted(waiters, 10), 0);
  }
}

TEST(MemoryWaitersTest, EachWakeIsReportedToTheCallback) {
  int calls = 0;
  MemoryWaiters waiters(RealRuntime(), [&] { ++calls; });
  waiters.Wake();
  waiters.ReportRoom();
  waiters.ReportAttempt(/*freed=*/false, /*exceeded=*/true);
  EXPECT_EQ(calls, 3);
}

TEST(MemoryWaitersTest, WithinTheBudgetMemoryIsNotExhausted) {
  MemoryWaiters waiters(RealRuntime());
  waiters.ReportAttempt(/*freed=*/false, /*exceeded=*/false);
  EXPECT_FALSE(waiters.exhausted());
  EXPECT_EQ(Admitted(waiters, 10), 10);
}

}  // namespace
}  // namespace deut::dc
