// The steps by which pages go to storage and come back. Each test uses the order of events in which one step is
// decisive. A test point plays the part of another thread.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/bwtree_options.h"
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

// Another flush writes an update after the merge has looked at the page, and before it claims the image.
TEST(PageStorageRules, AMergeOfPartsHasWhatWasWrittenBeforeItsClaim) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 8 << 10;
  StoredTree t(options);
  t.FillSettled(400);
  const PageId leaf = t.LeafOf(20);
  for (const uint64_t number : {uint64_t{20}, uint64_t{21}}) {
    t.Put(number, std::string(90, 'v'));
    t.Flush(leaf);
  }
  ASSERT_TRUE(t.Evict(leaf));
  ASSERT_TRUE(t.Load(20).ok());
  ASSERT_EQ(t.ImageOf(leaf).count(), 3u);
  const auto other = std::move(*PageFlusher::Create(t.environment(), t.store(), t));
  t.AtPoint("bwtree.merge_parts.before_claim", [&] {
    t.Put(20, "newer");
    ASSERT_EQ(*t.Add(*other, leaf), PageFlusher::Added::kAdded);
    ASSERT_TRUE(other->Write().ok());
  });
  t.flusher().SetMergesParts(true);
  {
    const ReclamationDomain::Guard guard(t.domain());
    ASSERT_TRUE(t.flusher().AddMergedParts(t.tree(), leaf));
  }
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_LE(t.ImageOf(leaf).count(), 2u);
  ExpectStored(t);
  ASSERT_TRUE(t.Evict(leaf));
  t.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
