// Images of pages whose updates were consolidated before they were written: of these a delta part holds what is not below the timestamp up to
// which the image covers the page.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/testing/test_points.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_buffer.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

BwTreeOptions LargerPages() {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 8192;
  return options;
}

// A leaf in the midst of others whose image covers all that it has.
class ConsolidatedLeaf : public ::testing::Test {
 protected:
  ConsolidatedLeaf() : t_(LargerPages()) {
    t_.FillSettled(200);
    leaf_ = t_.LeafOf(5);
    Cover();
  }

  // Everything so far is below the consolidation timestamp, and the leaf is written as a whole.
  void Cover() {
    t_.SetConsolidation(t_.now() + 1);
    for (size_t parts = 0; parts < 2 * ImageParts::kMax; ++parts) {
      t_.Put(5, StoredTree::kValue);
      t_.Flush(leaf_);
      if (t_.ImageOf(leaf_).count() == 1) return;
    }
    FAIL() << "it was never written as a whole";
  }
  // So many updates of one record that the page is consolidated.
  void Consolidate(uint64_t number) {
    for (int i = 0; i < 5; ++i) t_.Put(number, StoredTree::kValue);
    for (int i = 0; i < 5 && t_.HeadOf(leaf_)->kind != NodeKind::kBase; ++i) t_.Put(number, StoredTree::kValue);
    ASSERT_EQ(t_.HeadOf(leaf_)->kind, NodeKind::kBase);
  }
  void ExpectRestores() {
    EXPECT_EQ(t_.LiveBytes(), t_.BytesOfImages());
    StoredTree::Records found;
    const Status restored = t_.Restore(&found);
    EXPECT_TRUE(restored.ok()) << restored.ToString();
    EXPECT_TRUE(found == t_.records());
  }
  // Updates in the newest part of the leaf's image; 0: it is a whole one.
  size_t UpdatesInNewestPart() {
    PartBuffer buffer;
    EXPECT_TRUE(t_.store().Read(t_.ImageOf(leaf_).newest(), leaf_, &buffer).ok());
    if (buffer.part().header.kind == PartKind::kBase) return 0;
    const auto updates = DecodeDeltaImage(buffer.part().payload);
    EXPECT_TRUE(updates.ok());
    return updates.ok() ? updates->size() : 0;
  }

  StoredTree t_;
  PageId leaf_;
};

TEST_F(ConsolidatedLeaf, WhatIsNewerThanTheImageIsWrittenAlone) {
  t_.SetConsolidation(t_.now() + 1);
  t_.Put(7, "shorter");
  t_.Delete(8);
  Consolidate(6);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 2u);
  // The three, and what came between the timestamp that the image covers and the image: the record that Cover put last.
  EXPECT_GE(UpdatesInNewestPart(), 3u);
  EXPECT_LE(UpdatesInNewestPart(), 4u);
  EXPECT_TRUE(IsClean(t_.HeadOf(leaf_)));
  ExpectRestores();
  // And on top of that one.
  Consolidate(9);
  t_.Flush(leaf_);
  EXPECT_EQ(t_.ImageOf(leaf_).count(), 3u);
  ExpectRestores();
  ASSERT_TRUE(t_.Evict(leaf_));
  t_.ExpectRight();
}

TEST_F(ConsolidatedLeaf, DeltaPartsOutweighHalfThePageNever) {
  for (int round = 0; round < 100; ++round) {
    t_.SetConsolidation(t_.now() + 1);
    Consolidate(static_cast<uint64_t>(round) % 20);
    t_.Flush(leaf_);
    const ImageParts image = t_.ImageOf(leaf_);
    uint64_t deltas = 0;
    for (size_t i = 0; i + 1 < image.count(); ++i) deltas += image[i].length_bound();
    ASSERT_LE(deltas, t_.HeadOf(leaf_)->base_bytes / 2 + 512);  // lengths are rounded up, and a part has a header
  }
  ExpectRestores();
}

