// A full disk, failed transfers and syncs, damaged files.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/segment_store_fixture.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

class SegmentStoreDiskFullTest : public SegmentStoreTest {};

// No space at each call of the appender in turn: written parts stay, the others are void, the appender goes on, and
// no file is left.
TEST_F(SegmentStoreDiskFullTest, AtEveryOperation) {
  uint64_t struck = 0;
  for (uint64_t skip = 0; skip < 50; ++skip) {
    StoreFixture fixture(skip + 1);
    SegmentStore& store = *fixture.store;
    parts_.clear();
    auto appender = std::move(*store.NewAppender(SegmentKind::kBase));
    const int fault = fixture.disk.AddFault(
        {.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite | kDiskName, .skip = skip, .count = 1});
    std::map<PageAddress, Written> batch;
    Random random(5);
    uint32_t page = 0;
    uint64_t live = 0;
    bool went_wrong = false;
    const auto fails = [&](const Status& status) {
      if (status.ok()) return false;
      EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.ToString();
      EXPECT_EQ(appender->batch_parts(), 0u);
      batch.clear();
      went_wrong = true;
      return true;
    };
    for (int i = 0; i < 40; ++i) {
      const Written written{PageId(++page), page, random.OneIn(10) ? 70'000 : random.Below(15'000)};
      const auto address =
          appender->Append(BaseHeader(written.page), PayloadOf(written.page, written.salt, written.bytes));
      if (fails(address.status())) continue;
      batch[*address] = written;
      if (!random.OneIn(4) || fails(appender->Write())) continue;
      for (const auto& each : batch) live += each.first.length_bound();
      parts_.merge(batch);
      batch.clear();
    }
    struck += fixture.disk.hits(fault);
    EXPECT_EQ(went_wrong, fixture.disk.hits(fault) > 0) << skip;
    ASSERT_TRUE(store.fatal().ok());
    ASSERT_EQ(ReadAll(store).ToString(), "OK") << skip;
    EXPECT_EQ(store.totals().live_bytes, live);
    appender.reset();
    // Every file contains written parts.
    EXPECT_EQ(fixture.storage->List(kTestPages)->size(), store.totals().segments) << skip;
    for (const SegmentUsage& usage : store.usage()) {
      EXPECT_TRUE(usage.closed);
      EXPECT_GT(usage.live_bytes, 0u);
      EXPECT_EQ(store.ForEachPart(usage.number, [](const PartView&) { return Status::Ok(); }).ToString(), "OK");
    }
  }
  EXPECT_GT(struck, 25u);
}

TEST(SegmentStoreReserveTest, TheLastRoomIsForWhatGivesSpaceBack) {
  constexpr uint64_t kSegment = 64 << 10;
  constexpr uint64_t kFile = 100 << 10;  // a checkpoint's file
  SegmentStoreOptions options = SmallSegments();
  options.reserve_bytes = 8 * kSegment;
  StoreFixture fixture(1, options);
  fixture.store->ReserveForCheckpoint(kFile);
  EXPECT_EQ(fixture.store->reserve_bytes(), kFile + 8 * kSegment);
  struct Use {
    SpaceUse use;
    uint64_t kept;
    bool dead = false;  // a segment exists that the next checkpoints remove
  };
  uint32_t page = 0;
  for (const Use& use : {Use{SpaceUse::kOrdinary, 8 * kSegment}, Use{SpaceUse::kCheckpoint, 6 * kSegment},
                         Use{SpaceUse::kReclaim, 1 * kSegment}, Use{SpaceUse::kStructure, 0},
                         Use{SpaceUse::kReclaim, 4 * kSegment, /*dead=*/true}}) {
    if (use.dead) {
      fixture.disk.SetFreeBytes(1 << 30);
      auto appender = std::move(*fixture.store->NewAppender(SegmentKind::kBase));
      ++page;
      const auto appended = appender->Append(BaseHeader(PageId(page)), PayloadOf(PageId(page), 1, 1000));
      ASSERT_TRUE(appended.ok() && appender->Write().ok());
      appender.reset();  // closes its segment
      fixture.store->MarkDead(*appended);
      ASSERT_GT(fixture.store->totals().dead_bytes, 0u);
    }
    for (const bool enough : {false, true}) {
      const auto appender = std::move(*fixture.store->NewAppender(SegmentKind::kBase));
      appender->SetSpaceUse(use.use);
      fixture.disk.SetFreeBytes(kFile + use.kept + kSegment - (enough ? 0 : 1));
      ++page;
      const auto appended = appender->Append(BaseHeader(PageId(page)), PayloadOf(PageId(page), 1, 1000));
      ASSERT_EQ(appended.ok(), enough) << static_cast<int>(use.use);
      if (!enough) EXPECT_EQ(appended.status(), ErrorCode::kResourceExhausted);
      ASSERT_TRUE(appender->Write().ok());
    }
  }
}

