// The steps by which pages go to storage and come back. Each test uses the order of events in which one step is
// decisive. A test point plays the part of another thread.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(PageStorageRules, PagesGoAndComeBack) {
  StoredTree t;
  t.Fill(0, 500);
  t.Flush();
  EXPECT_GT(t.Evict(), 20);
  for (uint64_t i = 0; i < 500; i += 3) t.Put(i, "blind");
  t.ExpectRight();
  t.Flush();
  t.Evict();
  std::map<std::string, std::string> found;
  EXPECT_TRUE(t.Restore(&found).ok());
  EXPECT_EQ(found, t.records());
}

TEST(PageStorageRules, BlindUpdatesLookAtTheParentAgain) {
  StoredTree t;
  t.Fill(0, 40);
  for (uint64_t i = 1000; i < 1010; ++i) t.Put(i, "0123456789");
  t.Flush();
  ASSERT_GT(t.Evict(), 1);
  // Between the load of the parent and the load of its child, the child is split, written and evicted.
  bool split = false;
  t.AtPoint("bwtree.descend.before_child", [&] {
    const uint64_t before = t.tree().statistics().splits;
    ASSERT_TRUE(t.Load(Target(KeyOf(1000), Side::kAt)).ok());
    for (uint64_t i = 1010; i < 1098; ++i) t.Put(i, "0123456789012345678901234567890123456789");
    split = t.tree().statistics().splits > before;
    t.Flush();
    ASSERT_GT(t.Evict(), 1);
  });
  t.Put(1098, "blind");
  EXPECT_TRUE(split);
  t.ExpectRight();
}

TEST(PageStorageRules, APageStaysUntilTheTermOfItsSplitIsPosted) {
  StoredTree t;
  t.Fill(0, 40);
  t.Flush();
  uint64_t current = 40;  // this key is being put while the other thread runs
  t.AtPoint("bwtree.split.before_post", [&] {
    t.Flush(/*leaves_only=*/true);
    t.Evict();
    for (uint64_t i = 0; i < current; ++i) t.Put(i, "blind");
  });
  const uint64_t before = t.tree().statistics().splits;
  for (; t.tree().statistics().splits == before; ++current) t.Put(current, "0123456789012345678901234567890123456789");
  t.ExpectRight();
}

TEST(PageStorageRules, AReadPageIsComparedWithTheImageAgain) {
  StoredTree t;
  t.Fill(0, 40);
  t.Flush();
  ASSERT_GT(t.Evict(), 1);
  const std::string key = KeyOf(20);
  PageLoad load;
  ASSERT_TRUE(t.tree().BeginLoad(Target(key, Side::kAt), &load));
  ASSERT_TRUE(load.ReadImage(t.store()).ok());
  // One update is written and evicted; another one keeps the page in memory, as a stub.
  t.Put(20, "first");
  t.Flush();
  ASSERT_GE(t.Evict(), 1);
  t.Put(21, "second");
  ASSERT_TRUE(t.tree().FinishLoad(Target(key, Side::kAt), &load).ok());
  t.ExpectRight();
}

TEST(PageStorageRules, DirtyPagesStay) {
  StoredTree t;
  t.Fill(0, 100);
  t.Flush();
  for (uint64_t i = 0; i < 100; i += 10) t.Put(i, "new");
  t.Evict();
  t.ExpectRight();
}

TEST(PageStorageRules, AChildIsWrittenBeforeThePageThatNamesIt) {
  StoredTree t;
  t.Fill(0, 100);
  {
    const ReclamationDomain::Guard guard(t.domain());
    t.flusher().Add(t.tree(), t.tree().root());
  }
  ASSERT_TRUE(t.flusher().Write().ok());
  std::map<std::string, std::string> found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(found, t.records());
}

TEST(PageStorageRules, AChildThatIsSplitBetweenItsEncodingAndItsParentsIsWrittenAgain) {
  StoredTree t;
  t.Fill(0, 100);
  t.Flush();
  const std::map<std::string, std::string> before = t.records();
  for (uint64_t i = 200; i < 206; ++i) t.Put(i, "0123456789");
  bool split = false;
  t.AtPoint("bwtree.flush.encoded", [&] {
    const uint64_t splits = t.tree().statistics().splits;
    for (uint64_t i = 206; t.tree().statistics().splits == splits; ++i)
      t.Put(i, "0123456789012345678901234567890123456789");
    split = true;
  });
  // The last leaf, and then all pages above it, in one batch.
  for (int i = 0; i < 100 && !split; ++i) t.Put(200 + static_cast<uint64_t>(i % 6), "x");
  {
    const ReclamationDomain::Guard guard(t.domain());
    std::vector<PageId> last;
    t.Walk(0, [&](const VisitedPage& page) {
      if (last.empty()) last.push_back(page.id);
    });
    t.flusher().Add(t.tree(), last[0]);
    for (uint8_t level = 1; level <= t.tree().root_level(); ++level) {
      t.Walk(level, [&](const VisitedPage& page) { t.flusher().Add(t.tree(), page.id); });
    }
  }
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_TRUE(split);
  testing::SetPointHandler({});
  std::map<std::string, std::string> found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  for (const auto& [key, value] : before) EXPECT_EQ(found[key], value) << key;
}

