// Where the disk is short of space, an appender closes a segment that is half dead.
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/ids.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/segment_appender.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/segment_store_fixture.h"
#include "dc/page_store/store_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class DeadOpenSegmentTest : public SegmentStoreTest {
 protected:
  DeadOpenSegmentTest() {
    SegmentStoreOptions options = SmallSegments();
    options.reserve_bytes = kReserve;
    fixture_.store.reset();
    fixture_.store = std::move(*SegmentStore::Create(*fixture_.storage, RealRuntime(), kTestPages, kTestDc, options));
    appender_ = NewAppender();
    part_ = Append(*appender_, 1, 3000);
    EXPECT_TRUE(appender_->Write().ok());
  }

  bool IsClosed() { return UsageOf(part_.segment()).closed; }
  void MakeShort() {
    fixture_.disk.SetFreeBytes(kReserve);
    ASSERT_TRUE(store().IsShortOfSpace());
  }

  static constexpr uint64_t kReserve = 1 << 20;
  std::unique_ptr<SegmentAppender> appender_;
  PageAddress part_;
};

TEST_F(DeadOpenSegmentTest, ItIsClosedAndRemoved) {
  store().MarkDead(part_);
  MakeShort();
  EXPECT_FALSE(IsClosed());
  ASSERT_TRUE(appender_->Write().ok());
  EXPECT_TRUE(IsClosed());
  const size_t files = FilesOnDisk();
  store().BeginCheckpoint(CheckpointNumber(1));
  store().BeginCheckpoint(CheckpointNumber(2));
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(2)), 1u);
  EXPECT_EQ(FilesOnDisk(), files - 1);
  // The appender goes on with another segment.
  fixture_.disk.SetFreeBytes(uint64_t{1} << 30);
  const PageAddress next = Append(*appender_, 2, 3000);
  ASSERT_TRUE(appender_->Write().ok());
  EXPECT_NE(next.segment(), part_.segment());
  EXPECT_EQ(ReadsBack(next).ToString(), "OK");
}

TEST_F(DeadOpenSegmentTest, ItStaysOpenWhileThereIsSpace) {
  store().MarkDead(part_);
  ASSERT_FALSE(store().IsShortOfSpace());
  ASSERT_TRUE(appender_->Write().ok());
  EXPECT_FALSE(IsClosed());
}

TEST_F(DeadOpenSegmentTest, OneThatIsMostlyLiveStaysOpen) {
  const PageAddress second = Append(*appender_, 2, 10000), third = Append(*appender_, 3, 3000);
  ASSERT_TRUE(appender_->Write().ok());
  ASSERT_EQ(third.segment(), part_.segment());
  store().MarkDead(part_);
  MakeShort();
  ASSERT_TRUE(appender_->Write().ok());
  EXPECT_FALSE(IsClosed());
  // Less than half of it is live.
  store().MarkDead(second);
  ASSERT_TRUE(appender_->Write().ok());
  EXPECT_TRUE(IsClosed());
  EXPECT_EQ(ReadsBack(third).ToString(), "OK");
}

}  // namespace
}  // namespace deut::dc