TEST(SegmentStoreReserveTest, AFullDiskLeavesALineWithItsBytesAndOneWhenItIsOver) {
  constexpr uint64_t kSegment = 64 << 10, kReserve = 8 * kSegment;
  SegmentStoreOptions options = SmallSegments();
  options.reserve_bytes = kReserve;
  StoreFixture fixture(1, options);
  const testing::RecordedLog lines;
  const auto appender = std::move(*fixture.store->NewAppender(SegmentKind::kBase));
  appender->SetSpaceUse(SpaceUse::kOrdinary);
  const auto append = [&](uint64_t free_bytes) {
    fixture.disk.SetFreeBytes(free_bytes);
    return appender->Append(BaseHeader(PageId(1)), PayloadOf(PageId(1), 1, 1000)).ok();
  };
  EXPECT_FALSE(append(kReserve));
  EXPECT_FALSE(append(kReserve)) << "one line for both";
  ASSERT_EQ(lines.lines().size(), 1u);
  EXPECT_TRUE(lines.HasLineWith("disk: no room for pages in ",
                                Concat(kReserve, " bytes are free, of which ", kReserve,
                                       " are reserved for work that frees space, and a segment takes ", kSegment)))
      << lines.lines().front();
  EXPECT_TRUE(append(2 * kReserve));
  ASSERT_EQ(lines.lines().size(), 2u);
  EXPECT_TRUE(lines.HasLineWith("disk: pages are written again to ", Concat(2 * kReserve, " bytes are free, after ")))
      << lines.lines().back();
}

