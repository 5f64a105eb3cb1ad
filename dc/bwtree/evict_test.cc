#include <cstdint>
#include <string>

#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kNumber = 20;

TEST(Evict, OfACleanLeafTheAddressOfItsImageIsLeft) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(kNumber);
  const uint64_t bytes = t.tree().statistics().bytes;
  const uint64_t of_page = ChainBytes(t.HeadOf(leaf));
  ASSERT_TRUE(t.Evict(leaf));
  {
    const ReclamationDomain::Guard guard(t.domain());
    const PageWord word = t.pages().LoadWord(leaf);
    ASSERT_TRUE(word.on_storage());
    EXPECT_EQ(word.address(), t.pages().Image(leaf).newest());
  }
  EXPECT_EQ(t.tree().statistics().bytes, bytes - of_page);
  EXPECT_FALSE(t.Evict(leaf));  // it is gone already
  t.domain().Collect();
  EXPECT_EQ(t.domain().pending_bytes(), 0u);
  t.ExpectRight();
}

TEST(Evict, DirtyPagesStayWhateverMakesThemDirty) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(kNumber);
  // An update in memory, an update on a stub, a mark whose image is not written yet, a consolidation of what was not written.
  t.Put(kNumber, "dirty");
  EXPECT_FALSE(t.Evict(leaf));
  const auto added = t.Add(leaf);
  ASSERT_TRUE(added.ok() && *added == PageFlusher::Added::kAdded);
  EXPECT_FALSE(t.Evict(leaf));
  ASSERT_TRUE(t.flusher().Write().ok());
  ASSERT_TRUE(t.Evict(leaf));
  t.Put(kNumber, "blind");
  ASSERT_TRUE(IsStub(t.HeadOf(leaf)));
  EXPECT_FALSE(t.Evict(leaf));
  t.Flush(leaf);
  ASSERT_TRUE(IsStub(t.HeadOf(leaf)));
  ASSERT_TRUE(t.Evict(leaf));  // a stub with all its updates written
  ASSERT_TRUE(t.Load(kNumber).ok());
  while (t.HeadOf(leaf)->kind != NodeKind::kBase || IsClean(t.HeadOf(leaf))) t.Put(kNumber, "again");
  EXPECT_FALSE(t.Evict(leaf));
  t.ExpectRight();
}

TEST(Evict, TheRootAndInnerPagesStay) {
  StoredTree t;
  t.Put(1, "the root is a leaf");
  t.Flush();
  EXPECT_EQ(t.Evict(), 0);
  t.FillSettled(400);
  ASSERT_GE(t.tree().root_level(), 2);
  for (uint8_t level = 1; level <= t.tree().root_level(); ++level) {
    t.Walk(level, [&](const VisitedPage& page) { EXPECT_FALSE(t.tree().Evict(page)); });
  }
  // Also for whoever visits a leaf as if it had no parent.
  t.Walk(0, [&](VisitedPage page) {
    page.parent = kNoPage;
    EXPECT_FALSE(t.tree().Evict(page));
  });
  EXPECT_GT(t.Evict(), 20);
  t.ExpectRight();
}

TEST(Evict, AnUpdateThatIsFirstKeepsThePage) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(kNumber);
  bool lost = false;
  t.AtPoint("bwtree.evict.before_cas", [&] {
    t.Put(kNumber, "first");
    lost = true;
  });
  EXPECT_FALSE(t.Evict(leaf));
  ASSERT_TRUE(lost);
  EXPECT_NE(t.HeadOf(leaf), nullptr);
  testing::SetPointHandler({});
  t.ExpectRight();
  t.Flush(leaf);
  testing::SetCasHandler([](std::string_view name) { return name == "bwtree.evict.cas"; });
  EXPECT_FALSE(t.Evict(leaf));
  EXPECT_NE(t.HeadOf(leaf), nullptr);
  testing::SetCasHandler({});
  EXPECT_TRUE(t.Evict(leaf));
  t.ExpectRight();
}

TEST(Evict, AFlushThatIsFirstKeepsThePage) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(kNumber);
  // The address that was looked up is no longer that of the page's image.
  t.AtPoint("bwtree.evict.before_cas", [&] {
    t.Put(kNumber, "first");
    t.Flush(leaf);
  });
  EXPECT_FALSE(t.Evict(leaf));
  testing::SetPointHandler({});
  ASSERT_TRUE(t.Evict(leaf));
  t.ExpectRight();
}

TEST(Evict, AChangedParentKeepsThePage) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(kNumber);
  bool evicted = true;
  t.Walk(0, [&](const VisitedPage& page) {
    if (page.id != leaf) return;
    // The page's neighbour is split: the parent is another one now.
    const uint64_t splits = t.tree().statistics().splits;
    for (uint64_t i = 100; t.tree().statistics().splits == splits; ++i) t.Put(i, StoredTree::kValue);
    evicted = t.tree().Evict(page);
  });
  EXPECT_FALSE(evicted);
  t.Flush();
  EXPECT_TRUE(t.Evict(leaf));
  t.ExpectRight();
}

TEST(Evict, OtherBoundsThanTheParentsKeepThePage) {
  StoredTree t;
  t.FillSettled(60);
  t.Walk(0, [&](VisitedPage page) {
    const VisitedPage right = page;
    page.bounded = !page.bounded;
    EXPECT_FALSE(t.tree().Evict(page));
    page = right;
    page.high = "k";
    EXPECT_FALSE(t.tree().Evict(page));
    EXPECT_TRUE(t.tree().Evict(right));
  });
  t.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
