#include "dc/page_store/segment_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "common/testing/test_points.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store_fixture.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

TEST_F(SegmentStoreTest, PartsOfAllSizesReadBackOnceWritten) {
  auto appender = NewAppender();
  Random random(7);
  for (uint32_t page = 1; page <= 300; ++page) {
    const size_t bytes = random.OneIn(20)  ? random.Below(200'000)
                         : random.OneIn(3) ? random.Below(30'000)
                                           : random.Below(500);
    const PageAddress address = Append(*appender, page, bytes);
    if (random.OneIn(5)) {
      // A part cannot be read before it is written.
      PartBuffer buffer;
      EXPECT_EQ(store().Read(address, PageId(page), &buffer).code(), ErrorCode::kCorruption);
      ASSERT_TRUE(appender->Write().ok());
      EXPECT_EQ(ReadsBack(address), ErrorCode::kOk);
    }
  }
  ASSERT_TRUE(appender->Write().ok());
  EXPECT_EQ(ReadAll(store()).ToString(), "OK");
  EXPECT_LE(appender->buffer_bytes(), 16u << 10);
  const StoreTotals totals = store().totals();
  EXPECT_GT(totals.memory_bytes, appender->buffer_bytes() + 200 * totals.segments);
  EXPECT_LT(totals.memory_bytes, appender->buffer_bytes() + 1000 * totals.segments);
  EXPECT_EQ(totals.parts_appended, 300u);
  EXPECT_GT(totals.segments, 20u);
  EXPECT_GE(totals.bytes_written, totals.bytes_appended);
  EXPECT_GE(totals.reads, 300u);
  EXPECT_GE(totals.bytes_read, totals.live_bytes / 2);
  // Every written part is live without a call of AddLive.
  uint64_t live = 0;
  for (const auto& [address, written] : parts_) live += address.length_bound();
  EXPECT_EQ(totals.live_bytes, live);
}

TEST_F(SegmentStoreTest, TheLargestPartIsTakenAndALargerOneRefused) {
  auto appender = NewAppender();
  const PageAddress small = Append(*appender, 1, 10);
  const PageAddress large = Append(*appender, 2, kMaxPayloadBytes);
  const std::string too_large(kMaxPayloadBytes + 1, 'x');
  const auto refused = appender->Append(BaseHeader(PageId(3)), too_large);
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(appender->Write().ok());
  EXPECT_EQ(ReadsBack(small).ToString(), "OK");
  EXPECT_EQ(ReadsBack(large).ToString(), "OK");
  EXPECT_NE(small.segment(), large.segment());
  EXPECT_EQ(UsageOf(large.segment()).closed, true);
}

// On a real file system, unbuffered where possible.
TEST_F(SegmentStoreTest, OnTheMachinesDisk) {
  const testing::TempDir directory;
  for (const IoKind io : {IoKind::kAuto, IoKind::kPosix}) {
    const auto storage = std::move(*NewSystemStorage(io, RealRuntime()));
    const std::string path = directory.path() + (io == IoKind::kAuto ? "/auto" : "/posix");
    std::vector<SegmentExtent> extents;
    uint64_t next = 0;
    parts_.clear();
    {
      const auto store = std::move(*SegmentStore::Create(*storage, RealRuntime(), path, kTestDc, SmallSegments()));
      auto appender = std::move(*store->NewAppender(SegmentKind::kBase));
      Random random(9);
      for (uint32_t page = 1; page <= 100; ++page) {
        (void)Append(*appender, page, random.OneIn(20) ? 150'000 : random.Below(10'000));
        if (random.OneIn(3)) ASSERT_TRUE(appender->Write().ok());
      }
      ASSERT_TRUE(appender->Write().ok());
      store->BeginCheckpoint(CheckpointNumber(1));
      extents = *store->SyncAll(CheckpointNumber(1));
      next = store->next_segment();
      EXPECT_EQ(ReadAll(*store).ToString(), "OK");
    }
    const auto opened =
        SegmentStore::Open(*storage, RealRuntime(), path, kTestDc, SmallSegments(), CheckpointNumber(1), extents, next);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_EQ(ReadAll(**opened).ToString(), "OK");
    for (const SegmentExtent& extent : extents) {
      EXPECT_EQ((*opened)->ForEachPart(extent.number, [](const PartView&) { return Status::Ok(); }).ToString(), "OK");
    }
    (*opened)->BeginCheckpoint(CheckpointNumber(2));
    (*opened)->BeginCheckpoint(CheckpointNumber(3));
    EXPECT_EQ(*(*opened)->RemoveDeadSegments(CheckpointNumber(2)), extents.size());
    EXPECT_TRUE(storage->List(path)->empty());
  }
}

TEST_F(SegmentStoreTest, ForEachPartFindsThemAllInOrder) {
  auto base = NewAppender(), large = NewAppender();
  Random random(3);
  for (uint32_t page = 1; page <= 100; ++page) {
    (void)Append(*base, page, random.Below(9000));
    if (random.OneIn(4)) ASSERT_TRUE(base->Write().ok());
  }
  ASSERT_TRUE(base->Write().ok());
  (void)Append(*large, 1, 1'500'000);
  ASSERT_TRUE(large->Write().ok());
  (void)Append(*base, 101, 10);  // appended, not written
  const PageAddress unwritten = parts_.rbegin()->first;
  std::map<PageAddress, Written> found;
  for (const SegmentUsage& usage : store().usage()) {
    PageAddress last;
    const Status scanned = store().ForEachPart(usage.number, [&](const PartView& part) {
      EXPECT_LT(last, part.address);
      last = part.address;
      EXPECT_TRUE(parts_.contains(part.address));
      const Written& written = parts_[part.address];
      EXPECT_TRUE(part.payload == PayloadOf(written.page, written.salt, written.bytes));
      found[part.address] = written;
      return Status::Ok();
    });
    EXPECT_EQ(scanned.ToString(), "OK");
  }
  EXPECT_FALSE(found.contains(unwritten));
  EXPECT_EQ(found.size() + 1, parts_.size());
  // An error of the callback ends the scan.
  int calls = 0;
  const Status stopped = store().ForEachPart(parts_.begin()->first.segment(), [&](const PartView&) {
    ++calls;
    return DEUT_ERROR(kInternal, "enough");
  });
  EXPECT_EQ(stopped.code(), ErrorCode::kInternal);
  EXPECT_EQ(calls, 1);
}

TEST_F(SegmentStoreTest, SeveralReadsInFlightCompleteInAnyOrder) {
  auto appender = NewAppender();
  for (uint32_t page = 1; page <= 40; ++page) (void)Append(*appender, page, size_t{200} * page);
  ASSERT_TRUE(appender->Write().ok());
  auto queue = store().NewQueue(parts_.size());
  ASSERT_TRUE(queue.ok());
  std::vector<PartBuffer> buffers(parts_.size());
  size_t begun = 0;
  for (const auto& [address, written] : parts_) {
    PartBuffer& buffer = buffers[begun++];
    ASSERT_TRUE(store().BeginRead(address, written.page, &buffer).ok());
    buffer.request().context = &buffer;
    ASSERT_TRUE((*queue)->SubmitLater(&buffer.request()).ok());
  }
  std::vector<IoRequest*> completed;
  while ((*queue)->in_flight() > 0) (*queue)->Reap(&completed, kNoDeadline);
  ASSERT_EQ(completed.size(), parts_.size());
  std::set<PageAddress> found;
  for (const IoRequest* request : completed) {
    auto* const buffer = static_cast<PartBuffer*>(request->context);
    ASSERT_TRUE(store().EndRead(buffer).ok());
    const PartView& part = buffer->part();
    ASSERT_TRUE(found.insert(part.address).second);
    const Written& written = parts_.at(part.address);
    EXPECT_TRUE(part.payload == PayloadOf(written.page, written.salt, written.bytes));
  }
  EXPECT_EQ(store().totals().reads, parts_.size());
}

TEST_F(SegmentStoreTest, ARunReadsNeighbouringPartsWithOneTransfer) {
  auto appender = NewAppender();
  for (uint32_t page = 1; page <= 40; ++page) (void)Append(*appender, page, size_t{50} * page);
  ASSERT_TRUE(appender->Write().ok());
  ASSERT_EQ(parts_.begin()->first.segment(), parts_.rbegin()->first.segment());
  auto queue = store().NewQueue(1);
  ASSERT_TRUE(queue.ok());
  PartRun run;
  for (int round = 0; round < 2; ++round) {  // a run is used again
    const auto first = std::next(parts_.begin(), ptrdiff_t{5} * round);
    ASSERT_TRUE(store().BeginReadRun(first->first, parts_.rbegin()->first, &run).ok());
    ASSERT_TRUE((*queue)->Submit(&run.request()).ok());
    std::vector<IoRequest*> completed;
    while (completed.empty()) (*queue)->Reap(&completed, kNoDeadline);
    ASSERT_TRUE(store().EndReadRun(&run).ok());
    EXPECT_EQ(run.request().file, nullptr) << "a run that is read keeps no file open";
    for (auto it = first; it != parts_.end(); ++it) {
      const auto part = run.Part(it->first, it->second.page);
      ASSERT_TRUE(part.ok()) << part.status().ToString();
      EXPECT_TRUE(part->payload == PayloadOf(it->second.page, it->second.salt, it->second.bytes));
      EXPECT_EQ(run.Part(it->first, PageId(4000)).status(), ErrorCode::kCorruption) << "another page's part";
    }
    run.Reset();
  }
  EXPECT_EQ(store().totals().reads, 2u);
  const PageAddress gone = PageAddress::Make(parts_.begin()->first.segment() + 7, kSegmentHeaderBytes, 100);
  EXPECT_EQ(store().BeginReadRun(gone, gone, &run), ErrorCode::kNotFound);
  // Nor does one that could not be read.
  ASSERT_TRUE(store().BeginReadRun(parts_.begin()->first, parts_.begin()->first, &run).ok());
  run.request().status = DEUT_ERROR(kIoError, "the disk is gone");
  EXPECT_EQ(store().EndReadRun(&run), ErrorCode::kIoError);
  EXPECT_EQ(run.request().file, nullptr);
}

// A thread with reads in flight opens no file.
TEST_F(SegmentStoreTest, AReadIsBegunWithoutTheDiskOnlyIfItsFileIsOpen) {
  auto appender = NewAppender();
  const PageAddress address = Append(*appender, 1, 3000);
  ASSERT_TRUE(appender->Write().ok());
  PartBuffer buffer;
  const int fault = fixture_.disk.AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen, .count = 1});
  const Result<bool> tried = store().TryBeginRead(address, PageId(1), &buffer);
  ASSERT_TRUE(tried.ok());
  EXPECT_FALSE(*tried);
  EXPECT_EQ(fixture_.disk.hits(fault), 0u);
  EXPECT_EQ(store().BeginRead(address, PageId(1), &buffer), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(store().BeginRead(address, PageId(1), &buffer).ok());
  buffer.ForgetRead();
  const Result<bool> again = store().TryBeginRead(address, PageId(1), &buffer);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again);
  buffer.ForgetRead();
  // An address that names nothing is an error at once.
  const PageAddress wrong = PageAddress::Make(address.segment() + 1000, address.offset(), 3040);
  EXPECT_EQ(store().TryBeginRead(wrong, PageId(1), &buffer).status(), ErrorCode::kNotFound);
}

