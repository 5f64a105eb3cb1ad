// A flush beside a full or failing disk, other threads and other flushers, and the bounds of a batch. The parts that a
// page is written as are in flushed_parts_test.cc.
#include "dc/bwtree/page_flusher.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher_fixture.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Added = PageFlusher::Added;
using Action = DiskFault::Action;

// --- A full disk.

class FullDisk : public ::testing::TestWithParam<std::string_view> {};

// When either of the two kinds of segments finds no room, the written parts of the other kind are dead.
TEST_P(FullDisk, NothingIsRegisteredAndTheNextTrySucceeds) {
  StoredTree t;
  t.FillSettled(100);
  const PageId with_delta = t.LeafOf(20);
  const PageId as_a_whole = t.LeafOf(60);
  ASSERT_NE(with_delta, as_a_whole);
  t.Put(20, "delta");
  Rewrite(t, 60);
  const auto images = t.AllImages();
  const auto write_both = [&]() -> Status {
    for (const PageId page : {with_delta, as_a_whole}) {
      DEUT_ASSIGN_OR_RETURN(const Added added, t.Add(page));
      EXPECT_EQ(added, Added::kAdded);
    }
    return t.flusher().Write();
  };
  for (const uint32_t kinds : {uint32_t{kDiskWrite}, uint32_t{kDiskName}}) {
    const int fault =
        t.disk().AddFault({.action = Action::kNoSpace, .kinds = kinds, .path_contains = std::string(GetParam())});
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_EQ(write_both(), ErrorCode::kResourceExhausted);
      EXPECT_TRUE(t.flusher().empty());
      EXPECT_TRUE(t.store().fatal().ok());
      for (const PageId page : {with_delta, as_a_whole}) {
        EXPECT_FALSE(IsCleanPage(t, page));
        EXPECT_FALSE(t.Evict(page));
        EXPECT_EQ(t.ImageOf(page).newest(), images.at(page).newest());
      }
      ExpectNothingIsLost(t);
    }
    EXPECT_GE(t.disk().hits(fault), 3u);
    t.disk().RemoveAllFaults();
  }
  t.Put(21, "while the disk was full");
  ASSERT_TRUE(write_both().ok());
  EXPECT_TRUE(IsCleanPage(t, with_delta));
  EXPECT_TRUE(IsCleanPage(t, as_a_whole));
  EXPECT_EQ(t.ImageOf(with_delta).count(), 2u);
  EXPECT_EQ(t.ImageOf(as_a_whole).count(), 1u);
  ExpectNothingIsLost(t);
  ExpectRestores(t, t.records());
  t.Evict();
  t.ExpectRight();
}

INSTANTIATE_TEST_SUITE_P(PageFlusher, FullDisk, ::testing::Values("base-", "delta-", "/pages/"), [](const auto& test) {
  const std::string_view part = test.param;
  return std::string(part == "base-" ? "Base" : part == "delta-" ? "Delta" : "All");
});

TEST(PageFlusher, ADiskThatFillsUpWhileThePagesAreAddedGivesAllOfThemUp) {
  StoredTree t;
  t.FillSettled(100);
  const auto images = t.AllImages();
  for (uint64_t i = 0; i < 100; ++i) t.Put(i, std::string(900, 'n'));
  t.disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite});
  // Adds large pages until the appender's buffer must be written to the file.
  Status refused;
  for (int round = 0; refused.ok() && round < 100; ++round) {
    for (const PageId page : t.Pages(0)) {
      const auto added = t.Add(page);
      if (!added.ok()) {
        refused = added.status();
        break;
      }
    }
    for (uint64_t i = 0; i < 100; ++i) t.Put(i, std::string(8000, 'n'));
    if (refused.ok()) refused = t.flusher().Write();
  }
  EXPECT_EQ(refused, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(t.flusher().empty());
  for (const auto& [page, parts] : images) EXPECT_EQ(t.ImageOf(page).newest(), parts.newest());
  ExpectNothingIsLost(t);
  t.disk().RemoveAllFaults();
  t.Flush();
  ExpectNothingIsLost(t);
  ExpectRestores(t, t.records());
}

TEST(PageFlusher, AFailedWriteIsFatalAndChangesNothingInMemory) {
  for (const std::string part : {"base-", "delta-"}) {
    StoredTree t;
    t.FillSettled(100);
    const auto images = t.AllImages();
    const PageId leaf = t.LeafOf(20);
    const PageId other = t.LeafOf(60);
    t.Put(20, "delta");
    Rewrite(t, 60);
    ASSERT_EQ(AddOk(t, leaf), Added::kAdded);
    ASSERT_EQ(AddOk(t, other), Added::kAdded);
    t.disk().AddFault({.action = Action::kIoError, .kinds = kDiskWrite, .path_contains = part, .count = 1});
    const Status failed = t.flusher().Write();
    EXPECT_EQ(failed, ErrorCode::kIoError);
    EXPECT_NE(failed.message().find(part), std::string_view::npos) << failed.ToString();
    EXPECT_EQ(t.store().fatal(), ErrorCode::kIoError);
    // The flusher does not retry, although the disk works.
    const auto added = t.Add(leaf);
    EXPECT_EQ(added.ok() ? t.flusher().Write() : added.status(), ErrorCode::kIoError);
    for (const PageId page : {leaf, other}) {
      EXPECT_FALSE(IsCleanPage(t, page));
      EXPECT_FALSE(t.Evict(page));
      EXPECT_EQ(t.ImageOf(page).newest(), images.at(page).newest());
    }
    t.ExpectRight();
  }
}

