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

// A clean leaf between other leaves, with the record.
class EvictLeaf : public ::testing::Test {
 protected:
  EvictLeaf() {
    t_.FillSettled(60);
    leaf_ = t_.LeafOf(kNumber);
  }

  StoredTree t_;
  PageId leaf_;
};

TEST_F(EvictLeaf, OfACleanLeafTheAddressOfItsImageIsLeft) {
  const uint64_t bytes = t_.tree().statistics().bytes;
  const uint64_t of_page = ChainBytes(t_.HeadOf(leaf_));
  ASSERT_TRUE(t_.Evict(leaf_));
  {
    const ReclamationDomain::Guard guard(t_.domain());
    const PageWord word = t_.pages().LoadWord(leaf_);
    ASSERT_TRUE(word.on_storage());
    EXPECT_EQ(word.address(), t_.pages().Image(leaf_).newest());
  }
  EXPECT_EQ(t_.tree().statistics().bytes, bytes - of_page);
  EXPECT_FALSE(t_.Evict(leaf_));  // the page is already evicted
  t_.domain().Collect();
  EXPECT_EQ(t_.domain().pending_bytes(), 0u);
  t_.ExpectRight();
}

TEST_F(EvictLeaf, DirtyPagesStayWhateverMakesThemDirty) {
  // Four kinds of dirty page: an update in memory, an update on a stub, a mark whose image is not written yet, and a
  // consolidation of unwritten deltas.
  t_.Put(kNumber, "dirty");
  EXPECT_FALSE(t_.Evict(leaf_));
  const auto added = t_.Add(leaf_);
  ASSERT_TRUE(added.ok() && *added == PageFlusher::Added::kAdded);
  EXPECT_FALSE(t_.Evict(leaf_));
  ASSERT_TRUE(t_.flusher().Write().ok());
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.Put(kNumber, "blind");
  ASSERT_TRUE(IsStub(t_.HeadOf(leaf_)));
  EXPECT_FALSE(t_.Evict(leaf_));
  t_.Flush(leaf_);
  ASSERT_TRUE(IsStub(t_.HeadOf(leaf_)));
  ASSERT_TRUE(t_.Evict(leaf_));  // a stub with all its updates written
  ASSERT_TRUE(t_.Load(kNumber).ok());
  while (t_.HeadOf(leaf_)->kind != NodeKind::kBase || IsClean(t_.HeadOf(leaf_))) t_.Put(kNumber, "again");
  EXPECT_FALSE(t_.Evict(leaf_));
  t_.ExpectRight();
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
  // The same for a visitor that visits a leaf as if it had no parent.
  t.Walk(0, [&](VisitedPage page) {
    page.parent = kNoPage;
    EXPECT_FALSE(t.tree().Evict(page));
  });
  EXPECT_GT(t.Evict(), 20);
  t.ExpectRight();
}

TEST_F(EvictLeaf, AnUpdateThatIsFirstKeepsThePage) {
  bool lost = false;
  t_.AtPoint("bwtree.evict.before_cas", [&] {
    t_.Put(kNumber, "first");
    lost = true;
  });
  EXPECT_FALSE(t_.Evict(leaf_));
  ASSERT_TRUE(lost);
  EXPECT_NE(t_.HeadOf(leaf_), nullptr);
  testing::SetPointHandler({});
  t_.ExpectRight();
  t_.Flush(leaf_);
  testing::SetCasHandler([](std::string_view name) { return name == "bwtree.evict.cas"; });
  EXPECT_FALSE(t_.Evict(leaf_));
  EXPECT_NE(t_.HeadOf(leaf_), nullptr);
  testing::SetCasHandler({});
  EXPECT_TRUE(t_.Evict(leaf_));
  t_.ExpectRight();
}

TEST_F(EvictLeaf, AFlushThatIsFirstKeepsThePage) {
  // The address that the evictor read is no longer that of the page's image.
  t_.AtPoint("bwtree.evict.before_cas", [&] {
    t_.Put(kNumber, "first");
    t_.Flush(leaf_);
  });
  EXPECT_FALSE(t_.Evict(leaf_));
  testing::SetPointHandler({});
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.ExpectRight();
}

TEST_F(EvictLeaf, AChangedParentKeepsThePage) {
  bool evicted = true;
  t_.Walk(0, [&](const VisitedPage& page) {
    if (page.id != leaf_) return;
    // The page's neighbour is split, which changes the parent.
    const uint64_t splits = t_.tree().statistics().splits;
    for (uint64_t i = 100; t_.tree().statistics().splits == splits; ++i) t_.Put(i, StoredTree::kValue);
    evicted = t_.tree().Evict(page);
  });
  EXPECT_FALSE(evicted);
  t_.Flush();
  EXPECT_TRUE(t_.Evict(leaf_));
  t_.ExpectRight();
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