TEST_F(SegmentStoreTest, AnAddressThatIsNotOneIsRefused) {
  auto appender = NewAppender();
  const PageAddress address = Append(*appender, 1, 3000);
  ASSERT_TRUE(appender->Write().ok());
  PartBuffer buffer;
  const auto code = [&](PageAddress wrong, uint32_t page = 1) {
    return store().Read(wrong, PageId(page), &buffer).code();
  };
  EXPECT_EQ(code(address), ErrorCode::kOk);
  EXPECT_EQ(code(address, 2), ErrorCode::kCorruption);
  EXPECT_EQ(code(PageAddress::Make(address.segment(), address.offset(), 100)), ErrorCode::kCorruption);     // too short
  EXPECT_EQ(code(PageAddress::Make(address.segment(), address.offset(), 60'000)), ErrorCode::kCorruption);  // too long
  EXPECT_EQ(code(PageAddress::Make(address.segment(), address.offset() + 128, 3040)), ErrorCode::kCorruption);
  EXPECT_EQ(code(PageAddress::Make(address.segment(), 0, 3040)), ErrorCode::kCorruption);
  EXPECT_EQ(code(PageAddress::Make(address.segment(), 1 << 20, 3040)), ErrorCode::kCorruption);
  EXPECT_EQ(code(PageAddress::Make(address.segment() + 1000, address.offset(), 3040)), ErrorCode::kNotFound);
  EXPECT_EQ(code(PageAddress::FromRaw(UINT64_MAX)), ErrorCode::kNotFound);
  EXPECT_EQ(store().ForEachPart(999, [](const PartView&) { return Status::Ok(); }).code(), ErrorCode::kNotFound);
}

TEST_F(SegmentStoreTest, OptionsThatCannotBeAreRefused) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, uint64_t{10'000}, (uint64_t{1} << 30) + 4096}) {
    SegmentStoreOptions options;
    options.segment_bytes = bytes;
    EXPECT_EQ(SegmentStore::Create(*fixture_.storage, RealRuntime(), "/other", kTestDc, options).status().code(),
              ErrorCode::kInvalidArgument)
        << bytes;
  }
  SegmentStoreOptions options;
  // A segment of more than half of the reserve could not be emptied on a full disk.
  options.reserve_bytes = 2 * options.segment_bytes - 1;
  EXPECT_EQ(SegmentStore::Create(*fixture_.storage, RealRuntime(), "/other", kTestDc, options).status().code(),
            ErrorCode::kInvalidArgument);
  options = {};
  options.max_segment_bytes = uint64_t{2} << 30;
  EXPECT_EQ(SegmentStore::Create(*fixture_.storage, RealRuntime(), "/other", kTestDc, options).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(SegmentStoreTest, ADeadSegmentGoesOnceNoKeptCheckpointCanNameIt) {
  auto appender = NewAppender();
  const std::vector<PageAddress> addresses = FillASegment(*appender);
  const uint64_t full = addresses.front().segment();
  store().BeginCheckpoint(CheckpointNumber(1));
  ASSERT_TRUE(store().SyncAll(CheckpointNumber(1)).ok());
  store().BeginCheckpoint(CheckpointNumber(2));
  for (const PageAddress address : addresses) {
    if (address.segment() == full) store().MarkDead(address);
  }
  EXPECT_EQ(UsageOf(full).live_bytes, 0u);
  EXPECT_TRUE(UsageOf(full).closed);
  // Checkpoint 2 may name it, because its images may have been captured before. So it stays while 2 is kept.
  for (const uint64_t kept : {1, 2}) {
    const auto removed = store().RemoveDeadSegments(CheckpointNumber(kept));
    ASSERT_TRUE(removed.ok());
    EXPECT_EQ(*removed, 0u);
    EXPECT_EQ(ReadsBack(addresses.front()).ToString(), "OK");
  }
  // Checkpoint 2 names it, 3 does not.
  const auto named = [&](uint64_t k) {
    const auto extents = store().SyncAll(CheckpointNumber(k));
    EXPECT_TRUE(extents.ok());
    return std::ranges::any_of(*extents, [&](const SegmentExtent& extent) { return extent.number == full; });
  };
  EXPECT_TRUE(named(2));
  store().BeginCheckpoint(CheckpointNumber(3));
  EXPECT_FALSE(named(3));
  const auto removed = store().RemoveDeadSegments(CheckpointNumber(3));
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(*removed, 1u);
  EXPECT_EQ(ReadsBack(addresses.front()).code(), ErrorCode::kNotFound);
  EXPECT_EQ(ReadsBack(addresses.back()).ToString(), "OK");
  EXPECT_EQ(FilesOnDisk(), 1u);
  EXPECT_EQ(store().totals().segments_removed, 1u);
}

TEST_F(SegmentStoreTest, TheSegmentThatIsAppendedToIsNeverRemoved) {
  auto appender = NewAppender();
  const PageAddress address = Append(*appender, 1, 100);
  ASSERT_TRUE(appender->Write().ok());
  store().MarkDead(address);
  store().BeginCheckpoint(CheckpointNumber(9));
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(9)), 0u);
  const PageAddress next = Append(*appender, 2, 100);
  EXPECT_EQ(next.segment(), address.segment());
  ASSERT_TRUE(appender->Write().ok());
  store().MarkDead(next);
  appender.reset();
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(9)), 0u);
  store().BeginCheckpoint(CheckpointNumber(10));
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(10)), 1u);
  EXPECT_EQ(FilesOnDisk(), 0u);
}