// --- What an image lacks.

void Consolidate(StoredTree& t, PageId leaf) {
  t.Walk(0, [&](const VisitedPage& page) {
    if (page.id == leaf) EXPECT_TRUE(t.tree().Move(page));
  });
}

void ExpectStored(StoredTree& t) {
  std::map<std::string, std::string> found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(found, t.records());
}

TEST(PageStorageRules, WhatTheImageLacksStaysKnownThroughASecondConsolidation) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  t.Put(20, "early");
  Consolidate(t, leaf);
  t.Put(21, "late");
  Consolidate(t, leaf);
  t.Flush(leaf);
  ExpectStored(t);
}

TEST(PageStorageRules, APageThatHasDroppedAnUnwrittenTombstoneIsWrittenAsAWhole) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  t.Delete(20);
  t.SetConsolidation(t.now() + 1);
  Consolidate(t, leaf);
  t.Put(21, "changed");
  t.Flush(leaf);
  ExpectStored(t);
}

TEST(PageStorageRules, ADeltaPartWhoseTombstoneHasLeftMemoryStays) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  t.Delete(20);
  t.Flush(leaf);
  t.SetConsolidation(t.now() + 1);
  Consolidate(t, leaf);
  t.Put(21, "changed");
  t.Flush(leaf);
  ExpectStored(t);
}

TEST(PageStorageRules, ALoadedPageKnowsWhatItsBasePartLacks) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  t.Put(20, "in a delta part");
  t.Flush(leaf);
  ASSERT_TRUE(t.Evict(leaf));
  ASSERT_TRUE(t.Load(20).ok());
  t.Put(21, "changed");
  t.Flush(leaf);
  ExpectStored(t);
}

// Checks that the record is in the checkpoint. After the pass over the leaves the gate is closed and no split is half
// done. Inner pages are written, with the leaves that must be written before them.
void ExpectInCheckpoint(StoredTree* t, uint64_t record) {
  for (uint8_t level = 1; level <= t->tree().root_level(); ++level) {
    for (const PageId page : t->Pages(level)) t->Flush(page);
  }
  std::map<std::string, std::string> found;
  const Status restored = t->Restore(&found);
  ASSERT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(found[KeyOf(record)], "new");
}

// Rule X6: a checkpoint's pass over the leaves misses no leaf, not even one that its parent does not name yet. The
// left neighbour's flush does not add that leaf if it already has an image, which may be older than the checkpoint's
// position.
TEST(PageStorageRules, APassOverTheLeavesFindsPagesWhoseTermIsNotPosted) {
  StoredTree t;
  t.Fill(0, 40);
  t.Flush();
  uint64_t current = 40;  // this key is being put while the other threads run
  t.AtPoint("bwtree.split.before_post", [&] {
    t.Flush(/*leaves_only=*/true);  // as the page evictor does
    // An update of the right half. Other threads post terms to the same parent all the time, so that helping loses.
    testing::SetCasHandler([](std::string_view name) { return name == "bwtree.post.cas"; });
    t.Put(current + 1, "new");
    // The checkpoint's position is behind that update. Its pass over the leaves:
    t.Flush(/*leaves_only=*/true);
    testing::SetCasHandler({});
  });
  const uint64_t before = t.tree().statistics().splits;
  for (; t.tree().statistics().splits == before; ++current) t.Put(current, StoredTree::kValue);
  ExpectInCheckpoint(&t, current);
}

// The same, but during the pass the term is posted and the left page is evicted, so that no side link leads to the
// right one.
TEST(PageStorageRules, APassFindsAPageWhoseTermIsPostedWhileItGoesBy) {
  StoredTree t;
  t.Fill(0, 40);
  t.Flush();
  uint64_t current = 40;
  bool split = false;
  bool met = false;
  bool evicted = false;
  auto keeper = PageFlusher::Create(t.environment(), t.store(), t);
  ASSERT_TRUE(keeper.ok());
  const auto swap_out_left = [&] {
    testing::SetCasHandler({});
    RecordBatch batch;
    (void)t.tree().Read(KeyOf(current + 1), &batch);  // the read helps to post the term
    const PageId left = t.LeafOf(current - 6);
    ASSERT_TRUE(t.Add(**keeper, left).ok());
    ASSERT_TRUE((*keeper)->Write().ok());
    evicted = t.Evict(left);
  };
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "bwtree.split.before_post" && !split) {
      const auto other = RealRuntime().StartThread("checkpointer", [&] {
        t.Flush(/*leaves_only=*/true);
        testing::SetCasHandler([](std::string_view cas) { return cas == "bwtree.post.cas"; });
        t.Put(current + 1, "new");
        split = true;
        t.Flush(/*leaves_only=*/true);
      });
      other->Join();
    } else if (name == "bwtree.walk.before_unposted" && split && !met) {
      met = true;
      const auto other = RealRuntime().StartThread("other", swap_out_left);
      other->Join();
    }
  });
  const uint64_t before = t.tree().statistics().splits;
  for (; t.tree().statistics().splits == before; ++current) t.Put(current, StoredTree::kValue);
  testing::SetPointHandler({});
  ASSERT_TRUE(evicted);
  ExpectInCheckpoint(&t, current);
}

}  // namespace
}  // namespace deut::dc
