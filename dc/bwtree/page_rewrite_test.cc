#include "dc/bwtree/page_rewrite.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/io/disk_fault.h"
#include "common/runtime/random.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/segment_format.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

std::unique_ptr<PageRewriter> NewRewriter(StoredTree& t) {
  return std::move(*PageRewriter::Create(t.pages(), t.domain(), t.store()));
}

// Copies the live parts of all existing segments of one kind.
Status RewriteAll(StoredTree& t, PageRewriter& rewriter, SegmentKind kind) {
  for (const SegmentUsage& usage : t.store().usage()) {
    if (usage.kind != kind) continue;
    DEUT_RETURN_IF_ERROR(t.store().ForEachPart(usage.number, [&](const PartView& part) { return rewriter.Add(part); }));
  }
  return rewriter.Write();
}
Status RewriteAll(StoredTree& t, SegmentKind kind) {
  const auto rewriter = NewRewriter(t);
  return RewriteAll(t, *rewriter, kind);
}

// Checks that every written part is named by an image or is dead, and that a recovery finds the expected records in
// the images.
void ExpectStored(StoredTree& t, const StoredTree::Records& records) {
  EXPECT_EQ(t.LiveBytes(), t.BytesOfImages());
  StoredTree::Records found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_TRUE(found == records);
}

// Checks that no image names a part in any of the segments.
void ExpectEmptied(StoredTree& t, const std::vector<SegmentUsage>& segments, SegmentKind kind) {
  for (const SegmentUsage& before : segments) {
    for (const SegmentUsage& now : t.store().usage()) {
      if (now.number == before.number && now.kind == kind) EXPECT_EQ(now.live_bytes, 0u) << now.number;
    }
  }
}

// Mixes leaves in all states: clean and in memory, evicted, changed since, changed blindly; with and without delta
// parts.
void MixUp(StoredTree& t, uint64_t records) {
  Random random(7);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < records / 8; ++i) t.Put(random.Below(records), Concat("round ", round, " ", i));
    if (round == 1) t.Evict();
    t.Flush();
  }
  for (uint64_t i = 0; i < records; ++i) {
    if (random.OneIn(6)) ASSERT_TRUE(t.Load(i).ok());
  }
  for (uint64_t i = 0; i < records / 10; ++i) t.Put(random.Below(records), "not written");
}

TEST(PageRewrite, ACopySaysWhatTheImageSays) {
  for (const SegmentKind kind : {SegmentKind::kBase, SegmentKind::kDelta}) {
    StoredTree t;
    t.FillSettled(300);
    MixUp(t, 300);
    StoredTree::Records stored;
    ASSERT_TRUE(t.Restore(&stored).ok());
    ASSERT_FALSE(stored == t.records());
    const std::vector<SegmentUsage> before = t.store().usage();
    const uint64_t live = t.LiveBytes();
    const uint64_t bytes = t.tree().statistics().bytes;
    const Status rewritten = RewriteAll(t, kind);
    ASSERT_TRUE(rewritten.ok()) << rewritten.ToString();
    ExpectEmptied(t, before, kind);
    EXPECT_LE(t.LiveBytes(), live);
    EXPECT_EQ(t.tree().statistics().bytes, bytes);  // nothing was loaded or evicted
    ExpectStored(t, stored);
    // Updates, flushes and evictions still work afterwards.
    MixUp(t, 300);
    t.Flush();
    ExpectStored(t, t.records());
    t.Evict();
    t.ExpectRight();
  }
}

TEST(PageRewrite, DeltasBecomeOneOnTheSameBase) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 4 << 10;
  StoredTree t(options);
  t.FillSettled(200);
  const PageId leaf = t.LeafOf(20);
  // Each of them fills its units, so that the second flush does not take the first one along.
  t.Put(20, std::string(90, 'a'));
  t.Flush(leaf);
  t.Put(21, std::string(90, 'b'));
  t.Flush(leaf);
  const ImageParts before = t.ImageOf(leaf);
  ASSERT_EQ(before.count(), 3u);
  const auto rewriter = NewRewriter(t);
  ASSERT_TRUE(RewriteAll(t, *rewriter, SegmentKind::kDelta).ok());
  const ImageParts after = t.ImageOf(leaf);
  ASSERT_EQ(after.count(), 2u);
  EXPECT_EQ(after[1], before[2]);
  EXPECT_LT(rewriter->statistics().bytes_written, before[2].length_bound() / 2);
  ExpectStored(t, t.records());
}

TEST(PageRewrite, ManyDeltasAndTheirBaseBecomeOnePart) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  ASSERT_TRUE(t.Evict(leaf));  // so that the parts are not merged by the flushes
  for (size_t parts = 2; parts <= ImageParts::kMax; ++parts) {
    t.Put(20, Concat("delta ", parts));
    t.Flush(leaf);
  }
  ASSERT_GT(t.ImageOf(leaf).count(), 3u);
  ASSERT_TRUE(RewriteAll(t, SegmentKind::kDelta).ok());
  EXPECT_EQ(t.ImageOf(leaf).count(), 1u);
  ExpectStored(t, t.records());
}

