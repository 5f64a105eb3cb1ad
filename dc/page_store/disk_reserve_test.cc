#include "dc/page_store/disk_reserve.h"

#include <algorithm>
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
  disk_.SetFreeBytes(kReserve / 2 + kSegment);
  EXPECT_TRUE(reserve_.Check(SpaceUse::kReclaim, never).ok()) << "there is room in any case";
}

TEST_F(DiskReserveTest, TheDiskIsShortBeforeOrdinarySegmentsAreRefused) {
  disk_.SetFreeBytes(kReserve + 4 * kSegment);
  EXPECT_FALSE(reserve_.IsShort());
  disk_.SetFreeBytes(kReserve + 3 * kSegment);
  EXPECT_TRUE(reserve_.IsShort());
  EXPECT_TRUE(MayMake(SpaceUse::kOrdinary, kReserve + 3 * kSegment));
}

TEST_F(DiskReserveTest, TheLengthIsHalvedUntilEightSegmentsHaveRoomBeyondTheReserve) {
  reserve_.ReserveForCheckpoint(kFile);
  for (const uint64_t longest : {kSegment, 4 * kSegment, 64 * kSegment}) {
    for (uint64_t length = kSegment; length <= longest; length *= 2) {
      disk_.SetFreeBytes(kReserve + kFile + 8 * length);
      EXPECT_EQ(reserve_.LengthWithRoom(longest), length);
      disk_.SetFreeBytes(kReserve + kFile + 8 * length - 1);
      EXPECT_EQ(reserve_.LengthWithRoom(longest), std::max(length / 2, kSegment));
    }
  }
  disk_.SetFreeBytes(0);
  EXPECT_EQ(reserve_.LengthWithRoom(4 * kSegment), kSegment);
}

TEST_F(DiskReserveTest, TheRoomForAUseIsWhatIsFreeBeyondItsShare) {
  reserve_.ReserveForCheckpoint(kFile);
  const auto room = [&](SpaceUse use, bool dead) { return reserve_.RoomFor(use, [=] { return dead; }); };
  disk_.SetFreeBytes(kReserve + kFile);
  EXPECT_EQ(room(SpaceUse::kOrdinary, true), 0u);
  EXPECT_EQ(room(SpaceUse::kCheckpoint, true), kReserve / 4);
  EXPECT_EQ(room(SpaceUse::kReclaim, true), kReserve / 2);
  EXPECT_EQ(room(SpaceUse::kReclaim, false), kReserve / 8 * 7);
  EXPECT_EQ(room(SpaceUse::kStructure, true), kReserve);
  disk_.SetFreeBytes(kFile);
  EXPECT_EQ(room(SpaceUse::kReclaim, false), 0u);
}

TEST_F(DiskReserveTest, WithoutAReserveNothingIsChecked) {
  DiskReserve none(*storage_, RealRuntime(), "/pages", /*reserve_bytes=*/0, kSegment);
  none.ReserveForCheckpoint(kFile);
  EXPECT_EQ(none.bytes(), 0u);
  disk_.SetFreeBytes(0);
  EXPECT_TRUE(none.Check(SpaceUse::kOrdinary, [] { return false; }).ok());
  EXPECT_FALSE(none.IsShort());
  EXPECT_EQ(none.LengthWithRoom(64 * kSegment), 64 * kSegment);
  EXPECT_EQ(none.RoomFor(SpaceUse::kOrdinary, [] { return false; }), UINT64_MAX);
}

TEST_F(DiskReserveTest, ADiskThatCannotTellItsFreeBytesIsAnError) {
  disk_.AddFault({.kinds = kDiskOther});
  EXPECT_EQ(reserve_.Check(SpaceUse::kOrdinary, [] { return false; }), ErrorCode::kIoError);
  EXPECT_FALSE(reserve_.IsShort());
  EXPECT_EQ(reserve_.LengthWithRoom(4 * kSegment), kSegment);
  EXPECT_EQ(reserve_.RoomFor(SpaceUse::kStructure, [] { return false; }), 0u);
}

}  // namespace
}  // namespace deut::dc
