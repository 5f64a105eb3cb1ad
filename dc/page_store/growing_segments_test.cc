// The lengths of new segments, which grow with the store and are bounded by the disk, and the closing of long ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/segment_store_fixture.h"
#include "dc/page_store/space_use.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

// Segments of 16 KiB at first, of 64 KiB at last.
SegmentStoreOptions GrowingSegments() {
  SegmentStoreOptions options = SmallSegments();
  options.segment_bytes = 16 << 10;
  options.max_segment_bytes = 100 << 10;
  options.segments_before_growth = 4;
  return options;
}

class GrowingSegmentsTest : public SegmentStoreTest {
 protected:
  GrowingSegmentsTest() { Restart(GrowingSegments()); }

  // Replaces the store by an empty one.
  void Restart(const SegmentStoreOptions& options) {
    fixture_.store.reset();
    fixture_.store = std::move(*SegmentStore::Create(*fixture_.storage, RealRuntime(), kTestPages, kTestDc, options));
  }
  // Begins a segment with a new appender, and returns the capacity that its header has.
  uint64_t CapacityOfNext(SegmentKind kind) {
    auto appender = NewAppender(kind);
    const PartHeader part = kind == SegmentKind::kBase
                                ? BaseHeader(PageId(1))
                                : DeltaHeader(PageId(1), PageAddress::Make(1, kSegmentHeaderBytes, 100));
    const auto address = appender->Append(part, "payload");
    EXPECT_TRUE(address.ok() && appender->Write().ok());
    if (!address.ok()) return 0;
    const std::string path = kTestPages + "/" + SegmentName(kind, address->segment());
    const auto file = fixture_.storage->Open(path, {});
    std::string block(kSegmentHeaderBytes, '\0');
    EXPECT_TRUE(file.ok() && (*file)->Read(0, block.data(), block.size()).ok());
    const auto header = DecodeSegmentHeader(block, path);
    EXPECT_TRUE(header.ok()) << header.status().ToString();
    return header.ok() ? header->capacity_bytes : 0;
  }
  // Appends parts of 3,000 bytes, in batches of ten.
  void AppendMany(SegmentAppender& appender, uint32_t count) {
    for (uint32_t page = 1; page <= count; ++page) {
      (void)Append(appender, page, 3000);
      if (page % 10 == 0) ASSERT_TRUE(appender.Write().ok());
    }
    ASSERT_TRUE(appender.Write().ok());
  }
};

TEST_F(GrowingSegmentsTest, NewSegmentsBecomeLongerAsTheStoreGrows) {
  auto appender = NewAppender();
  EXPECT_EQ(store().next_segment_bytes(), 16u << 10);
  AppendMany(*appender, 400);
  EXPECT_EQ(store().next_segment_bytes(), 64u << 10);
  std::vector<SegmentUsage> usages = store().usage();
  EXPECT_LT(usages.size(), 35u);
  EXPECT_LE(usages.front().written_bytes, 16u << 10);
  usages.pop_back();  // it is not full
  EXPECT_GT(usages.back().written_bytes, 48u << 10);
  for (const SegmentUsage& usage : usages) {
    EXPECT_LE(usage.written_bytes, 64u << 10);
    EXPECT_EQ(store().ForEachPart(usage.number, [](const PartView&) { return Status::Ok(); }).ToString(), "OK");
  }
  EXPECT_EQ(ReadAll(store()).ToString(), "OK");
  // The next incarnation goes on with the size. When the store is small again, so are its segments.
  store().BeginCheckpoint(CheckpointNumber(1));
  const auto extents = *store().SyncAll(CheckpointNumber(1));
  const uint64_t next = store().next_segment();
  appender.reset();
  fixture_.store = std::move(*SegmentStore::Open(*fixture_.storage, RealRuntime(), kTestPages, kTestDc,
                                                 GrowingSegments(), CheckpointNumber(1), extents, next));
  EXPECT_EQ(ReadAll(store()).ToString(), "OK");
  EXPECT_EQ(store().next_segment_bytes(), 64u << 10);
  store().BeginCheckpoint(CheckpointNumber(2));
  store().BeginCheckpoint(CheckpointNumber(3));
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(2)), extents.size());
  EXPECT_EQ(store().next_segment_bytes(), 16u << 10);
}