// Every segment that a kept checkpoint names stays, even if it holds no page of it, because a start refuses when a
// named segment is missing.
TEST_F(SegmentStoreTest, ASegmentClosedAfterACheckpointNamedItOutlivesThatCheckpoint) {
  auto appender = NewAppender();
  const PageAddress address = Append(*appender, 1, 100);
  ASSERT_TRUE(appender->Write().ok());
  store().MarkDead(address);
  store().BeginCheckpoint(CheckpointNumber(5));
  ASSERT_EQ(store().SyncAll(CheckpointNumber(5))->size(), 1u);
  appender.reset();
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(4)), 0u);
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(5)), 0u);
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(6)), 1u);
}

#ifdef DEUT_TEST_POINTS
TEST_F(SegmentStoreTest, ASegmentWhoseLastPartDiesWhileACheckpointNamesItOutlivesThatCheckpoint) {
  auto appender = NewAppender();
  const PageAddress address = Append(*appender, 1, 100);
  ASSERT_TRUE(appender->Write().ok());
  appender.reset();
  store().BeginCheckpoint(CheckpointNumber(4));
  // A whole checkpoint runs between the two steps of MarkDead.
  size_t named = 0;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "page_store.mark_dead.before_live") return;
    store().BeginCheckpoint(CheckpointNumber(5));
    named = store().SyncAll(CheckpointNumber(5))->size();
  });
  store().MarkDead(address);
  testing::SetPointHandler({});
  ASSERT_EQ(named, 1u);
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(5)), 0u);
  EXPECT_EQ(*store().RemoveDeadSegments(CheckpointNumber(6)), 1u);
}
#endif

