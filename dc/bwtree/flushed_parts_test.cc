// The parts that a page is written as: a whole page, a delta part with what its image lacks, or one delta part in place
// of several.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/io/disk_fault.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree_environment.h"
#include "dc/bwtree/bwtree_options.h"
#include "dc/bwtree/delta_choice.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_flusher_fixture.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_buffer.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Added = PageFlusher::Added;
using Action = DiskFault::Action;

// Updates a record often enough that its page is consolidated, without making the page larger.
void UpdateUntilConsolidated(StoredTree& t, uint64_t number) {
  const PageId leaf = t.LeafOf(number);
  do {
    t.Put(number, std::string(StoredTree::kValue.size(), 'c'));
  } while (t.HeadOf(leaf)->kind != NodeKind::kBase);
}

TEST_F(FlushedLeaf, APageIsWrittenAsAWholeFirstAndThenByItsUpdates) {
  const ImageParts whole = t_.ImageOf(leaf_);
  ASSERT_EQ(whole.count(), 1u);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  EXPECT_EQ(AddOk(t_, leaf_), Added::kClean);
  EXPECT_TRUE(t_.flusher().empty());

  const uint64_t deltas = t_.flusher().statistics().delta_parts;
  const uint64_t bases = t_.flusher().statistics().base_parts;
  t_.Put(20, "newer");
  EXPECT_FALSE(IsCleanPage(t_, leaf_));
  t_.Flush(leaf_);
  EXPECT_EQ(t_.flusher().statistics().delta_parts, deltas + 1);
  EXPECT_EQ(t_.flusher().statistics().base_parts, bases);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  const ImageParts both = t_.ImageOf(leaf_);
  ASSERT_EQ(both.count(), 2u);
  EXPECT_EQ(both[1], whole.newest());
  PartBuffer buffer;
  ASSERT_TRUE(t_.store().Read(both.newest(), leaf_, &buffer).ok());
  EXPECT_EQ(buffer.part().header.kind, PartKind::kDelta);
  EXPECT_EQ(buffer.part().header.previous, whole.newest());
  EXPECT_EQ(buffer.part().header.table, StoredTree::kTable);
  EXPECT_LT(buffer.part().payload.size(), 60u);  // only the update
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

TEST_F(FlushedLeaf, MuchChangedPagesAreWrittenAsAWholeAndTheOldPartsDie) {
  t_.Put(20, "first");
  t_.Flush(leaf_);
  ASSERT_EQ(t_.ImageOf(leaf_).count(), 2u);
  Rewrite(t_, 21);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 1u);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

TEST(PageFlusher, UpdatesThatWeighMoreThanHalfThePageAreWrittenWithIt) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 8 << 10;
  StoredTree t(options);
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  const size_t half = t.ImageOf(leaf).newest().length_bound() / 2;
  ASSERT_GT(half, kMinDeltaBytes);
  t.Put(20, std::string(half - 150, 'v'));
  t.Flush(leaf);
  EXPECT_EQ(t.ImageOf(leaf).count(), 2u);
  t.Put(20, std::string(half, 'v'));
  t.Flush(leaf);
  EXPECT_EQ(t.ImageOf(leaf).count(), 1u);
  ExpectNothingIsLost(t);
  ExpectRestores(t, t.records());
}

TEST(PageFlusher, InnerPagesAreWrittenAsAWhole) {
  StoredTree t;
  t.FillSettled(60);
  t.Fill(60, 90);  // this splits the page
  t.Flush();
  ASSERT_GE(t.tree().root_level(), 1);
  for (uint8_t level = 1; level <= t.tree().root_level(); ++level) {
    for (const PageId page : t.Pages(level)) EXPECT_EQ(t.ImageOf(page).count(), 1u);
  }
  ExpectNothingIsLost(t);
  ExpectRestores(t, t.records());
}

// --- Consolidated pages.

