#include "dc/bwtree/page_flusher.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/io/disk_fault.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/delta_choice.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_buffer.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Added = PageFlusher::Added;
using Action = DiskFault::Action;

Added AddOk(StoredTree& t, PageId id) {
  const auto added = t.Add(id);
  EXPECT_TRUE(added.ok()) << added.status().ToString();
  return added.ok() ? *added : Added::kBusy;
}

bool IsCleanPage(StoredTree& t, PageId id) {
  const Node* const head = t.HeadOf(id);
  return head != nullptr && IsClean(head);
}

// Checks that every written part is named by an image, or is dead.
void ExpectNothingIsLost(StoredTree& t) { EXPECT_EQ(t.LiveBytes(), t.BytesOfImages()); }

void ExpectRestores(StoredTree& t, const StoredTree::Records& records) {
  StoredTree::Records found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_TRUE(found == records);
}

// Updates all records of the record's page without making it larger, so that the page is written as a whole.
void Rewrite(StoredTree& t, uint64_t number) {
  const PageId leaf = t.LeafOf(number);
  for (uint64_t i = 0; i < t.records().size(); ++i) {
    if (t.LeafOf(i) == leaf) t.Put(i, std::string(StoredTree::kValue.size(), 'r'));
  }
}

// Updates a record often enough that its page is consolidated, without making the page larger.
void UpdateUntilConsolidated(StoredTree& t, uint64_t number) {
  const PageId leaf = t.LeafOf(number);
  do {
    t.Put(number, std::string(StoredTree::kValue.size(), 'c'));
  } while (t.HeadOf(leaf)->kind != NodeKind::kBase);
}

// A value that fills the units of its delta part so far that the next one has no room for it.
std::string LongValue(char letter) { return std::string(90, letter); }

// A page between others: written, in memory, without updates since.
class FlushedLeaf : public ::testing::Test {
 protected:
  FlushedLeaf() {
    t_.FillSettled(60);
    leaf_ = t_.LeafOf(20);
  }

  StoredTree t_;
  PageId leaf_;
};

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
