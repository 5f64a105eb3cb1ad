// Which one-shot transactions are run again, and how often.
#include "tc/server/restarts.h"

#include <cstdint>
#include <set>

#include "common/base/abort_reason.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/server/still_runtime.h"

namespace deut::tc {
namespace {

Status AbortedFor(AbortReason reason) { return Status::Aborted(AbortInfo{.reason = reason}, "lost"); }

TEST(RestartsTest, OnlyForConflicts) {
  Restarts restarts(RealRuntime(), kNoDeadline);
  for (const AbortReason reason :
       {AbortReason::kIdle, AbortReason::kRequested, AbortReason::kShutdown, AbortReason::kFailedOperation,
        AbortReason::kOverBudget, AbortReason::kTableReadLater, AbortReason::kTableWriter}) {
    EXPECT_FALSE(restarts.Next(AbortedFor(reason))) << AbortReasonName(reason);
  }
  EXPECT_FALSE(restarts.Next(Status()));
  EXPECT_FALSE(restarts.Next(Status(ErrorCode::kUnavailable, "away")));
  EXPECT_FALSE(restarts.Next(Status(ErrorCode::kOutcomeUnknown, "lost")));
  EXPECT_EQ(restarts.done(), 0);
  for (const AbortReason reason :
       {AbortReason::kWriteUncommitted, AbortReason::kWriteLater, AbortReason::kRecordReadLater,
        AbortReason::kBucketFloor, AbortReason::kRangeReadLater, AbortReason::kReadUncommitted,
        AbortReason::kRangeWriter, AbortReason::kPassedBySnapshot}) {
    EXPECT_TRUE(Restarts::LostConflict(AbortedFor(reason))) << AbortReasonName(reason);
  }
}

TEST(RestartsTest, AFewTimes) {
  StillRuntime runtime;
  Restarts restarts(runtime, kNoDeadline);
  for (int i = 0; i < Restarts::kMaxRestarts; ++i) EXPECT_TRUE(restarts.Next(AbortedFor(AbortReason::kRangeWriter)));
  EXPECT_FALSE(restarts.Next(AbortedFor(AbortReason::kRangeWriter)));
  EXPECT_EQ(restarts.done(), Restarts::kMaxRestarts);
}

TEST(RestartsTest, NoneBeginsAtTheDeadlineOrAfterIt) {
  StillRuntime runtime;
  EXPECT_FALSE(Restarts(runtime, runtime.Now()).Next(AbortedFor(AbortReason::kRangeWriter)));
  // No attempt begins after a pause in which the deadline falls, whatever the pause is.
  for (int microsecond = 1; microsecond < 500; ++microsecond) {
    const Deadline deadline = runtime.Now() + microseconds(microsecond);
    Restarts restarts(runtime, deadline);
    while (restarts.Next(AbortedFor(AbortReason::kRangeWriter))) ASSERT_LT(runtime.Now(), deadline);
    EXPECT_LT(runtime.Now(), deadline) << "it has waited in vain";
  }
}

TEST(RestartsTest, NoneBeginsAfterLongAttempts) {
  StillRuntime runtime;
  Restarts restarts(runtime, kNoDeadline);
  EXPECT_TRUE(restarts.Next(AbortedFor(AbortReason::kRangeWriter)));
  runtime.SleepUntil(runtime.Now() + seconds(1));
  EXPECT_FALSE(restarts.Next(AbortedFor(AbortReason::kRangeWriter)));
}

// Transactions that have lost to one another do not come back together.
TEST(RestartsTest, PausesDiffer) {
  std::set<int64_t> ends;
  for (int loser = 0; loser < 20; ++loser) {
    StillRuntime runtime;
    const MonotonicTime begun = runtime.Now();
    Restarts restarts(runtime, kNoDeadline);
    while (restarts.Next(AbortedFor(AbortReason::kWriteUncommitted))) {
    }
    ends.insert((runtime.Now() - begun).count());
  }
  EXPECT_GT(ends.size(), 10u);
}

}  // namespace
}  // namespace deut::tc
