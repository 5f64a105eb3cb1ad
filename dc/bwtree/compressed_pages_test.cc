// Trees whose pages are compressed on storage: written, loaded, copied, damaged.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "dc/bwtree/page_rewrite.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_store.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kRecords = 400;

BwTreeOptions Compressed(Compression compression) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 4 << 10;
  options.compression = compression;
  return options;
}

std::string RandomValue(Random& random, size_t bytes = StoredTree::kValue.size()) {
  std::string value;
  while (value.size() < bytes) value += static_cast<char>(random.Below(256));
  return value;
}

class CompressedPages : public ::testing::TestWithParam<Compression> {
 protected:
  StoredTree t_{Compressed(GetParam())};

  uint64_t Packed() { return t_.store().totals().bytes_before_compression; }
  // Returns the compression of a part as it lies on storage.
  Compression CompressionOf(PageId page, PageAddress part) {
    PartBuffer buffer;
    EXPECT_TRUE(t_.store().Read(part, page, &buffer).ok());
    return buffer.part().compression;
  }
  Status Copy(SegmentKind kind) {
    const auto rewriter = std::move(*PageRewriter::Create(t_.pages(), t_.domain(), t_.store()));
    for (const SegmentUsage& usage : t_.store().usage()) {
      if (usage.kind != kind) continue;
      DEUT_RETURN_IF_ERROR(
          t_.store().ForEachPart(usage.number, [&](const PartView& part) { return rewriter->Add(part); }));
    }
    return rewriter->Write();
  }
  void ExpectStored() {
    EXPECT_EQ(t_.LiveBytes(), t_.BytesOfImages());
    StoredTree::Records found;
    const Status restored = t_.Restore(&found);
    EXPECT_TRUE(restored.ok()) << restored.ToString();
    EXPECT_TRUE(found == t_.records());
  }
};