TEST_F(SegmentStoreTest, SyncedPartsOutliveALossOfPower) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    StoreFixture fixture(seed);
    parts_.clear();
    auto appender = std::move(*fixture.store->NewAppender(SegmentKind::kBase));
    for (uint32_t page = 1; page <= 40; ++page) (void)Append(*appender, page, size_t{100} * page);
    ASSERT_TRUE(appender->Write().ok());
    fixture.store->BeginCheckpoint(CheckpointNumber(1));
    const std::vector<SegmentExtent> extents = *fixture.store->SyncAll(CheckpointNumber(1));
    EXPECT_GT(extents.size(), 1u);
    // Parts written after SyncAll may be lost.
    ASSERT_TRUE(appender->Append(BaseHeader(PageId(41)), std::string(50'000, 'x')).ok() && appender->Write().ok());
    appender.reset();
    fixture.store.reset();
    fixture.disk.Crash(seed);
    const auto storage = fixture.disk.Mount();
    const auto opened = SegmentStore::Open(*storage, RealRuntime(), kTestPages, kTestDc, SmallSegments(),
                                           CheckpointNumber(1), extents, 1);
    ASSERT_TRUE(opened.ok()) << "seed " << seed << ": " << opened.status().ToString();
    ASSERT_EQ(ReadAll(**opened).ToString(), "OK") << "seed " << seed;
  }
}

TEST_F(SegmentStoreTest, AnAppenderThatEndsLeavesNothingOfWhatItDidNotWrite) {
  auto appender = NewAppender();
  for (int i = 0; i < 3; ++i) (void)Append(*appender, 1, 30'000);
  EXPECT_GT(FilesOnDisk(), 1u);
  appender.reset();
  EXPECT_EQ(FilesOnDisk(), 0u);
  EXPECT_EQ(store().totals().segments, 0u);
  EXPECT_EQ(store().totals().live_bytes, 0u);
}

}  // namespace
}  // namespace deut::dc
