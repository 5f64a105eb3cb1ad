// The opening of a store with the segments that a checkpoint names: files that stay, files that go, and refusals.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/segment_store_fixture.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

class SegmentStoreOpenTest : public SegmentStoreTest {
 protected:
  Result<std::unique_ptr<SegmentStore>> Reopen(const std::vector<SegmentExtent>& extents, uint64_t next = 1,
                                               CheckpointNumber checkpoint = CheckpointNumber(5)) {
    return SegmentStore::Open(*fixture_.storage, RealRuntime(), kTestPages, kTestDc, SmallSegments(), checkpoint,
                              extents, next);
  }
};

TEST_F(SegmentStoreOpenTest, NamedSegmentsAreThereAndTheOthersGoAfterTheNextCheckpoint) {
  auto appender = NewAppender();
  std::vector<PageAddress> addresses = FillASegment(*appender);
  store().BeginCheckpoint(CheckpointNumber(5));
  auto extents = *store().SyncAll(CheckpointNumber(5));
  const uint64_t next = store().next_segment();
  auto late = NewAppender(SegmentKind::kDelta);
  const auto unnamed = late->Append(DeltaHeader(PageId(1), addresses[0]), "later");
  ASSERT_TRUE(unnamed.ok() && late->Write().ok());
  appender.reset();
  late.reset();
  fixture_.store.reset();

  auto opened = Reopen(extents, next);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  SegmentStore& store = **opened;
  for (const PageAddress address : addresses) {
    ASSERT_EQ(store.AddLive(address.segment(), address.length_bound()).ToString(), "OK");
  }
  EXPECT_EQ(ReadAll(store).ToString(), "OK");
  EXPECT_GT(store.next_segment(), unnamed->segment());
  PartBuffer buffer;
  EXPECT_EQ(store.Read(*unnamed, PageId(1), &buffer).code(), ErrorCode::kNotFound);
  EXPECT_EQ(FilesOnDisk(), 3u);
  // Nothing is ever appended to a segment of an earlier incarnation.
  auto fresh = std::move(*store.NewAppender(SegmentKind::kBase));
  const auto address = fresh->Append(BaseHeader(PageId(1)), "new");
  EXPECT_GT(address->segment(), unnamed->segment());
  ASSERT_TRUE(fresh->Write().ok());
  store.BeginCheckpoint(CheckpointNumber(6));
  EXPECT_EQ(store.SyncAll(CheckpointNumber(6))->size(), 3u);
  EXPECT_EQ(*store.RemoveDeadSegments(CheckpointNumber(5)), 1u);  // the file that no checkpoint names
  EXPECT_EQ(FilesOnDisk(), 3u);
  EXPECT_EQ(ReadAll(store).ToString(), "OK");
}

TEST_F(SegmentStoreOpenTest, TheLogSaysWhenHalfOfTheNumbersAreUsedUp) {
  constexpr uint64_t kHalf = PageAddress::kMaxSegment / 2;
  const auto warns = [](const ::deut::testing::RecordedLog& log) {
    return log.HasLineWith(" numbers of segments are used up", "A larger --dc_segment uses fewer of them");
  };
  fixture_.store.reset();
  {
    const ::deut::testing::RecordedLog log;
    const auto store = std::move(*Reopen({}, kHalf));
    EXPECT_FALSE(warns(log));
    const auto appender = std::move(*store->NewAppender(SegmentKind::kBase));
    ASSERT_TRUE(appender->Append(BaseHeader(PageId(1)), "payload").ok() && appender->Write().ok());
    EXPECT_TRUE(warns(log));
  }
  const ::deut::testing::RecordedLog log;
  ASSERT_TRUE(Reopen({}).ok());
  EXPECT_TRUE(warns(log)) << "again at each start";
}

TEST_F(SegmentStoreOpenTest, LeftOverFilesCountWithTheirLengths) {
  constexpr uint64_t kLong = 300 << 10, kShort = 8 << 10;
  fixture_.store.reset();
  for (const auto& [number, bytes] : {std::pair{255, kLong}, std::pair{256, kShort}}) {
    const auto file = fixture_.storage->Open(kTestPages + "/" + SegmentName(SegmentKind::kBase, number),
                                             {.create = true, .writable = true});
    const std::string zeros(bytes, '\0');
    ASSERT_TRUE(file.ok() && (*file)->Write(0, zeros.data(), zeros.size()).ok());
  }
  const auto store = std::move(*Reopen({}));
  ASSERT_TRUE(store->CheckLeftOverFiles().ok());
  // At least as a short segment each.
  EXPECT_EQ(store->totals().left_over_bytes, kLong + SmallSegments().segment_bytes);
  store->BeginCheckpoint(CheckpointNumber(6));
  EXPECT_EQ(*store->RemoveDeadSegments(CheckpointNumber(5)), 2u);
  EXPECT_EQ(store->totals().left_over_bytes, 0u);
}