INSTANTIATE_TEST_SUITE_P(Algorithms, CompressedPages, ::testing::Values(Compression::kLz4, Compression::kZstd),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

TEST_P(CompressedPages, PagesTakeLessRoomAndAreReadBack) {
  StoredTree plain(Compressed(Compression::kNone));
  plain.FillSettled(kRecords);
  EXPECT_EQ(plain.store().totals().bytes_before_compression, 0u);
  t_.FillSettled(kRecords);
  EXPECT_LT(t_.BytesOfImages(), plain.BytesOfImages() * 2 / 3);
  const StoreTotals totals = t_.store().totals();
  EXPECT_LT(totals.bytes_after_compression, totals.bytes_before_compression * 2 / 3);
  size_t packed = 0;
  const std::vector<PageId> leaves = t_.Pages(0);
  for (const PageId leaf : leaves) packed += CompressionOf(leaf, t_.ImageOf(leaf).newest()) == GetParam() ? 1 : 0;
  EXPECT_GT(4 * packed, 3 * leaves.size());  // there may be a small one
  ExpectStored();
  t_.Evict();
  t_.ExpectRight();
}

TEST_P(CompressedPages, PagesThatCannotBeCompressedAreStoredAsTheyAre) {
  Random random(3);
  for (uint64_t i = 0; i < 60; ++i) t_.Put(i, RandomValue(random, 400));
  t_.Flush();
  for (const PageId leaf : t_.Pages(0)) {
    EXPECT_EQ(CompressionOf(leaf, t_.ImageOf(leaf).newest()), Compression::kNone);
  }
  ExpectStored();
  t_.Evict();
  t_.ExpectRight();
}

TEST_P(CompressedPages, ACopyOfAnImageOfOnePartIsNotCompressedAgain) {
  t_.FillSettled(kRecords);
  const StoredTree::Images images = t_.AllImages();
  const uint64_t before = Packed();
  ASSERT_TRUE(Copy(SegmentKind::kBase).ok());
  EXPECT_EQ(Packed(), before);
  for (const auto& [page, image] : images) {
    const ImageParts copy = t_.ImageOf(page);
    ASSERT_EQ(copy.count(), 1u);
    EXPECT_NE(copy.newest(), image.newest());
    EXPECT_EQ(copy.newest().length_bound(), image.newest().length_bound());
    EXPECT_EQ(CompressionOf(page, copy.newest()), CompressionOf(page, image.newest()));
  }
  ExpectStored();
  t_.Evict();
  t_.ExpectRight();
}

TEST_P(CompressedPages, MergedPartsArePackedAsTheirBaseWas) {
  t_.FillSettled(kRecords);
  const PageId leaf = t_.LeafOf(20);
  ASSERT_TRUE(t_.Evict(leaf));  // so that the second flush does not merge both parts
  for (const uint64_t number : {20, 21}) {
    t_.Put(number, "short");
    t_.Flush(leaf);
  }
  const ImageParts image = t_.ImageOf(leaf);
  ASSERT_EQ(image.count(), 3u);
  EXPECT_EQ(CompressionOf(leaf, image.newest()), Compression::kNone);  // an update that fits a unit anyway
  ASSERT_TRUE(Copy(SegmentKind::kBase).ok());
  ASSERT_EQ(t_.ImageOf(leaf).count(), 1u);
  EXPECT_EQ(CompressionOf(leaf, t_.ImageOf(leaf).newest()), GetParam());
  ExpectStored();
}

TEST_P(CompressedPages, MergedDeltasArePackedAsOneOfThemWas) {
  // The pages are so large that the deltas stay small beside them.
  BwTreeOptions options = Compressed(GetParam());
  options.leaf_page_bytes = 64 << 10;
  options.leaf_chain_length = 64;
  StoredTree t(options);
  Random random(5);
  for (uint64_t i = 0; i < kRecords; ++i) t.Put(i, RandomValue(random));
  t.Flush();
  const PageId leaf = t.LeafOf(20);
  for (uint64_t first = 0; first < 40; first += 20) {
    for (uint64_t i = first; i < first + 20; ++i) t.Put(i, StoredTree::kValue);
    t.Flush(leaf);
  }
  ASSERT_EQ(t.ImageOf(leaf).count(), 3u);
  PartBuffer buffer;
  ASSERT_TRUE(t.store().Read(t.ImageOf(leaf).newest(), leaf, &buffer).ok());
  ASSERT_EQ(buffer.part().compression, GetParam());
  const auto rewriter = std::move(*PageRewriter::Create(t.pages(), t.domain(), t.store()));
  for (const SegmentUsage& usage : t.store().usage()) {
    if (usage.kind != SegmentKind::kDelta) continue;
    ASSERT_TRUE(t.store().ForEachPart(usage.number, [&](const PartView& part) { return rewriter->Add(part); }).ok());
  }
  ASSERT_TRUE(rewriter->Write().ok());
  ASSERT_EQ(t.ImageOf(leaf).count(), 2u);
  ASSERT_TRUE(t.store().Read(t.ImageOf(leaf).newest(), leaf, &buffer).ok());
  EXPECT_EQ(buffer.part().compression, GetParam());
  StoredTree::Records found;
  ASSERT_TRUE(t.Restore(&found).ok());
  EXPECT_TRUE(found == t.records());
}

TEST_P(CompressedPages, AMixtureOfStatesIsCopiedRightly) {
  for (const SegmentKind kind : {SegmentKind::kBase, SegmentKind::kDelta}) {
    StoredTree t(Compressed(GetParam()));
    Random random(7);
    t.FillSettled(kRecords);
    for (int round = 0; round < 3; ++round) {
      for (uint64_t i = 0; i < kRecords / 8; ++i) {
        t.Put(random.Below(kRecords), random.OneIn(2) ? RandomValue(random) : std::string(StoredTree::kValue));
      }
      if (round == 1) t.Evict();
      t.Flush();
    }
    StoredTree::Records stored;
    ASSERT_TRUE(t.Restore(&stored).ok());
    const auto rewriter = std::move(*PageRewriter::Create(t.pages(), t.domain(), t.store()));
    for (const SegmentUsage& usage : t.store().usage()) {
      if (usage.kind != kind) continue;
      ASSERT_TRUE(t.store().ForEachPart(usage.number, [&](const PartView& part) { return rewriter->Add(part); }).ok());
    }
    ASSERT_TRUE(rewriter->Write().ok());
    EXPECT_EQ(t.LiveBytes(), t.BytesOfImages());
    StoredTree::Records found;
    ASSERT_TRUE(t.Restore(&found).ok());
    EXPECT_TRUE(found == stored);
    t.Evict();
    t.ExpectRight();
  }
}

// Checks that the error names the page and the place of its part.
void ExpectNames(const Status& status, PageId page, PageAddress part) {
  EXPECT_EQ(status, ErrorCode::kCorruption);
  const std::string where = Concat("page ", page.value, " in segment ", part.segment(), " at ", part.offset(), ": ");
  EXPECT_TRUE(status.message().starts_with(where)) << status.ToString();
}

TEST_P(CompressedPages, ADamagedPageIsRefusedWithItsPlace) {
  t_.FillSettled(kRecords);
  const PageId leaf = t_.LeafOf(20);
  ASSERT_TRUE(t_.Evict(leaf));
  const ImageParts image = t_.ImageOf(leaf);
  for (const uint64_t at :
       {uint64_t{kPartHeaderBytes}, uint64_t{kPartHeaderBytes + 4}, uint64_t{kPartHeaderBytes + 30}}) {
    t_.FlipBit(image, 0, at, 3);
    ExpectNames(t_.Load(20), leaf, image.newest());
    t_.FlipBit(image, 0, at, 3);
  }
  EXPECT_TRUE(t_.Load(20).ok());
  t_.ExpectRight();
}

// The checksum is right, and the content is not what a writer makes.
TEST_P(CompressedPages, AHostilePageIsRefusedWithItsPlace) {
  t_.FillSettled(kRecords);
  const PageId leaf = t_.LeafOf(20);
  ASSERT_TRUE(t_.Evict(leaf));
  const ImageParts image = t_.ImageOf(leaf);
  std::string payload;
  for (const SegmentUsage& usage : t_.store().usage()) {
    ASSERT_TRUE(t_.store()
                    .ForEachPart(usage.number,
                                 [&](const PartView& part) {
                                   if (part.address == image.newest()) payload = part.payload;
                                   return Status::Ok();
                                 })
                    .ok());
  }
  ASSERT_FALSE(payload.empty());
  const PartHeader header{.kind = PartKind::kBase, .page = leaf, .table = StoredTree::kTable, .packed = true};
  Random random(9);
  for (int i = 0; i < 300; ++i) {
    std::string hostile = payload;
    const uint64_t at = random.Below(hostile.size());
    hostile[at] = static_cast<char>(hostile[at] ^ (1 << random.Below(8)));
    const PageAddress part = t_.Append(header, hostile);
    t_.SetImage(leaf, ImageParts(part));
    const Status loaded = t_.Load(20);
    if (loaded.ok()) {
      ASSERT_TRUE(t_.Evict(leaf));  // a value is another one, which only the checksum could have shown
    } else {
      EXPECT_EQ(loaded, ErrorCode::kCorruption);
      EXPECT_NE(loaded.message().find(Concat("page ", leaf.value)), std::string_view::npos) << loaded.ToString();
      EXPECT_NE(loaded.message().find(Concat("in segment ", part.segment(), " at ", part.offset())),
                std::string_view::npos)
          << loaded.ToString();
    }
  }
}

// The estimate of a page that is not loaded must not make a search for small pages load large ones again and again.
TEST_P(CompressedPages, LargePagesOnStorageAreNotTakenForSmallOnes) {
  t_.FillSettled(kRecords);
  t_.Evict();
  BwTree::Walk walk;
  BwTree::MergeReport report;
  while (!walk.complete) t_.tree().MergePages(/*level=*/0, &walk, &report);
  EXPECT_TRUE(report.to_load.empty());
  EXPECT_EQ(report.merged, 0u);
}

// Their images alone would make them candidates for a merge.
TEST_P(CompressedPages, LargePagesWithTinyImagesAreNotTakenForSmallOnes) {
  BwTreeOptions options = Compressed(GetParam());
  options.leaf_page_bytes = 64 << 10;
  StoredTree t(options);
  constexpr uint64_t kLarge = 100;
  const auto store = [&] {
    t.Flush();
    while (t.Evict() != 0) {
    }
  };
  const auto to_load = [&] {
    BwTree::Walk walk;
    BwTree::MergeReport report;
    while (!walk.complete) t.tree().MergePages(/*level=*/0, &walk, &report);
    return report.to_load.size();
  };
  for (uint64_t i = 0; i < kLarge; ++i) t.Put(i, std::string(4000, 'x'));
  store();
  const std::vector<PageId> leaves = t.Pages(0);
  ASSERT_GT(leaves.size(), 4u);
  for (const PageId leaf : leaves) {
    uint64_t bytes = 0;
    const ImageParts image = t.ImageOf(leaf);
    for (const PageAddress part : image.all()) bytes += part.length_bound();
    ASSERT_LT(bytes, options.leaf_page_bytes / 32);
  }
  EXPECT_EQ(to_load(), 0u);
  // Pages that have become small are found.
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kLarge; ++i) t.Put(i, "short");
  }
  store();
  EXPECT_GT(to_load(), 0u);
  t.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