// --- Races.

TEST_F(FlushedLeaf, APageThatOthersKeepChangingIsBusyAndStaysAsItWas) {
  t_.Put(20, "newer");
  const Node* const head = t_.HeadOf(leaf_);
  testing::SetCasHandler([](std::string_view name) { return name == "bwtree.mark.cas"; });
  EXPECT_EQ(AddOk(t_, leaf_), Added::kBusy);
  EXPECT_TRUE(t_.flusher().empty());
  EXPECT_EQ(t_.HeadOf(leaf_), head);
  // The exchange loses a few times only: the next try finds the newer head.
  std::atomic<int> lost{0};
  testing::SetCasHandler([&](std::string_view name) { return name == "bwtree.mark.cas" && lost.fetch_add(1) < 3; });
  t_.AtPoint("bwtree.mark.before_cas", [&] { t_.Put(21, "meanwhile"); });
  t_.Flush(leaf_);
  EXPECT_EQ(lost.load(), 4);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  ExpectRestores(t_, t_.records());
}

TEST(PageFlusher, UpdatesAboveTheMarkWaitForTheNextImage) {
  StoredTree t;
  t.FillSettled(60);
  const StoredTree::Records before = t.records();
  const PageId leaf = t.LeafOf(20);
  for (const char* const point : {"bwtree.flush.encoded", "bwtree.flush.before_register"}) {
    t.Put(20, "in the image");
    StoredTree::Records in_image = t.records();
    t.AtPoint(point, [&] { t.Put(22, point); });
    t.Flush(leaf);
    EXPECT_FALSE(IsCleanPage(t, leaf));
    EXPECT_FALSE(t.Evict(leaf));
    ExpectRestores(t, in_image);
    t.Flush(leaf);
    EXPECT_TRUE(IsCleanPage(t, leaf));
    ExpectRestores(t, t.records());
    ExpectNothingIsLost(t);
  }
}

TEST_F(FlushedLeaf, AMarkThatAConsolidationHasSwallowedIsSaidToBeWritten) {
  t_.Put(20, "newer");
  // A scan's consolidation replaces the chain by a page with the same content.
  t_.AtPoint("bwtree.flush.before_register", [&] {
    const uint64_t before = t_.tree().statistics().consolidations;
    while (t_.tree().statistics().consolidations == before) {
      RecordBatch batch;
      ASSERT_EQ(t_.tree().Read(KeyOf(20), &batch), BwTree::Found::kYes);
    }
    ASSERT_EQ(t_.HeadOf(leaf_)->kind, NodeKind::kBase);
  });
  t_.Flush(leaf_);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  EXPECT_EQ(AddOk(t_, leaf_), Added::kClean);
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.ExpectRight();
}

TEST_F(FlushedLeaf, OneFlusherAtATimeWritesAPage) {
  const auto created = PageFlusher::Create(t_.environment(), t_.store(), t_);
  ASSERT_TRUE(created.ok());
  PageFlusher& other = **created;
  t_.Put(20, LongValue('n'));
  ASSERT_EQ(AddOk(t_, leaf_), Added::kAdded);
  EXPECT_EQ(AddOk(t_, leaf_), Added::kAdded);  // it was already added
  auto added = t_.Add(other, leaf_);
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(*added, Added::kBusy);
  t_.Put(21, LongValue('s'));
  ASSERT_TRUE(t_.flusher().Write().ok());
  added = t_.Add(other, leaf_);
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(*added, Added::kAdded);
  ASSERT_TRUE(other.Write().ok());
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 3u);
  ExpectRestores(t_, t_.records());
}

