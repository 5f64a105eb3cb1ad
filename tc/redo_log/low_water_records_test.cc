#include "tc/redo_log/low_water_records.h"

#include <gtest/gtest.h>

#include "common/base/ids.h"
#include "common/runtime/time.h"

namespace deut::tc {
namespace {

MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

TEST(LowWaterRecords, AnEmptyLogOwesNone) {
  LowWaterRecords records;
  EXPECT_FALSE(records.Due(Timestamp(1), Lsn(8), At(0)));
  EXPECT_FALSE(records.Due(Timestamp(100), Lsn(8), At(0)));
  EXPECT_FALSE(records.Pending());
}

TEST(LowWaterRecords, ExactlyOneFollowsTheLastCommit) {
  LowWaterRecords records;
  records.NoteCommit(Timestamp(10));
  EXPECT_TRUE(records.Pending());
  EXPECT_TRUE(records.Due(Timestamp(11), Lsn(100), At(0)));
  records.Appended(Timestamp(11), Lsn(100), At(0));
  EXPECT_FALSE(records.Pending());
  EXPECT_FALSE(records.Due(Timestamp(50), Lsn(uint64_t{1} << 30), At(100000)));  // no commit since
  records.NoteCommit(Timestamp(60));
  EXPECT_FALSE(records.Due(Timestamp(60), Lsn(200), At(5)));  // too soon after the last
  EXPECT_TRUE(records.Due(Timestamp(60), Lsn(200), At(10)));  // 60 itself is not covered yet, but others may be
  records.Appended(Timestamp(60), Lsn(200), At(10));
  EXPECT_TRUE(records.Pending());
  EXPECT_FALSE(records.Due(Timestamp(60), Lsn(200), At(1000)));  // low-water has not moved
  EXPECT_TRUE(records.Due(Timestamp(61), Lsn(200), At(20)));
  records.Appended(Timestamp(61), Lsn(200), At(20));
  EXPECT_FALSE(records.Pending());
}

TEST(LowWaterRecords, MuchLogMakesOneDueSooner) {
  LowWaterRecords records;
  records.NoteCommit(Timestamp(10));
  records.Appended(Timestamp(11), Lsn(1000), At(0));
  records.NoteCommit(Timestamp(12));
  EXPECT_FALSE(records.Due(Timestamp(13), Lsn(1000 + LowWaterRecords::kLogBytes - 1), At(1)));
  EXPECT_TRUE(records.Due(Timestamp(13), Lsn(1000 + LowWaterRecords::kLogBytes), At(1)));
}

// A commit with an earlier timestamp than another that was noted before it is covered by the same record.
TEST(LowWaterRecords, CommitsAreNotedInAnyOrder) {
  LowWaterRecords records;
  records.NoteCommit(Timestamp(20));
  records.NoteCommit(Timestamp(10));
  records.Appended(Timestamp(15), Lsn(8), At(0));
  EXPECT_TRUE(records.Pending());  // 20
  EXPECT_TRUE(records.Due(Timestamp(21), Lsn(8), At(10)));
}

}  // namespace
}  // namespace deut::tc
