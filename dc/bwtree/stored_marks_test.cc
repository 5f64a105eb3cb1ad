// The marks of a leaf in memory tell which of its records the image has, while flushes end, early or late, or fail.
// page_content_random_test.cc does all of it in random order.
#include <string>

#include "common/io/disk_fault.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_marks_check.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// A page between others: written, in memory, without updates since.
class StoredMarks : public ::testing::Test {
 protected:
  StoredMarks() {
    t_.FillSettled(60);
    leaf_ = t_.LeafOf(20);
  }

  void Consolidate() {
    t_.Walk(0, [&](const VisitedPage& page) {
      if (page.id == leaf_) EXPECT_TRUE(t_.tree().Move(page));
    });
  }
  void ExpectRestores() {
    StoredTree::Records found;
    const Status restored = t_.Restore(&found);
    EXPECT_TRUE(restored.ok()) << restored.ToString();
    EXPECT_EQ(found, t_.records());
  }

  StoredTree t_;
  PageId leaf_;
};

// The flush ends after the consolidation, so the base page has its mark.
TEST_F(StoredMarks, ATombstoneThatIsDroppedDuringItsFlushStaysInItsDeltaPart) {
  t_.Delete(20);
  ASSERT_EQ(*t_.Add(leaf_), PageFlusher::Added::kAdded);
  t_.SetConsolidation(t_.now() + 1);
  Consolidate();
  ASSERT_EQ(t_.HeadOf(leaf_)->kind, NodeKind::kBase);
  ASSERT_EQ(t_.HeadOf(leaf_)->base->tombstones(), 0u);
  EXPECT_EQ(RemovalsOf(t_.HeadOf(leaf_)), StoredIn::kNoPart) << "nothing is written yet";
  ASSERT_TRUE(t_.flusher().Write().ok());
  EXPECT_TRUE(IsClean(t_.HeadOf(leaf_)));
  EXPECT_EQ(RemovalsOf(t_.HeadOf(leaf_)), StoredIn::kDeltaPart);
  ExpectMarksRight(t_, leaf_);
  const PageAddress tombstone = t_.ImageOf(leaf_).newest();
  t_.Put(21, std::string(StoredTree::kValue.size(), 'c'));
  t_.Flush(leaf_);
  ASSERT_EQ(t_.ImageOf(leaf_).count(), 3u);
  EXPECT_EQ(t_.ImageOf(leaf_)[1], tombstone);
  ExpectMarksRight(t_, leaf_);
  ExpectRestores();
}

TEST_F(StoredMarks, ATombstoneThatIsDroppedDuringAFlushThatFailsMakesItAWhole) {
  t_.Delete(20);
  ASSERT_EQ(*t_.Add(leaf_), PageFlusher::Added::kAdded);
  t_.SetConsolidation(t_.now() + 1);
  Consolidate();
  t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
  ASSERT_EQ(t_.flusher().Write(), ErrorCode::kResourceExhausted);
  t_.disk().RemoveAllFaults();
  EXPECT_FALSE(IsClean(t_.HeadOf(leaf_)));
  EXPECT_EQ(RemovalsOf(t_.HeadOf(leaf_)), StoredIn::kNoPart);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 1u);
  ExpectMarksRight(t_, leaf_);
  ExpectRestores();
}

// The mark that the load copies belongs to a flush that has not ended.
TEST_F(StoredMarks, AStubThatIsLoadedDuringItsFlushLacksItsUpdatesUntilTheFlushEnds) {
  for (const bool fails : {true, false}) {
    t_.Flush();
    ASSERT_TRUE(t_.Evict(leaf_));
    t_.Put(20, fails ? "given up" : "written");
    ASSERT_TRUE(IsStub(t_.HeadOf(leaf_)));
    ASSERT_EQ(*t_.Add(leaf_), PageFlusher::Added::kAdded);
    ASSERT_TRUE(t_.Load(20).ok());
    ASSERT_FALSE(IsStub(t_.HeadOf(leaf_)));
    Consolidate();
    ExpectMarksRight(t_, leaf_);
    if (fails) t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
    ASSERT_EQ(t_.flusher().Write().ok(), !fails);
    t_.disk().RemoveAllFaults();
    EXPECT_EQ(IsClean(t_.HeadOf(leaf_)), !fails);
    ExpectMarksRight(t_, leaf_);
  }
  EXPECT_EQ(t_.LiveBytes(), t_.BytesOfImages());
  ExpectRestores();
}

}  // namespace
}  // namespace deut::dc