TEST_F(GrowingSegmentsTest, WithAnUpperSizeOfZeroAllHaveTheSameSize) {
  SegmentStoreOptions options = GrowingSegments();
  options.max_segment_bytes = 0;
  Restart(options);
  auto appender = NewAppender();
  AppendMany(*appender, 400);
  EXPECT_EQ(store().next_segment_bytes(), 16u << 10);
  for (const SegmentUsage& usage : store().usage()) EXPECT_LE(usage.written_bytes, 16u << 10);
}

TEST_F(GrowingSegmentsTest, SegmentsHaveAtMostHalfOfTheReserveAndThoseOfDeltasASixteenth) {
  SegmentStoreOptions options = GrowingSegments();
  options.max_segment_bytes = 1 << 20;
  for (const uint64_t reserve : {uint64_t{0}, uint64_t{512 << 10}, uint64_t{4 << 20}}) {
    parts_.clear();
    options.reserve_bytes = reserve;
    Restart(options);
    auto appender = NewAppender();
    AppendMany(*appender, 2000);
    const uint64_t base = reserve == 0 ? 1 << 20 : std::min<uint64_t>(reserve / 2, 1 << 20);
    const uint64_t delta = reserve == 0 ? 1 << 20 : reserve / 16;
    EXPECT_EQ(store().next_segment_bytes(), base) << reserve;
    EXPECT_EQ(CapacityOfNext(SegmentKind::kBase), base) << reserve;
    EXPECT_EQ(CapacityOfNext(SegmentKind::kDelta), delta) << reserve;
  }
}

// Otherwise an appender fills the rest of its segment although something else has filled the disk meanwhile.
TEST_F(GrowingSegmentsTest, X7AnAppenderLooksAtTheDiskAgainWithinALongSegment) {
  constexpr uint64_t kReserve = 1 << 20, kShort = 16 << 10;
  SegmentStoreOptions options = GrowingSegments();
  options.reserve_bytes = kReserve;
  Restart(options);
  auto appender = NewAppender();
  AppendMany(*appender, 400);
  appender.reset();
  ASSERT_EQ(store().next_segment_bytes(), 64u << 10);
  // The room of a long segment is not set aside: the reserve, the refusals and the shortage do not depend on it.
  EXPECT_EQ(store().reserve_bytes(), kReserve);
  fixture_.disk.SetFreeBytes(kReserve);
  EXPECT_TRUE(store().IsShortOfSpace());
  struct Use {
    SpaceUse use;
    uint64_t kept;
  };
  for (const Use& use : {Use{SpaceUse::kOrdinary, kReserve}, Use{SpaceUse::kCheckpoint, kReserve * 6 / 8},
                         Use{SpaceUse::kReclaim, kReserve / 8}, Use{SpaceUse::kStructure, 0}}) {
    fixture_.disk.SetFreeBytes(uint64_t{1} << 30);
    auto next = NewAppender();
    next->SetSpaceUse(use.use);
    const PageAddress first = Append(*next, 1, 3000);
    ASSERT_TRUE(next->Write().ok());
    fixture_.disk.SetFreeBytes(use.kept + kShort / 2);
    Status status;
    int written = 0;
    for (; status.ok() && written < 20; ++written) {
      status = next->Append(BaseHeader(PageId(1)), PayloadOf(PageId(1), 1, 3000)).status();
      if (status.ok()) status = next->Write();
    }
    EXPECT_EQ(status, ErrorCode::kResourceExhausted) << static_cast<int>(use.use);
    EXPECT_LE(written, 4) << static_cast<int>(use.use);
    // Parts that were written before stay, in a segment that ends there.
    EXPECT_EQ(ReadsBack(first).ToString(), "OK");
    EXPECT_TRUE(UsageOf(first.segment()).closed);
    fixture_.disk.SetFreeBytes(uint64_t{1} << 30);
    EXPECT_NE(Append(*next, 1, 3000).segment(), first.segment());
    ASSERT_TRUE(next->Write().ok());
  }
}