TEST_F(FlushedLeaf, OfAConsolidatedPageOnlyTheChangesAreWritten) {
  const PageAddress base = t_.ImageOf(leaf_).newest();
  const uint64_t base_parts = t_.flusher().statistics().base_parts;
  UpdateUntilConsolidated(t_, 20);
  ASSERT_FALSE(IsCleanPage(t_, leaf_));
  t_.Flush(leaf_);
  EXPECT_EQ(t_.flusher().statistics().base_parts, base_parts);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  ASSERT_EQ(t_.ImageOf(leaf_).count(), 2u);
  EXPECT_EQ(t_.ImageOf(leaf_)[1], base);
  PartBuffer buffer;
  ASSERT_TRUE(t_.store().Read(t_.ImageOf(leaf_).newest(), leaf_, &buffer).ok());
  EXPECT_LT(buffer.part().payload.size(), 100u) << "one version of one record";
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

// The second consolidation finds the first update in the base page.
TEST_F(FlushedLeaf, ChangesStayKnownThroughConsolidations) {
  t_.Put(20, "early");
  UpdateUntilConsolidated(t_, 21);
  UpdateUntilConsolidated(t_, 21);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

TEST_F(FlushedLeaf, AfterAFailedWriteTheImageLacksTheSameAsBefore) {
  t_.Put(20, "early");
  UpdateUntilConsolidated(t_, 21);
  t_.disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite});
  ASSERT_EQ(AddOk(t_, leaf_), Added::kAdded);
  ASSERT_EQ(t_.flusher().Write(), ErrorCode::kResourceExhausted);
  UpdateUntilConsolidated(t_, 22);
  t_.disk().RemoveAllFaults();
  t_.Flush(leaf_);
  ExpectRestores(t_, t_.records());
}

// The consolidation finds the mark below a newer update, so the flush leaves no trace in memory.
TEST_F(FlushedLeaf, AConsolidationDuringAFlushLosesNothing) {
  for (const char* const point : {"bwtree.flush.encoded", "bwtree.flush.before_register"}) {
    t_.Put(20, point);
    t_.AtPoint(point, [&] {
      t_.Put(22, point);
      UpdateUntilConsolidated(t_, 21);
    });
    t_.Flush(leaf_);
    testing::SetPointHandler({});
    EXPECT_FALSE(IsCleanPage(t_, leaf_));
    t_.Flush(leaf_);
    EXPECT_TRUE(IsCleanPage(t_, leaf_));
    ExpectNothingIsLost(t_);
    ExpectRestores(t_, t_.records());
  }
}

TEST_F(FlushedLeaf, UpdatesThatTheImageHasAlreadyAreNotWrittenAgain) {
  t_.Put(20, "newer");
  const Version version = V(t_.now());
  t_.Flush(leaf_);
  const PageAddress newest = t_.ImageOf(leaf_).newest();
  ASSERT_TRUE(t_.Evict(leaf_));
  ASSERT_TRUE(t_.Load(20).ok());
  ASSERT_TRUE(t_.tree().Put(KeyOf(20), "newer", version).ok());  // as after a start
  ASSERT_FALSE(IsCleanPage(t_, leaf_));
  EXPECT_EQ(AddOk(t_, leaf_), Added::kClean);
  EXPECT_TRUE(t_.flusher().empty());
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  EXPECT_EQ(t_.ImageOf(leaf_).newest(), newest);
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.ExpectRight();
}

TEST_F(FlushedLeaf, UpdatesBelowANewerOneAreNotWrittenAgain) {
  t_.Put(20, LongValue('a'));
  t_.AtPoint("bwtree.flush.before_register", [&] { t_.Put(21, "newer"); });
  t_.Flush(leaf_);
  testing::SetPointHandler({});
  t_.Flush(leaf_);
  PartBuffer buffer;
  ASSERT_TRUE(t_.store().Read(t_.ImageOf(leaf_).newest(), leaf_, &buffer).ok());
  EXPECT_LT(buffer.part().payload.size(), 60u) << "only the newer one";
  ExpectRestores(t_, t_.records());
}

// --- Delta parts that become one.

TEST(PageFlusher, DeltaPartsBecomeOneOnTheSameBase) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 8 << 10;
  StoredTree t(options);
  t.FillSettled(400);
  const PageId leaf = t.LeafOf(20);
  const PageAddress base = t.ImageOf(leaf).newest();
  size_t parts = 1;
  bool merged = false;
  for (uint64_t i = 0; i < 8; ++i) {
    t.Put(18 + i, LongValue(static_cast<char>('a' + i)));
    ASSERT_EQ(t.LeafOf(18 + i), leaf);
    t.Flush(leaf);
    const ImageParts image = t.ImageOf(leaf);
    ASSERT_EQ(image[image.count() - 1], base);
    ASSERT_LE(image.count(), kMaxDeltaParts + 1);
    merged |= image.count() < parts;
    parts = image.count();
    ExpectNothingIsLost(t);
    ExpectRestores(t, t.records());
    if (i == 4) {  // a loaded page knows what its base part lacks
      ASSERT_TRUE(t.Evict(leaf));
      ASSERT_TRUE(t.Load(20).ok());
    }
  }
  EXPECT_TRUE(merged);
}

