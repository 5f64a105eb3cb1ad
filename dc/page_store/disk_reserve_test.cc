#include "dc/page_store/disk_reserve.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/space_use.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kSegment = 64 << 10;
constexpr uint64_t kReserve = 8 * kSegment;
constexpr uint64_t kFile = 2 * kSegment;

class DiskReserveTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(storage_->CreateDirectory("/pages").ok()); }

  // Returns whether a segment may be made when this much is free.
  bool MayMake(SpaceUse use, uint64_t free_bytes, bool some_segment_is_dead = true) {
    disk_.SetFreeBytes(free_bytes);
    const Status status = reserve_.Check(use, [=] { return some_segment_is_dead; });
    EXPECT_TRUE(status.ok() || status == ErrorCode::kResourceExhausted) << status.ToString();
    return status.ok();
  }

  FaultyDisk disk_{RealRuntime(), /*seed=*/1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  DiskReserve reserve_{*storage_, RealRuntime(), "/pages", kReserve, kSegment};
};

TEST_F(DiskReserveTest, EachUseLeavesItsShareOfTheReserve) {
  reserve_.ReserveForCheckpoint(kFile);
  EXPECT_EQ(reserve_.bytes(), kReserve + kFile);
  struct Case {
    SpaceUse use;
    bool some_segment_is_dead;
    uint64_t kept;
  };
  for (const Case& c :
       {Case{SpaceUse::kOrdinary, true, kReserve + kFile}, Case{SpaceUse::kCheckpoint, true, kReserve * 6 / 8 + kFile},
        Case{SpaceUse::kReclaim, true, kReserve * 4 / 8 + kFile}, Case{SpaceUse::kReclaim, false, kReserve / 8 + kFile},
        Case{SpaceUse::kStructure, true, kFile}}) {
    EXPECT_TRUE(MayMake(c.use, c.kept + kSegment, c.some_segment_is_dead)) << static_cast<int>(c.use);
    EXPECT_FALSE(MayMake(c.use, c.kept + kSegment - 4096, c.some_segment_is_dead)) << static_cast<int>(c.use);
  }
}

TEST_F(DiskReserveTest, DeadSegmentsAreSearchedForOnlyToReclaim) {
  const auto never = []() -> bool {
    ADD_FAILURE() << "it takes a pass over all segments";
    return false;
  };
  for (const SpaceUse use : {SpaceUse::kOrdinary, SpaceUse::kCheckpoint, SpaceUse::kStructure}) {
    EXPECT_TRUE(reserve_.Check(use, never).ok());
  }
}

TEST_F(DiskReserveTest, TheDiskIsShortBeforeOrdinarySegmentsAreRefused) {
  disk_.SetFreeBytes(kReserve + 4 * kSegment);
  EXPECT_FALSE(reserve_.IsShort());
  disk_.SetFreeBytes(kReserve + 3 * kSegment);
  EXPECT_TRUE(reserve_.IsShort());
  EXPECT_TRUE(MayMake(SpaceUse::kOrdinary, kReserve + 3 * kSegment));
}

TEST_F(DiskReserveTest, PromisedRoomIsLeftByOrdinaryAndByLongSegments) {
  disk_.SetFreeBytes(kReserve + 4 * kSegment);
  EXPECT_TRUE(reserve_.HasRoomForLong(4 * kSegment));
  EXPECT_FALSE(reserve_.HasRoomForLong(4 * kSegment + 1));
  reserve_.Promise(2 * kSegment);
  EXPECT_EQ(reserve_.promised_bytes(), 2 * kSegment);
  EXPECT_EQ(reserve_.bytes(), kReserve);
  EXPECT_TRUE(reserve_.HasRoomForLong(2 * kSegment));
  EXPECT_FALSE(reserve_.HasRoomForLong(2 * kSegment + 1));
  EXPECT_TRUE(reserve_.IsShort());
  EXPECT_TRUE(MayMake(SpaceUse::kOrdinary, kReserve + 3 * kSegment));
  EXPECT_FALSE(MayMake(SpaceUse::kOrdinary, kReserve + 3 * kSegment - 1));
  // Work that frees space may take it.
  EXPECT_TRUE(MayMake(SpaceUse::kReclaim, kReserve / 2 + kSegment));
  EXPECT_TRUE(MayMake(SpaceUse::kStructure, kSegment));
  reserve_.EndPromise(2 * kSegment);
  EXPECT_TRUE(MayMake(SpaceUse::kOrdinary, kReserve + kSegment));
}

TEST_F(DiskReserveTest, WithoutAReserveNothingIsChecked) {
  DiskReserve none(*storage_, RealRuntime(), "/pages", /*reserve_bytes=*/0, kSegment);
  none.ReserveForCheckpoint(kFile);
  EXPECT_EQ(none.bytes(), 0u);
  disk_.SetFreeBytes(0);
  EXPECT_TRUE(none.Check(SpaceUse::kOrdinary, [] { return false; }).ok());
  EXPECT_FALSE(none.IsShort());
  EXPECT_TRUE(none.HasRoomForLong(1 << 30));
}

TEST_F(DiskReserveTest, ADiskThatCannotTellItsFreeBytesIsAnError) {
  disk_.AddFault({.kinds = kDiskOther});
  EXPECT_EQ(reserve_.Check(SpaceUse::kOrdinary, [] { return false; }), ErrorCode::kIoError);
  EXPECT_FALSE(reserve_.IsShort());
  EXPECT_FALSE(reserve_.HasRoomForLong(kSegment));
}

}  // namespace
}  // namespace deut::dc