TEST_F(SegmentStoreOpenTest, ASegmentThatOnlyTheOlderGenerationNamesOutlivesIt) {
  auto appender = NewAppender();
  const std::vector<PageAddress> addresses = FillASegment(*appender);
  store().BeginCheckpoint(CheckpointNumber(5));
  auto extents = *store().SyncAll(CheckpointNumber(5));
  appender.reset();
  fixture_.store.reset();
  // Checkpoint 5 names it, though it holds no page of it; so it may have been live at checkpoint 4.
  auto store = std::move(*Reopen(extents));
  for (const PageAddress address : addresses) {
    ASSERT_TRUE(store->AddLive(address.segment(), address.length_bound()).ok());
  }
  for (const PageAddress address : addresses) store->MarkDead(address);
  store->BeginCheckpoint(CheckpointNumber(6));
  EXPECT_EQ(store->SyncAll(CheckpointNumber(6))->size(), 0u);
  EXPECT_EQ(*store->RemoveDeadSegments(CheckpointNumber(5)), 0u);  // 6 and 5 are kept
  store->BeginCheckpoint(CheckpointNumber(7));
  EXPECT_EQ(*store->RemoveDeadSegments(CheckpointNumber(6)), 2u);  // 7 and 6 are kept
}

TEST_F(SegmentStoreOpenTest, SegmentsThatContradictTheCheckpointAreRefusedAndNothingIsChanged) {
  auto appender = NewAppender();
  const std::vector<PageAddress> addresses = FillASegment(*appender);
  store().BeginCheckpoint(CheckpointNumber(5));
  const std::vector<SegmentExtent> extents = *store().SyncAll(CheckpointNumber(5));
  appender.reset();
  fixture_.store.reset();
  const uint64_t before = fixture_.disk.counts().changing;
  const auto refused = [&](auto change) {
    std::vector<SegmentExtent> wrong = extents;
    change(wrong);
    const auto opened = Reopen(wrong);
    return opened.status().code();
  };
  EXPECT_EQ(refused([](auto&) {}), ErrorCode::kOk);
  EXPECT_EQ(refused([](auto& e) { e[0].number += 100; }), ErrorCode::kCorruption);
  EXPECT_EQ(refused([](auto& e) { e[0].number = 0; }), ErrorCode::kCorruption);
  EXPECT_EQ(refused([](auto& e) { e[0].kind = SegmentKind::kDelta; }), ErrorCode::kCorruption);
  EXPECT_EQ(refused([](auto& e) { e[0].written_bytes += 4096; }), ErrorCode::kCorruption);
  EXPECT_EQ(refused([](auto& e) { e[0].written_bytes = 100; }), ErrorCode::kCorruption);
  EXPECT_EQ(refused([](auto& e) { e.push_back(e[0]); }), ErrorCode::kCorruption);
  // The DC id is another one.
  EXPECT_EQ(SegmentStore::Open(*fixture_.storage, RealRuntime(), kTestPages, DcId(1), SmallSegments(),
                               CheckpointNumber(5), extents, 1)
                .status()
                .code(),
            ErrorCode::kCorruption);
  // A segment that the store does not have.
  auto opened = std::move(*Reopen(extents));
  EXPECT_EQ(opened->AddLive(addresses[0].segment(), 100).code(), ErrorCode::kOk);
  EXPECT_EQ(opened->AddLive(77, 100).code(), ErrorCode::kCorruption);
  EXPECT_EQ(fixture_.disk.counts().changing, before);
  opened.reset();
  // A header with any bit flipped.
  const std::string path = kTestPages + "/" + SegmentName(SegmentKind::kBase, extents[0].number);
  for (uint64_t at = 0; at < kSegmentHeaderBytes; at += at < 64 ? 1 : 101) {
    ASSERT_TRUE(fixture_.disk.FlipBit(path, at, 3).ok());
    EXPECT_EQ(Reopen(extents).status().code(), ErrorCode::kCorruption) << at;
    ASSERT_TRUE(fixture_.disk.FlipBit(path, at, 3).ok());
  }
  // The disk fails at every operation of the start.
  for (const auto action : {DiskFault::Action::kIoError, DiskFault::Action::kShort, DiskFault::Action::kFlipBit}) {
    for (uint64_t skip = 0;; ++skip) {
      const int fault = fixture_.disk.AddFault({.action = action, .skip = skip, .count = 1});
      const auto result = Reopen(extents);
      const bool hit = fixture_.disk.hits(fault) > 0;
      fixture_.disk.RemoveFault(fault);
      if (!hit) break;
      // Short and kFlipBit strike reads only.
      if (action == DiskFault::Action::kIoError) EXPECT_EQ(result.status().code(), ErrorCode::kIoError) << skip;
      EXPECT_TRUE(result.ok() || result.status() == ErrorCode::kIoError || result.status() == ErrorCode::kCorruption);
    }
  }
  EXPECT_EQ(fixture_.disk.counts().changing, before);
  EXPECT_EQ(Reopen(extents).status().ToString(), "OK");
}

}  // namespace
}  // namespace deut::dc