TEST_F(SegmentStoreDiskFullTest, ServiceResumesWhenThereIsSpaceAgain) {
  auto appender = NewAppender();
  fixture_.disk.SetFreeBytes(200 << 10);
  uint32_t page = 0;
  uint64_t appended = 0;
  Status status;
  while (status.ok()) {
    ++page;
    (void)appender->Append(BaseHeader(PageId(page)), PayloadOf(PageId(page), 1, 10'000));
    status = appender->Write();
    if (status.ok()) appended += 10'000;
  }
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_GT(appended, 120'000u);
  // While the disk is full, every further attempt fails the same way.
  for (int i = 0; i < 5; ++i) {
    const auto again = appender->Append(BaseHeader(PageId(1)), std::string(50'000, 'x'));
    EXPECT_TRUE(!again.ok() || appender->Write() == ErrorCode::kResourceExhausted);
  }
  fixture_.disk.SetFreeBytes(10 << 20);
  const PageAddress address = Append(*appender, 5, 10'000);
  ASSERT_TRUE(appender->Write().ok());
  EXPECT_EQ(ReadsBack(address).ToString(), "OK");
  store().BeginCheckpoint(CheckpointNumber(1));
  EXPECT_TRUE(store().SyncAll(CheckpointNumber(1)).ok());
}

class SegmentStoreFailureTest : public SegmentStoreTest {};

TEST_F(SegmentStoreFailureTest, AFailedSyncIsFatalAndNeverRepeated) {
  for (const uint32_t kind : {kDiskSync, kDiskSyncDirectory}) {
    StoreFixture fixture;
    SegmentStore& store = *fixture.store;
    auto appender = std::move(*store.NewAppender(SegmentKind::kBase));
    const auto address = appender->Append(BaseHeader(PageId(1)), "payload");
    ASSERT_TRUE(appender->Write().ok());
    const int fault = fixture.disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kind, .count = 1});
    store.BeginCheckpoint(CheckpointNumber(1));
    const auto synced = store.SyncAll(CheckpointNumber(1));
    EXPECT_EQ(synced.status().code(), ErrorCode::kIoError);
    EXPECT_EQ(fixture.disk.hits(fault), 1u);
    EXPECT_EQ(store.fatal().ToString(), synced.status().ToString());
    const uint64_t syncs = fixture.disk.counts().syncs + fixture.disk.counts().directory_syncs;
    PartBuffer buffer;
    EXPECT_EQ(store.SyncAll(CheckpointNumber(1)).status().code(), ErrorCode::kIoError);
    EXPECT_EQ(store.Read(*address, PageId(1), &buffer).code(), ErrorCode::kIoError);
    EXPECT_EQ(appender->Append(BaseHeader(PageId(1)), "x").status().code(), ErrorCode::kIoError);
    EXPECT_EQ(appender->Write().code(), ErrorCode::kIoError);
    EXPECT_EQ(store.NewAppender(SegmentKind::kBase).status().code(), ErrorCode::kIoError);
    EXPECT_EQ(store.RemoveDeadSegments(CheckpointNumber(9)).status().code(), ErrorCode::kIoError);
    EXPECT_EQ(fixture.disk.counts().syncs + fixture.disk.counts().directory_syncs, syncs);
  }
}

TEST_F(SegmentStoreFailureTest, NoDescriptorForANewSegmentIsNotFatal) {
  StoreFixture fixture;
  auto appender = std::move(*fixture.store->NewAppender(SegmentKind::kBase));
  const int fault = fixture.disk.AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskName, .count = 2});
  EXPECT_EQ(appender->Append(BaseHeader(PageId(1)), "payload").status(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(appender->Append(BaseHeader(PageId(1)), std::string(70'000, 'x')).status(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(fixture.disk.hits(fault), 2u);
  EXPECT_EQ(fixture.store->fatal().ToString(), "OK");
  EXPECT_TRUE(appender->Append(BaseHeader(PageId(1)), "payload").ok());
  EXPECT_TRUE(appender->Write().ok());
}

TEST_F(SegmentStoreFailureTest, AFailedWriteIsFatal) {
  for (const auto action : {DiskFault::Action::kIoError, DiskFault::Action::kShort}) {
    StoreFixture fixture;
    auto appender = std::move(*fixture.store->NewAppender(SegmentKind::kBase));
    fixture.disk.AddFault({.action = action, .kinds = kDiskWrite, .count = 1});
    ASSERT_TRUE(appender->Append(BaseHeader(PageId(1)), "payload").ok());
    EXPECT_EQ(appender->Write().code(), ErrorCode::kIoError);
    EXPECT_EQ(fixture.store->fatal().code(), ErrorCode::kIoError);
  }
}

// EIO, a short read and a flipped bit, for each read of a look-up and of a scan. They are never fatal and never give
// a wrong answer.
TEST_F(SegmentStoreFailureTest, EveryReadThatGoesWrongIsNoticed) {
  auto appender = NewAppender();
  for (uint32_t page = 1; page <= 40; ++page) (void)Append(*appender, page, size_t{100} * page);
  ASSERT_TRUE(appender->Write().ok());
  for (const auto action : {DiskFault::Action::kIoError, DiskFault::Action::kShort, DiskFault::Action::kFlipBit}) {
    uint64_t noticed = 0;
    for (const auto& [address, written] : parts_) {
      for (int repeat = 0; repeat < 10; ++repeat) {
        const int fault = fixture_.disk.AddFault({.action = action, .kinds = kDiskRead, .count = 1});
        PartBuffer buffer;
        const Status read = store().Read(address, written.page, &buffer);
        EXPECT_EQ(fixture_.disk.hits(fault), 1u);
        // The flipped bit may be in the rest of the blocks that were read.
        if (read.ok()) {
          EXPECT_EQ(action, DiskFault::Action::kFlipBit);
          EXPECT_TRUE(buffer.part().payload == PayloadOf(written.page, written.salt, written.bytes));
          continue;
        }
        ++noticed;
        EXPECT_EQ(read.code(), action == DiskFault::Action::kIoError ? ErrorCode::kIoError : ErrorCode::kCorruption);
        EXPECT_NE(read.message().find("/dc/pages/base-"), std::string_view::npos) << read.ToString();
      }
    }
    EXPECT_GT(noticed, 100u);
    const int fault = fixture_.disk.AddFault({.action = action, .kinds = kDiskRead, .count = 1});
    const Status scanned =
        store().ForEachPart(parts_.begin()->first.segment(), [](const PartView&) { return Status::Ok(); });
    EXPECT_EQ(fixture_.disk.hits(fault), 1u);
    EXPECT_FALSE(scanned.ok());
  }
  EXPECT_EQ(ReadAll(store()).ToString(), "OK");
}

// For any flipped bit of the file, a scan notices it, and so does a read of the part that contains it.
TEST_F(SegmentStoreFailureTest, EveryFlippedBitOfASegmentIsNoticed) {
  auto appender = NewAppender();
  for (uint32_t page = 1; page <= 5; ++page) {
    (void)Append(*appender, page, size_t{50} * page);
    if (page == 3) ASSERT_TRUE(appender->Write().ok());
  }
  ASSERT_TRUE(appender->Write().ok());
  const uint64_t segment = parts_.begin()->first.segment();
  const std::string path = kTestPages + "/" + SegmentName(SegmentKind::kBase, segment);
  const uint64_t bytes = UsageOf(segment).written_bytes;
  ASSERT_EQ(bytes, 3u * 4096);
  for (uint64_t at = kSegmentHeaderBytes; at < bytes; at += at % 4096 < 900 ? 3 : 101) {
    const int bit = static_cast<int>(at % 8);
    ASSERT_TRUE(fixture_.disk.FlipBit(path, at, bit).ok());
    const Status scanned = store().ForEachPart(segment, [](const PartView&) { return Status::Ok(); });
    EXPECT_EQ(scanned.code(), ErrorCode::kCorruption) << at;
    for (const auto& [address, written] : parts_) {
      const bool inside = at >= address.offset() && at < address.offset() + PartBytesInUnits(written.bytes);
      EXPECT_EQ(ReadsBack(address).code(), inside ? ErrorCode::kCorruption : ErrorCode::kOk) << at;
    }
    ASSERT_TRUE(fixture_.disk.FlipBit(path, at, bit).ok());
  }
}

TEST_F(SegmentStoreFailureTest, AFileThatCannotBeRemovedIsTriedAgain) {
  auto appender = NewAppender();
  const std::vector<PageAddress> addresses = FillASegment(*appender);
  for (const PageAddress address : addresses) store().MarkDead(address);
  appender.reset();
  store().BeginCheckpoint(CheckpointNumber(1));
  fixture_.disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskName, .count = 1});
  EXPECT_EQ(store().RemoveDeadSegments(CheckpointNumber(1)).status().code(), ErrorCode::kIoError);
  EXPECT_EQ(FilesOnDisk(), 1u);
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(1)), 1u);
  EXPECT_EQ(FilesOnDisk(), 0u);
}

}  // namespace
}  // namespace deut::dc