TEST_F(FlushedLeaf, TheSameRecordChangedAgainMakesNoFurtherPart) {
  for (int i = 0; i < 5; ++i) {
    t_.Put(20, LongValue(static_cast<char>('a' + i)));
    t_.Flush(leaf_);
    EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
    ExpectNothingIsLost(t_);
    ExpectRestores(t_, t_.records());
  }
}

// --- Deleted records.

TEST_F(FlushedLeaf, ADroppedTombstoneThatTheImageLacksMakesItAWhole) {
  t_.Delete(20);
  t_.SetConsolidation(t_.now() + 1);
  UpdateUntilConsolidated(t_, 21);
  ASSERT_EQ(t_.HeadOf(leaf_)->base->tombstones(), 0u);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 1u);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

TEST_F(FlushedLeaf, ATombstoneThatIsStillThereIsWrittenLikeAnUpdate) {
  t_.Delete(20);
  UpdateUntilConsolidated(t_, 21);
  ASSERT_EQ(t_.HeadOf(leaf_)->base->tombstones(), 1u);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

// The delta part that has the tombstone is the only place that says that the record is gone.
TEST_F(FlushedLeaf, ADeltaPartWithADroppedTombstoneIsNotReplacedByAnother) {
  t_.Delete(20);
  t_.Flush(leaf_);
  const PageAddress tombstone = t_.ImageOf(leaf_).newest();
  t_.SetConsolidation(t_.now() + 1);
  UpdateUntilConsolidated(t_, 21);
  ASSERT_EQ(t_.HeadOf(leaf_)->base->tombstones(), 0u);
  t_.Flush(leaf_);
  const ImageParts image = t_.ImageOf(leaf_);
  ASSERT_EQ(image.count(), 3u);
  EXPECT_EQ(image[1], tombstone);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
  // After a load the page has the tombstone again, so its delta parts may become one.
  ASSERT_TRUE(t_.Evict(leaf_));
  ASSERT_TRUE(t_.Load(21).ok());
  for (const size_t parts : {size_t{4}, size_t{2}}) {
    t_.Put(21, std::string(StoredTree::kValue.size(), 'd'));
    t_.Flush(leaf_);
    EXPECT_EQ(t_.ImageOf(leaf_).count(), parts);
  }
  ExpectRestores(t_, t_.records());
}

// --- Parts that are merged before a page leaves memory.

BwTreeOptions LargerPages(uint32_t leaf_page_bytes = 8 << 10) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = leaf_page_bytes;
  return options;
}

// A clean page with two delta parts, which was loaded for a reader. The flusher merges parts.
class LeafOfThreeParts : public ::testing::Test {
 protected:
  explicit LeafOfThreeParts(const BwTreeOptions& options = LargerPages()) : t_(options) {
    t_.FillSettled(3000);
    leaf_ = t_.LeafOf(20);
    base_ = t_.ImageOf(leaf_).newest();
    PutAndFlush(20);
    PutAndFlush(21);
    Reload();
    t_.flusher().SetMergesParts(true);
  }
  void SetUp() override {
    ASSERT_EQ(t_.ImageOf(leaf_).count(), 3u);
    ASSERT_TRUE(IsCleanPage(t_, leaf_));
  }

  void PutAndFlush(uint64_t number) {
    t_.Put(number, LongValue(static_cast<char>('a' + number % 20)));
    t_.Flush(leaf_);
  }
  void Reload() {
    ASSERT_TRUE(t_.Evict(leaf_));
    ASSERT_TRUE(t_.Load(20).ok());
  }
  void Consolidate() {
    t_.Walk(0, [this](const VisitedPage& page) {
      if (page.id == leaf_) EXPECT_TRUE(t_.tree().Move(page));
    });
  }
  void ExpectStored() {
    ExpectNothingIsLost(t_);
    ExpectRestores(t_, t_.records());
  }

  StoredTree t_;
  PageId leaf_;
  PageAddress base_;
};

TEST_F(LeafOfThreeParts, TheDeltaPartsOfACleanPageBecomeOneOnTheSameBase) {
  ASSERT_TRUE(AddMergedParts(t_, leaf_));
  ASSERT_TRUE(t_.flusher().Write().ok());
  ASSERT_EQ(t_.ImageOf(leaf_).count(), 2u);
  EXPECT_EQ(t_.ImageOf(leaf_)[1], base_);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  ExpectStored();
  EXPECT_FALSE(AddMergedParts(t_, leaf_)) << "once, until there are more parts";
  Reload();
  EXPECT_FALSE(AddMergedParts(t_, leaf_));
  t_.ExpectRight();
}