// Rule X1: a tombstone that was given up since cannot be told from a record that never was.
TEST_F(ConsolidatedLeaf, AGivenUpTombstoneIsNotForgotten) {
  t_.Delete(8);
  t_.SetConsolidation(t_.now() + 1);
  Consolidate(6);
  ASSERT_EQ(t_.HeadOf(leaf_)->base->tombstones(), 0u);
  t_.Flush(leaf_);
  EXPECT_EQ(UpdatesInNewestPart(), 0u);
  ExpectRestores();
}

// What the image covers is what was below the timestamp before its mark was put on the page.
TEST_F(ConsolidatedLeaf, WhatComesWhileAnImageIsWrittenIsInTheNext) {
  t_.Put(7, "shorter");
  t_.AtPoint("bwtree.flush.before_register", [&] {
    t_.Put(9, "late");
    t_.SetConsolidation(t_.now() + 1);
  });
  t_.Flush(leaf_);
  Consolidate(6);
  t_.Flush(leaf_);
  ExpectRestores();
}

TEST_F(ConsolidatedLeaf, APageThatWasSplitSinceIsWrittenAsAWhole) {
  const std::string large(300, 'l');
  const uint64_t splits = t_.tree().statistics().splits;
  for (uint64_t number = 0;; ++number) {
    ASSERT_EQ(t_.LeafOf(number), leaf_);
    for (int i = 0; i < 5; ++i) t_.Put(number, large);
    if (t_.tree().statistics().splits != splits) break;
    t_.SetConsolidation(t_.now() + 1);
    t_.Flush();
  }
  ASSERT_TRUE(IsRestructured(t_.HeadOf(leaf_)));
  t_.Flush();
  EXPECT_EQ(UpdatesInNewestPart(), 0u);
  ExpectRestores();
}

// In a new stream the timestamp is 0 until the TC has told of one.
TEST_F(ConsolidatedLeaf, WhereNothingIsKnownThePageIsWrittenAsAWhole) {
  t_.SetConsolidation(0);
  Consolidate(6);
  t_.Flush(leaf_);  // by what the image covered before
  EXPECT_EQ(UpdatesInNewestPart(), 2u);
  ExpectRestores();
  Consolidate(7);
  t_.Flush(leaf_);
  EXPECT_EQ(UpdatesInNewestPart(), 0u);
  ExpectRestores();
}

TEST_F(ConsolidatedLeaf, OfWhichMostIsGoneIsWrittenAsAWhole) {
  uint64_t last = 0;
  while (t_.LeafOf(last + 1) == leaf_) ++last;
  ASSERT_GT(last, 20u);
  for (uint64_t number = 7; number <= last; ++number) t_.Delete(number);
  Consolidate(6);
  t_.Flush(leaf_);
  EXPECT_EQ(UpdatesInNewestPart(), 0u);
  ExpectRestores();
}

TEST(NewerImage, RespectsTheLimitAndLeavesNothingBehind) {
  BasePage::Content content;
  const std::string data[] = {"a1", "b2", "c3"};
  for (uint64_t i = 0; i < 3; ++i) {
    PageEntry entry;
    entry.data = data[i].data();
    entry.key_bytes = 1;
    entry.value_bytes = 1;
    entry.version = V(i + 1);
    content.Add(entry);
  }
  const Owned<BasePage> page = BasePage::Build(0, {}, Timestamp(), content);
  const auto newer = [&](uint64_t since, size_t limit) {
    std::string out = "before";
    const bool fits = EncodeNewerImage(page.get(), Timestamp(since), limit, &out);
    EXPECT_EQ(out.substr(0, 6), "before");
    if (!fits) {
      EXPECT_EQ(out.size(), 6u);
      return size_t{0};
    }
    const auto updates = DecodeDeltaImage(std::string_view(out).substr(6));
    EXPECT_TRUE(updates.ok());
    return updates.ok() ? updates->size() : 0;
  };
  EXPECT_EQ(newer(1, 1000), 3u);
  EXPECT_EQ(newer(2, 1000), 2u);
  EXPECT_EQ(newer(3, 4 + 21), 1u);
  EXPECT_EQ(newer(3, 4 + 20), 0u);  // too large
  EXPECT_EQ(newer(4, 1000), 0u);    // there are none
}

}  // namespace
}  // namespace deut::dc