TEST_F(FlushedLeaf, PagesThatAnEndingFlusherHasNotWrittenAnotherMayWrite) {
  t_.Put(20, "newer");
  {
    const auto created = PageFlusher::Create(t_.environment(), t_.store(), t_);
    ASSERT_TRUE(created.ok());
    const auto added = t_.Add(**created, leaf_);
    ASSERT_TRUE(added.ok() && *added == Added::kAdded);
  }
  EXPECT_FALSE(IsCleanPage(t_, leaf_));
  ExpectNothingIsLost(t_);
  t_.Flush(leaf_);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

TEST(PageFlusher, ThePartOfAPageThatWasFreedMeanwhileIsDead) {
  StoredTree t;
  t.FillSettled(60);
  const uint64_t used = t.pages().used();
  ASSERT_GT(used, 3u);
  t.Put(20, "delta");
  Rewrite(t, 50);
  ASSERT_EQ(AddOk(t, t.LeafOf(20)), Added::kAdded);
  ASSERT_EQ(AddOk(t, t.LeafOf(50)), Added::kAdded);
  t.Drop();
  EXPECT_EQ(t.pages().used(), 2u);  // the flusher still has to free their ids
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_EQ(t.LiveBytes(), 0u);
  EXPECT_EQ(t.pages().used(), 0u);
  EXPECT_TRUE(t.AllImages().empty());
}

TEST(PageFlusher, IsWorthAWriteOnceItHoldsAMegabyte) {
  StoredTree t;
  t.FillSettled(100);
  EXPECT_FALSE(t.flusher().full());
  t.Put(20, std::string(600 << 10, 'x'));
  ASSERT_EQ(AddOk(t, t.LeafOf(20)), Added::kAdded);
  EXPECT_FALSE(t.flusher().full());
  t.Put(60, std::string(600 << 10, 'x'));
  ASSERT_EQ(AddOk(t, t.LeafOf(60)), Added::kAdded);
  EXPECT_TRUE(t.flusher().full());
  EXPECT_GE(t.flusher().statistics().bytes, uint64_t{1200} << 10);
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_FALSE(t.flusher().full());
  EXPECT_TRUE(t.flusher().empty());
}

// Add runs inside a guard, so it must not wait for the disk. Every disk operation fails in this test.
TEST(PageFlusher, AddingTouchesNoDisk) {
  StoredTree t;
  t.FillSettled(60);
  t.Put(20, "delta");
  t.Fill(60, 90);  // adds pages that were never written, and splits others
  const int fault = t.disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite | kDiskName | kDiskSync});
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = t.disk().hits(fault);
    for (uint8_t level = 0; level <= t.tree().root_level(); ++level) {
      for (const PageId page : t.Pages(level)) EXPECT_NE(AddOk(t, page), Added::kBusy);
    }
    EXPECT_EQ(t.disk().hits(fault), before);
    EXPECT_EQ(t.flusher().Write(), ErrorCode::kResourceExhausted);
    EXPECT_TRUE(t.flusher().empty());
  }
  t.disk().RemoveAllFaults();
  t.Flush();
  ExpectNothingIsLost(t);
  ExpectRestores(t, t.records());
}

// The chain of pages that wait for one another is longer than a batch.
TEST(PageFlusher, AFullBatchTakesNothingMore) {
  StoredTree t;
  t.Fill(0, 30'000);  // no page was written
  ASSERT_GT(t.Pages(0).size(), 1000u);
  const PageId leftmost = t.LeafOf(0);
  int writes = 0;
  while (AddOk(t, leftmost) == Added::kBusy) {
    EXPECT_TRUE(t.flusher().full());
    ASSERT_TRUE(t.flusher().Write().ok());
    ++writes;
    ASSERT_LT(writes, 10);
  }
  EXPECT_GE(writes, 1);
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_TRUE(IsCleanPage(t, leftmost));
}

// A checkpoint retries a page until it is added. So each retry has to add something.
TEST(PageFlusher, OfTooManyPagesThatWaitForOneAnotherThoseAtTheEndAreAdded) {
  StoredTree t;
  t.Fill(0, 80'000);  // no page was written
  ASSERT_GT(t.Pages(0).size(), 5000u);
  const PageId leftmost = t.LeafOf(0);
  int writes = 0;
  while (AddOk(t, leftmost) == Added::kBusy) {
    ASSERT_FALSE(t.flusher().empty());
    ASSERT_TRUE(t.flusher().Write().ok());
    ++writes;
    ASSERT_LT(writes, 100);
  }
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_TRUE(IsCleanPage(t, leftmost));
}

// Rule X1: below the bound an image omits tombstones only, and raises its flat timestamp for them.
TEST(PageFlusher, TombstonesBelowTheConsolidationTimestampAreNotWritten) {
  StoredTree t;
  t.Fill(0, 20);
  for (uint64_t i = 0; i < 8; ++i) t.Delete(i);
  const uint64_t bound = t.now() + 1;
  t.SetConsolidation(bound);
  t.Flush();
  StoredTree::Records found;
  ASSERT_TRUE(t.Restore(&found).ok());
  EXPECT_EQ(found, t.records());
  ASSERT_GT(t.Evict(), 0);
  // An earlier update that is sent again is a duplicate after the page was loaded.
  ASSERT_TRUE(t.Load(3).ok());
  const auto outcome = t.tree().Put(KeyOf(3), "stale", V(4));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(*outcome, BwTree::Outcome::kDuplicate);
  t.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