TEST_F(LeafOfThreeParts, AMergedPageKnowsWhatItsBasePartLacks) {
  ASSERT_TRUE(AddMergedParts(t_, leaf_));
  ASSERT_TRUE(t_.flusher().Write().ok());
  for (const uint64_t number : {uint64_t{22}, uint64_t{23}}) {
    PutAndFlush(number);
    EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
    EXPECT_EQ(t_.ImageOf(leaf_)[1], base_);
    ExpectStored();
  }
}

TEST_F(LeafOfThreeParts, PagesThatNoReaderHasLoadedKeepTheirParts) {
  t_.pages().NoteRead(leaf_, false);
  EXPECT_FALSE(AddMergedParts(t_, leaf_));
  PutAndFlush(22);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 4u);
}

TEST_F(LeafOfThreeParts, ADirtyPageThatAReaderHasLoadedIsLeftWithOneDeltaPart) {
  PutAndFlush(22);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
  EXPECT_EQ(t_.ImageOf(leaf_)[1], base_);
  ExpectStored();
}

TEST_F(LeafOfThreeParts, OnlyCleanPagesInMemoryAreAddedToBeMerged) {
  t_.Put(20, "newer");
  EXPECT_FALSE(AddMergedParts(t_, leaf_));
  t_.flusher().SetMergesParts(false);
  t_.Flush(leaf_);
  ASSERT_GE(t_.ImageOf(leaf_).count(), 3u);
  EXPECT_FALSE(AddMergedParts(t_, leaf_)) << "merges are off";
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.flusher().SetMergesParts(true);
  EXPECT_FALSE(AddMergedParts(t_, leaf_)) << "on storage";
  t_.Put(20, "blind");
  t_.Flush(leaf_);
  ASSERT_TRUE(IsCleanPage(t_, leaf_) && IsStub(t_.HeadOf(leaf_)));
  EXPECT_FALSE(AddMergedParts(t_, leaf_)) << "a stub";
  EXPECT_TRUE(t_.flusher().empty());
}

TEST_F(LeafOfThreeParts, APageThatAnotherFlusherWritesIsNotMerged) {
  const auto other = std::move(*PageFlusher::Create(t_.environment(), t_.store(), t_));
  t_.Put(22, "newer");
  ASSERT_EQ(*t_.Add(*other, leaf_), Added::kAdded);
  EXPECT_FALSE(AddMergedParts(t_, leaf_));
  ASSERT_TRUE(other->Write().ok());
  EXPECT_TRUE(AddMergedParts(t_, leaf_));
  ASSERT_TRUE(t_.flusher().Write().ok());
  ExpectStored();
}

// Only a delta part says that the record is gone, so one in its place would bring the record back.
TEST_F(LeafOfThreeParts, WithADroppedTombstoneTheWholePageIsWritten) {
  t_.flusher().SetMergesParts(false);
  t_.Delete(20);
  t_.Flush(leaf_);
  Reload();
  t_.flusher().SetMergesParts(true);
  t_.SetConsolidation(t_.now() + 1);
  Consolidate();
  ASSERT_EQ(t_.HeadOf(leaf_)->base->tombstones(), 0u);
  ASSERT_TRUE(IsCleanPage(t_, leaf_));
  ASSERT_TRUE(AddMergedParts(t_, leaf_));
  ASSERT_TRUE(t_.flusher().Write().ok());
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 1u);
  ExpectStored();
}

TEST_F(LeafOfThreeParts, TombstonesThatArePartOfThePageAreMergedLikeUpdates) {
  t_.flusher().SetMergesParts(false);
  t_.Delete(20);
  t_.Flush(leaf_);
  t_.flusher().SetMergesParts(true);
  ASSERT_TRUE(AddMergedParts(t_, leaf_));
  ASSERT_TRUE(t_.flusher().Write().ok());
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
  ExpectStored();
  Reload();
  t_.ExpectRight();
}

TEST_F(LeafOfThreeParts, AnUpdateDuringAMergeKeepsThePageDirty) {
  for (const char* const point : {"bwtree.flush.encoded", "bwtree.flush.before_register"}) {
    t_.AtPoint(point, [this] {
      t_.Put(22, "newer");
      Consolidate();
    });
    ASSERT_TRUE(AddMergedParts(t_, leaf_)) << point;
    ASSERT_TRUE(t_.flusher().Write().ok());
    testing::SetPointHandler({});
    EXPECT_FALSE(IsCleanPage(t_, leaf_));
    EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
    t_.flusher().SetMergesParts(false);
    t_.Flush(leaf_);
    EXPECT_TRUE(IsCleanPage(t_, leaf_));
    ExpectStored();
    while (t_.ImageOf(leaf_).count() < 3) PutAndFlush(23);
    t_.flusher().SetMergesParts(true);
  }
}