// --- Other threads come between the write of a copy and its installation.

TEST(PageRewrite, CleanACopyOfAnOlderImageIsDropped) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  ImageParts flushed;
  t.AtPoint("bwtree.rewrite.written", [&] {
    t.Put(20, "newer");
    t.Flush(leaf);
    flushed = t.ImageOf(leaf);
  });
  const auto rewriter = NewRewriter(t);
  ASSERT_TRUE(RewriteAll(t, *rewriter, SegmentKind::kBase).ok());
  EXPECT_EQ(t.ImageOf(leaf).newest(), flushed.newest());
  EXPECT_EQ(rewriter->statistics().copies_lost, 1u);
  ExpectStored(t, t.records());
}

TEST(PageRewrite, APageThatIsBeingWrittenIsLeftAlone) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  const ImageParts before = t.ImageOf(leaf);
  t.Put(20, "on its way");
  ASSERT_TRUE(t.Add(leaf).ok());  // claims the image
  ASSERT_TRUE(RewriteAll(t, SegmentKind::kBase).ok());
  EXPECT_EQ(t.ImageOf(leaf).newest(), before.newest());
  ASSERT_TRUE(t.flusher().Write().ok());
  ExpectStored(t, t.records());
}

TEST(PageRewrite, APageIsEvictedWithTheImageThatItHadAMomentAgo) {
  StoredTree t;
  t.FillSettled(60);
  // The evictor reads the image, then the image is copied, then the page is evicted.
  bool done = false;
  t.AtPoint("bwtree.evict.before_cas", [&] { done = RewriteAll(t, SegmentKind::kBase).ok(); });
  ASSERT_GE(t.Evict(), 2);
  ASSERT_TRUE(done);
  t.Put(20, "blind");
  t.ExpectRight();
  t.Flush();
  t.Evict();
  ExpectStored(t, t.records());
  t.ExpectRight();
}

TEST(PageRewrite, APageIsLoadedWhileItsImageIsCopied) {
  StoredTree t;
  t.FillSettled(60);
  ASSERT_GE(t.Evict(), 2);
  const std::string key = KeyOf(20);
  PageLoad load;
  ASSERT_TRUE(t.tree().BeginLoad(Target(key, Side::kAt), &load));
  ASSERT_TRUE(load.ReadImage(t.store()).ok());
  t.AtPoint("bwtree.load.before_cas", [&] { ASSERT_TRUE(RewriteAll(t, SegmentKind::kBase).ok()); });
  ASSERT_TRUE(t.tree().FinishLoad(Target(key, Side::kAt), &load).ok());
  EXPECT_NE(t.HeadOf(load.id), nullptr);
  // A load that read the old image before the copy, and finishes after it, begins again.
  PageLoad late;
  const std::string other = KeyOf(59);
  ASSERT_TRUE(t.Evict() > 0);
  ASSERT_TRUE(t.tree().BeginLoad(Target(other, Side::kAt), &late));
  ASSERT_TRUE(late.ReadImage(t.store()).ok());
  ASSERT_TRUE(RewriteAll(t, SegmentKind::kBase).ok());
  ASSERT_TRUE(t.tree().FinishLoad(Target(other, Side::kAt), &late).ok());
  EXPECT_EQ(t.HeadOf(late.id), nullptr);
  t.ExpectRight();
}

TEST(PageRewrite, TheTreeIsDropped) {
  for (const std::string_view at : {"mapping_table.image.before_list", "bwtree.rewrite.read", "bwtree.rewrite.written",
                                    "bwtree.rewrite.before_replace", "mapping_table.replace_image.before_cas"}) {
    StoredTree t;
    t.FillSettled(60);
    for (uint64_t i = 0; i < 60; i += 5) t.Put(i, "x");
    t.Flush();
    t.AtPoint(std::string(at), [&] { t.Drop(); });
    ASSERT_TRUE(RewriteAll(t, SegmentKind::kDelta).ok());
    EXPECT_EQ(t.LiveBytes(), 0u) << at;
    EXPECT_EQ(t.BytesOfImages(), 0u) << at;
  }
}

TEST(PageRewrite, AnIdThatIsUsedAgainKeepsItsNewImage) {
  StoredTree t;
  const BwTreeEnvironment environment = t.environment();
  auto other = std::move(*BwTree::Create(environment, SmallPages(), StoredTree::kTable));
  const PageId id = other->root();
  ASSERT_TRUE(other->Put(KeyOf(1), "first", V(1)).ok());
  const auto flush = [&] {
    {
      const ReclamationDomain::Guard guard(t.domain());
      t.flusher().Add(*other, id);
    }
    ASSERT_TRUE(t.flusher().Write().ok());
  };
  flush();
  t.AtPoint("bwtree.rewrite.written", [&] {
    other.reset();
    other = std::move(*BwTree::Create(environment, SmallPages(), StoredTree::kTable));
    ASSERT_EQ(other->root(), id);
    ASSERT_TRUE(other->Put(KeyOf(1), "second", V(2)).ok());
    flush();
  });
  const auto rewriter = NewRewriter(t);
  ASSERT_TRUE(RewriteAll(t, *rewriter, SegmentKind::kBase).ok());
  EXPECT_EQ(rewriter->statistics().copies_lost, 1u);
  EXPECT_EQ(t.LiveBytes(), t.BytesOfImages());
  PageLoad load;
  load.id = id;
  load.parts = t.ImageOf(id);
  ASSERT_TRUE(load.ReadImage(t.store()).ok());
  EXPECT_NE(load.page->run(0, load.page->count()).find("second"), std::string_view::npos);
  other.reset();
}