TEST_F(GrowingSegmentsTest, NewSegmentsAreShorterWhereEightOfThemHaveNoRoom) {
  constexpr uint64_t kReserve = 1 << 20, kKiB = 1 << 10;
  SegmentStoreOptions options = GrowingSegments();
  options.reserve_bytes = kReserve;
  Restart(options);
  auto appender = NewAppender();
  AppendMany(*appender, 400);
  for (const auto& [room, length] : std::vector<std::pair<uint64_t, uint64_t>>{{8 * (64 * kKiB), 64 * kKiB},
                                                                               {8 * (64 * kKiB) - 1, 32 * kKiB},
                                                                               {8 * (32 * kKiB), 32 * kKiB},
                                                                               {8 * (32 * kKiB) - 1, 16 * kKiB},
                                                                               {16 * kKiB, 16 * kKiB}}) {
    fixture_.disk.SetFreeBytes(kReserve + room);
    EXPECT_EQ(CapacityOfNext(SegmentKind::kBase), length) << room;
  }
}

// Dead bytes of an open segment cannot be freed.
TEST_F(GrowingSegmentsTest, AnOpenSegmentIsClosedWhenTheStoreHasBecomeMuchSmaller) {
  SegmentStoreOptions options = GrowingSegments();
  options.max_segment_bytes = 256 << 10;
  Restart(options);
  auto appender = NewAppender();
  AppendMany(*appender, 1500);
  ASSERT_EQ(store().next_segment_bytes(), 256u << 10);
  auto late = NewAppender();
  const PageAddress open = Append(*late, 1, 3000);
  ASSERT_TRUE(late->Write().ok());
  appender.reset();
  for (const auto& [address, written] : parts_) store().MarkDead(address);
  store().BeginCheckpoint(CheckpointNumber(1));
  ASSERT_TRUE(store().RemoveDeadSegments(CheckpointNumber(1)).ok());
  EXPECT_EQ(FilesOnDisk(), 1u);
  EXPECT_FALSE(UsageOf(open.segment()).closed);
  const PageAddress next = Append(*late, 2, 3000);
  EXPECT_EQ(next.segment(), open.segment());
  ASSERT_TRUE(late->Write().ok());
  EXPECT_TRUE(UsageOf(open.segment()).closed);
  EXPECT_NE(Append(*late, 3, 3000).segment(), open.segment());
}

TEST_F(GrowingSegmentsTest, UnsyncedBytesAreBoundedInClosedAndInOpenSegments) {
  for (const bool bounded : {false, true}) {
    parts_.clear();
    SegmentStoreOptions options = GrowingSegments();
    options.max_unsynced_segments = 1000;
    if (bounded) options.max_unsynced_bytes = 128 << 10;
    Restart(options);
    auto appender = NewAppender();
    AppendMany(*appender, 400);
    EXPECT_EQ(store().totals().syncs > 0, bounded);
    // A segment that stays open: a quarter of the bound.
    auto late = NewAppender();
    const uint64_t before = store().totals().syncs;
    const PageAddress first = Append(*late, 1, 3000);
    for (uint32_t page = 2; page <= 10; ++page) {
      EXPECT_EQ(Append(*late, page, 3000).segment(), first.segment());
      ASSERT_TRUE(late->Write().ok());
    }
    EXPECT_EQ(store().totals().syncs - before, bounded ? 1u : 0u);
    store().BeginCheckpoint(CheckpointNumber(1));
    EXPECT_TRUE(store().SyncAll(CheckpointNumber(1)).ok());
  }
}

}  // namespace
}  // namespace deut::dc
