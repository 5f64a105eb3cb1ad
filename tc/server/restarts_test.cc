// Which one-shot transactions are run again, and how often.
#include "tc/server/restarts.h"

#include "common/base/abort_reason.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

Status AbortedFor(AbortReason reason) { return Status::Aborted(AbortInfo{.reason = reason}, "lost"); }

TEST(RestartsTest, OnlyForConflicts) {
  Restarts restarts(RealRuntime(), kNoDeadline);
  for (const AbortReason reason :
       {AbortReason::kIdle, AbortReason::kRequested, AbortReason::kShutdown, AbortReason::kFailedOperation,
        AbortReason::kOverBudget, AbortReason::kTableReadLater, AbortReason::kTableWriter}) {
    EXPECT_FALSE(restarts.Next(AbortedFor(reason), 1)) << AbortReasonName(reason);
  }
  EXPECT_FALSE(restarts.Next(Status(), 1));
  EXPECT_FALSE(restarts.Next(Status(ErrorCode::kUnavailable, "away"), 1));
  EXPECT_FALSE(restarts.Next(Status(ErrorCode::kOutcomeUnknown, "lost"), 1));
  EXPECT_EQ(restarts.done(), 0);
  for (const AbortReason reason :
       {AbortReason::kWriteUncommitted, AbortReason::kWriteLater, AbortReason::kRecordReadLater,
        AbortReason::kBucketFloor, AbortReason::kRangeReadLater, AbortReason::kReadUncommitted,
        AbortReason::kRangeWriter}) {
    EXPECT_TRUE(Restarts::LostConflict(AbortedFor(reason))) << AbortReasonName(reason);
  }
}

TEST(RestartsTest, AFewTimes) {
  Restarts restarts(RealRuntime(), kNoDeadline);
  for (int i = 0; i < Restarts::kMost; ++i) EXPECT_TRUE(restarts.Next(AbortedFor(AbortReason::kRangeWriter), i));
  EXPECT_FALSE(restarts.Next(AbortedFor(AbortReason::kRangeWriter), 1));
  EXPECT_EQ(restarts.done(), Restarts::kMost);
}

TEST(RestartsTest, NotBeyondTheDeadline) {
  Restarts restarts(RealRuntime(), RealRuntime().Now());
  EXPECT_FALSE(restarts.Next(AbortedFor(AbortReason::kRangeWriter), 1));
}

}  // namespace
}  // namespace deut::tc