TEST(PageRewrite, LostCompareAndSwaps) {
  StoredTree t;
  t.FillSettled(300);
  MixUp(t, 300);
  StoredTree::Records stored;
  ASSERT_TRUE(t.Restore(&stored).ok());
  const std::vector<SegmentUsage> before = t.store().usage();
  int passes = 0;
  testing::SetCasHandler(
      [&](std::string_view name) { return name == "mapping_table.replace_image.cas" && ++passes % 2 == 0; });
  const auto rewriter = NewRewriter(t);
  for (const SegmentKind kind : {SegmentKind::kDelta, SegmentKind::kBase}) {
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(RewriteAll(t, *rewriter, kind).ok());
  }
  testing::SetCasHandler({});
  EXPECT_GT(rewriter->statistics().copies_lost, 20u);
  ExpectStored(t, stored);
  t.Flush();
  ExpectStored(t, t.records());
  t.ExpectRight();
}

// --- The disk.

TEST(PageRewrite, WantOfSpaceChangesNothing) {
  for (const SegmentKind kind : {SegmentKind::kBase, SegmentKind::kDelta}) {
    StoredTree t;
    t.FillSettled(300);
    MixUp(t, 300);
    StoredTree::Records stored;
    ASSERT_TRUE(t.Restore(&stored).ok());
    const StoredTree::Images images = t.AllImages();
    const auto rewriter = NewRewriter(t);
    t.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite, .count = 1});
    EXPECT_EQ(RewriteAll(t, *rewriter, kind), ErrorCode::kResourceExhausted);
    ASSERT_TRUE(rewriter->Write().ok());
    ExpectStored(t, stored);
    EXPECT_TRUE(RewriteAll(t, *rewriter, kind).ok());
    ExpectStored(t, stored);
  }
}

TEST(PageRewrite, DamageIsNamedAndWhatCanBeReadIsCopied) {
  StoredTree t;
  t.FillSettled(60);
  const PageId leaf = t.LeafOf(20);
  t.Put(20, "a");
  t.Flush(leaf);
  const PageId sound = t.LeafOf(59);
  t.Put(59, "b");
  t.Flush(sound);
  const ImageParts before = t.ImageOf(leaf);
  const uint64_t newest_sound = t.ImageOf(sound).newest().raw();
  const auto rewriter = NewRewriter(t);
  t.FlipBit(before, /*part=*/1, /*at=*/60, /*bit=*/3);  // the base part of the image
  std::vector<Status> errors;
  for (const PageId id : {leaf, sound}) {
    const ImageParts image = t.ImageOf(id);
    PartBuffer buffer;
    ASSERT_TRUE(t.store().Read(image.newest(), id, &buffer).ok());
    // The part as it would be found in a segment of base parts.
    PartView part = buffer.part();
    part.header.kind = PartKind::kBase;
    errors.push_back(rewriter->Add(part));
  }
  EXPECT_EQ(errors[0], ErrorCode::kCorruption);
  EXPECT_NE(errors[0].message().find(Concat("page ", leaf.value, " in segment ")), std::string::npos)
      << errors[0].ToString();
  EXPECT_TRUE(errors[1].ok());
  ASSERT_TRUE(rewriter->Write().ok());
  EXPECT_EQ(t.ImageOf(leaf).newest(), before.newest());
  EXPECT_NE(t.ImageOf(sound).newest().raw(), newest_sound);
  EXPECT_EQ(t.LiveBytes(), t.BytesOfImages());
}

TEST(PageRewrite, PartsOfNoPage) {
  StoredTree t;
  t.FillSettled(60);
  const StoredTree::Images images = t.AllImages();
  PartHeader header;
  header.table = StoredTree::kTable;
  const auto rewriter = NewRewriter(t);
  for (const uint32_t id : {0u, 1u, UINT32_MAX, 1u << 20}) {
    header.page = PageId(id);
    ASSERT_TRUE(
        rewriter->Add(PartView{header, PageAddress::Make(1000, kSegmentHeaderBytes, 100), "whatever it says"}).ok());
  }
  ASSERT_TRUE(rewriter->Write().ok());
  EXPECT_EQ(rewriter->statistics().copies, 0u);
}

}  // namespace
}  // namespace deut::dc