TEST_F(LeafOfThreeParts, AfterAFailedWriteThePageHasItsParts) {
  const ImageParts before = t_.ImageOf(leaf_);
  t_.disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite});
  ASSERT_TRUE(AddMergedParts(t_, leaf_));
  ASSERT_EQ(t_.flusher().Write(), ErrorCode::kResourceExhausted);
  t_.disk().RemoveAllFaults();
  EXPECT_EQ(t_.ImageOf(leaf_).newest(), before.newest());
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 3u);
  EXPECT_TRUE(IsCleanPage(t_, leaf_));
  ExpectStored();
  Reload();
  t_.ExpectRight();
}

TEST_F(LeafOfThreeParts, OnADiskThatIsShortOfSpaceNothingIsMerged) {
  t_.disk().SetFreeBytes(t_.store().reserve_bytes());
  t_.flusher().SetMergesParts(true);
  EXPECT_FALSE(AddMergedParts(t_, leaf_));
}

TEST_F(LeafOfThreeParts, PartsThatAnImageHasNoMoreAreCounted) {
  FlushedBytes flushed;
  BwTreeEnvironment environment = t_.environment();
  environment.flushed = &flushed;
  const auto flusher = std::move(*PageFlusher::Create(environment, t_.store(), t_));
  flusher->SetMergesParts(true);
  {
    const ReclamationDomain::Guard guard(t_.domain());
    ASSERT_TRUE(flusher->AddMergedParts(t_.tree(), leaf_));
  }
  ASSERT_TRUE(flusher->Write().ok());
  EXPECT_EQ(flushed.merged_parts.load(), 1u);
  EXPECT_EQ(flushed.deltas.load(), t_.ImageOf(leaf_).newest().length_bound());
  // A flush of changes is no merge of this kind.
  t_.Put(22, LongValue('c'));
  ASSERT_EQ(*t_.Add(*flusher, leaf_), Added::kAdded);
  ASSERT_TRUE(flusher->Write().ok());
  EXPECT_EQ(flushed.merged_parts.load(), 1u);
}

// A merge has to write at most as much as a read costs.
class LargeLeafOfThreeParts : public LeafOfThreeParts {
 protected:
  LargeLeafOfThreeParts() : LeafOfThreeParts(LargerPages(128 << 10)) {}
};

TEST_F(LargeLeafOfThreeParts, LargePagesAreNotMerged) {
  ASSERT_GT(base_.length_bound(), kWrittenForARead);
  EXPECT_FALSE(AddMergedParts(t_, leaf_));
}

TEST_F(FlushedLeaf, AnImageNeverHasMorePartsThanACheckpointTakes) {
  for (size_t round = 0; round < 3 * ImageParts::kMax; ++round) {
    t_.Put(20, "x");
    t_.Flush(leaf_);
    ASSERT_LE(t_.ImageOf(leaf_).count(), ImageParts::kMax);
    ExpectNothingIsLost(t_);
  }
  ExpectRestores(t_, t_.records());
}

TEST_F(FlushedLeaf, AnUnloadedPageIsWrittenAsUpdatesOrLoadedFirstWhenAllPartsAreUsed) {
  const PageAddress base = t_.ImageOf(leaf_).newest();
  for (size_t parts = 2; parts <= ImageParts::kMax; ++parts) {
    ASSERT_TRUE(t_.Evict(leaf_));
    t_.Put(20, "blind");
    ASSERT_TRUE(IsStub(t_.HeadOf(leaf_)));
    t_.Flush(leaf_);
    ASSERT_TRUE(IsStub(t_.HeadOf(leaf_)));
    ASSERT_EQ(t_.ImageOf(leaf_).count(), parts);
  }
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.Put(20, "the last straw");
  EXPECT_EQ(AddOk(t_, leaf_), Added::kNotLoaded);
  EXPECT_TRUE(t_.flusher().empty());
  ASSERT_TRUE(t_.Load(20).ok());
  // Now it is known what all the delta parts say.
  t_.Flush(leaf_);
  ASSERT_EQ(t_.ImageOf(leaf_).count(), 2u);
  EXPECT_EQ(t_.ImageOf(leaf_)[1], base);
  ExpectNothingIsLost(t_);
  ExpectRestores(t_, t_.records());
}

TEST_F(FlushedLeaf, AStubWithLittleBehindItIsNeverWrittenAsAWhole) {
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.Put(20, std::string(5000, 'v'));  // larger than the page itself
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
  ExpectRestores(t_, t_.records());
}

}  // namespace
}  // namespace deut::dc
