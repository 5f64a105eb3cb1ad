#include "dc/bwtree/page_load.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/io/disk_fault.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_format.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kNumber = 20;

// A leaf that is not in memory, and whose image consists of a base part and delta parts.
class StoredLeaf {
 public:
  explicit StoredLeaf(size_t deltas = 2) {
    t.FillSettled(60);
    id = t.LeafOf(kNumber);
    // Updates of a page on storage are always appended.
    EXPECT_TRUE(t.Evict(id));
    for (size_t i = 0; i < deltas; ++i) {
      t.Put(kNumber, Concat("value ", i));
      t.Flush(id);
      EXPECT_TRUE(t.Evict(id));
    }
    image = t.ImageOf(id);
    EXPECT_EQ(image.count(), deltas + 1);
  }
  // Gives the page this image until the object is destroyed.
  void SetImage(const ImageParts& other) {
    t.SetImage(id, other);
    changed_ = true;
  }
  ~StoredLeaf() {
    if (changed_) t.SetImage(id, image);
  }
  StoredLeaf(const StoredLeaf&) = delete;
  StoredLeaf& operator=(const StoredLeaf&) = delete;

  bool on_storage() { return t.HeadOf(id) == nullptr; }

  // The steps of a load, one at a time.
  PageLoad Begin() {
    PageLoad load;
    EXPECT_TRUE(t.tree().BeginLoad(target(), &load));
    return load;
  }
  PageLoad BeginAndRead() {
    PageLoad load = Begin();
    EXPECT_TRUE(load.ReadImage(t.store()).ok());
    return load;
  }
  Status Finish(PageLoad* load) { return t.tree().FinishLoad(target(), load); }
  bool StillImage(const PageLoad& load) {
    const ReclamationDomain::Guard guard(t.domain());
    return t.tree().StillImage(load);
  }

  StoredTree t;
  PageId id;
  ImageParts image;

 private:
  Target target() const { return {key_, Side::kAt}; }

  const std::string key_ = KeyOf(kNumber);
  bool changed_ = false;
};

void ExpectNames(const Status& status, PageId page, PageAddress part) {
  EXPECT_EQ(status, ErrorCode::kCorruption);
  const std::string where = Concat("page ", page.value, " in segment ", part.segment(), " at ", part.offset(), ": ");
  EXPECT_TRUE(status.message().starts_with(where)) << status.ToString() << " does not begin with " << where;
}

// Checks that the page cannot be loaded because of that part, and that nothing changes.
void ExpectRefused(StoredLeaf& leaf, const ImageParts& image, size_t part) {
  ExpectNames(leaf.t.Load(kNumber), leaf.id, image[part]);
  EXPECT_TRUE(leaf.on_storage());
}

size_t BytesOf(StoredLeaf& leaf, size_t part) {
  PartBuffer buffer;
  EXPECT_TRUE(leaf.t.store().Read(leaf.image[part], leaf.id, &buffer).ok());
  return PartBytesInUnits(buffer.part().payload.size());
}

TEST(PageLoad, AllPartsTogetherAreThePage) {
  StoredLeaf leaf;
  ASSERT_TRUE(leaf.t.Load(kNumber).ok());
  EXPECT_FALSE(leaf.on_storage());
  EXPECT_TRUE(IsClean(leaf.t.HeadOf(leaf.id)));
  EXPECT_EQ(leaf.t.ImageOf(leaf.id).newest(), leaf.image.newest());
  leaf.t.ExpectRight();
}

TEST(PageLoad, EveryFlippedBitOfEveryPartIsFound) {
  StoredLeaf leaf;
  for (size_t part = 0; part < leaf.image.count(); ++part) {
    const size_t bytes = BytesOf(leaf, part);
    ASSERT_GT(bytes, 0u);
    // Flips a bit in every byte of header, payload and padding; the bit varies with the byte.
    for (size_t at = 0; at < bytes; ++at) {
      const int bit = static_cast<int>(at % 8);
      leaf.t.FlipBit(leaf.image, part, at, bit);
      ExpectRefused(leaf, leaf.image, part);
      leaf.t.FlipBit(leaf.image, part, at, bit);
      if (HasFailure()) return;
    }
  }
  ASSERT_TRUE(leaf.t.Load(kNumber).ok());
  leaf.t.ExpectRight();
}

TEST(PageLoad, ShortReadsAndReadErrorsNameThePartAndChangeNothing) {
  StoredLeaf leaf;
  // A load reads the base part first, then the delta parts from the newest to the oldest.
  const std::vector<size_t> order = {2, 0, 1};
  for (uint64_t read = 0; read < order.size(); ++read) {
    using Action = DiskFault::Action;
    leaf.t.disk().AddFault({.action = Action::kShort, .kinds = kDiskRead, .skip = read, .count = 1});
    ExpectRefused(leaf, leaf.image, order[read]);
    leaf.t.disk().RemoveAllFaults();
    leaf.t.disk().AddFault({.action = Action::kFlipBit, .kinds = kDiskRead, .skip = read, .count = 1});
    const Status flipped = leaf.t.Load(kNumber);
    if (!flipped.ok()) {  // otherwise the bit belonged to another part in the same blocks
      ExpectNames(flipped, leaf.id, leaf.image[order[read]]);
      EXPECT_TRUE(leaf.on_storage());
    } else {
      leaf.t.ExpectRight();
      ASSERT_TRUE(leaf.t.Evict(leaf.id));
    }
    leaf.t.disk().RemoveAllFaults();
    leaf.t.disk().AddFault({.action = Action::kIoError, .kinds = kDiskRead, .skip = read, .count = 1});
    const Status failed = leaf.t.Load(kNumber);
    EXPECT_EQ(failed, ErrorCode::kIoError);
    EXPECT_NE(failed.message().find(Concat("page ", leaf.id.value)), std::string_view::npos) << failed.ToString();
    EXPECT_TRUE(leaf.on_storage());
    leaf.t.disk().RemoveAllFaults();
  }
  ASSERT_TRUE(leaf.t.Load(kNumber).ok());
  leaf.t.ExpectRight();
}

// --- Parts that are intact, but belong to another page.

ImageParts PartsOf(std::initializer_list<PageAddress> newest_first) {
  ImageParts parts;
  for (const PageAddress part : newest_first) parts.Append(part);
  return parts;
}

PartHeader HeaderOf(PartKind kind, PageId page, PageAddress previous = {}, uint8_t level = 0) {
  return {.kind = kind, .level = level, .page = page, .table = StoredTree::kTable, .previous = previous};
}

TEST(PageLoad, PartsOfOtherPagesAndPartsThatDoNotFollowEachOtherAreRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const ImageParts& image = leaf.image;
  const PageAddress foreign = t.ImageOf(t.LeafOf(50)).newest();
  const PageAddress foreign_delta = t.Append(HeaderOf(PartKind::kDelta, t.LeafOf(50), image[2]), std::string(4, '\0'));
  struct Case {
    const char* what;
    ImageParts parts;
    size_t wrong;
  };
  for (const Case& c :
       {Case{"another page's base", PartsOf({foreign}), 0},
        Case{"another page's base under own updates", PartsOf({image[0], image[1], foreign}), 2},
        Case{"another page's updates", PartsOf({foreign_delta, image[2]}), 0},
        Case{"one is missing", PartsOf({image[0], image[2]}), 0},
        Case{"in the wrong order", PartsOf({image[1], image[0], image[2]}), 0},
        Case{"twice", PartsOf({image[0], image[0], image[1], image[2]}), 0},
        Case{"no base", PartsOf({image[0], image[1]}), 1}, Case{"nothing but updates", PartsOf({image[1]}), 0},
        Case{"base on base", PartsOf({image[2], image[2]}), 0}}) {
    SCOPED_TRACE(c.what);
    leaf.SetImage(c.parts);
    ExpectRefused(leaf, c.parts, c.wrong);
  }
  leaf.SetImage(image);
  ASSERT_TRUE(t.Load(kNumber).ok());
  t.ExpectRight();
}

TEST(PageLoad, ASegmentThatIsNotThereIsSaidSo) {
  StoredLeaf leaf;
  const PageAddress nowhere = PageAddress::Make(999, 4096, 200);
  leaf.SetImage(ImageParts(nowhere));
  const Status status = leaf.t.Load(kNumber);
  EXPECT_EQ(status, ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("segment 999"), std::string_view::npos) << status.ToString();
  EXPECT_TRUE(leaf.on_storage());
}

TEST(PageLoad, BytesThatAreNoImageAreRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const ImageParts& image = leaf.image;
  const ImageParts garbage(t.Append(HeaderOf(PartKind::kBase, leaf.id), "no image at all"));
  leaf.SetImage(garbage);
  ExpectRefused(leaf, garbage, 0);
  const ImageParts bad_delta =
      PartsOf({t.Append(HeaderOf(PartKind::kDelta, leaf.id, image[2]), "no updates either"), image[2]});
  leaf.SetImage(bad_delta);
  ExpectRefused(leaf, bad_delta, 0);
}

// Returns the payload of a delta part with one update of this key.
std::string UpdateOf(const std::string& key) {
  const Owned<BasePage> stub = BasePage::BuildStub({{}, {}, kNoPage});
  const Owned<RecordDelta> delta = RecordDelta::New(NodeKind::kPut, key, "value", V(1000));
  delta->LinkTo(stub.get());
  std::string payload;
  EXPECT_EQ(EncodeDeltaImage(delta.get(), StoredIn::kNoPart, &payload), 1u);
  return payload;
}

TEST(PageLoad, UpdatesOutsideOfThePageAreRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  for (const uint64_t number : {uint64_t{0}, uint64_t{59}}) {
    ASSERT_NE(t.LeafOf(number), leaf.id);
    const PageAddress delta = t.Append(HeaderOf(PartKind::kDelta, leaf.id, leaf.image[2]), UpdateOf(KeyOf(number)));
    const ImageParts parts = PartsOf({delta, leaf.image[2]});
    leaf.SetImage(parts);
    ExpectRefused(leaf, parts, 0);
  }
}

TEST(PageLoad, BoundsThatAreNotThoseOfTheParentAndAPageThatIsItsOwnSiblingAreRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const PageLoad load = leaf.BeginAndRead();
  const std::string low(load.page->low());
  const std::string high(load.page->fence->high_key());
  const PageId sibling = load.page->fence->sibling;
  const auto image_with = [&](const BasePage::Bounds& bounds) {
    std::string payload;
    EncodeBaseImage(*BasePage::Build(/*level=*/0, bounds, Timestamp(), BasePage::Content()), &payload);
    return ImageParts(t.Append(HeaderOf(PartKind::kBase, leaf.id), payload));
  };
  const std::string higher = high + "x";
  const std::string lower = low.substr(0, low.size() - 1);
  const std::string inside = KeyOf(kNumber);
  for (const BasePage::Bounds& bounds : {BasePage::Bounds{low, higher, sibling}, BasePage::Bounds{low, inside, sibling},
                                         BasePage::Bounds{low, {}, kNoPage}, BasePage::Bounds{lower, high, sibling},
                                         BasePage::Bounds{inside, high, sibling}, BasePage::Bounds{{}, high, sibling},
                                         BasePage::Bounds{low, high, leaf.id}}) {
    const ImageParts parts = image_with(bounds);
    leaf.SetImage(parts);
    const Status status = t.Load(kNumber);
    EXPECT_EQ(status, ErrorCode::kCorruption) << bounds.low << " " << bounds.high;
    EXPECT_NE(status.message().find(Concat("page ", leaf.id.value)), std::string_view::npos) << status.ToString();
    EXPECT_NE(status.message().find(Concat("segment ", parts.newest().segment(), " at ", parts.newest().offset())),
              std::string_view::npos)
        << status.ToString();
    EXPECT_TRUE(leaf.on_storage());
  }
}

// Gives the page an image of one base part without records, with these bounds.
ImageParts EmptyImage(StoredTree& t, PageId id, const BasePage::Bounds& bounds) {
  std::string payload;
  EncodeBaseImage(*BasePage::Build(/*level=*/0, bounds, Timestamp(), BasePage::Content()), &payload);
  return ImageParts(t.Append(HeaderOf(PartKind::kBase, id), payload));
}

void ExpectNamesImage(const Status& status, PageId page, const ImageParts& image) {
  EXPECT_EQ(status, ErrorCode::kCorruption);
  const PageAddress base = image[image.count() - 1];
  const std::string where =
      Concat("page ", page.value, ": its image in segment ", base.segment(), " at ", base.offset());
  EXPECT_TRUE(status.message().starts_with(where)) << status.ToString() << " does not begin with " << where;
}

// The bounds are those of a child of the same parent, but of another one.
TEST(PageLoad, TheBoundsOfAnotherPageAreRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const PageId other = t.LeafOf(50);
  ASSERT_NE(other, leaf.id);
  ASSERT_TRUE(t.Evict(other));
  PageLoad foreign;
  const std::string key = KeyOf(50);
  ASSERT_TRUE(t.tree().BeginLoad(Target(key, Side::kAt), &foreign));
  ASSERT_TRUE(foreign.ReadImage(t.store()).ok());
  const Fence& fence = *foreign.page->fence;
  const ImageParts parts = EmptyImage(t, leaf.id, {foreign.page->low(), fence.high_key(), fence.sibling});
  leaf.SetImage(parts);
  ExpectNamesImage(t.Load(kNumber), leaf.id, parts);
  EXPECT_TRUE(leaf.on_storage());
  leaf.SetImage(leaf.image);
  t.ExpectRight();
}

TEST(PageLoad, AnImageOfAnotherTableIsRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const PageLoad load = leaf.BeginAndRead();
  std::string payload;
  EncodeBaseImage(*load.page, &payload);
  PartHeader header = HeaderOf(PartKind::kBase, leaf.id);
  header.table = TableId(StoredTree::kTable.value + 1);
  const ImageParts parts(t.Append(header, payload));
  leaf.SetImage(parts);
  ExpectNamesImage(t.Load(kNumber), leaf.id, parts);
  EXPECT_TRUE(leaf.on_storage());
  leaf.SetImage(leaf.image);
  t.ExpectRight();
}

// While the image is compared, the parent gets a term. A comparison with the parent that led here would prove nothing,
// so the thread descends again.
TEST(PageLoad, WrongBoundsAreRefusedAlsoIfTheParentChangesMeanwhile) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const PageLoad load = leaf.BeginAndRead();
  const std::string inside = KeyOf(kNumber);
  const std::string high(load.page->fence->high_key());
  const ImageParts wrong = EmptyImage(t, leaf.id, {inside, high, load.page->fence->sibling});
  const auto split_another = [&] {
    const uint64_t splits = t.tree().statistics().splits;
    while (t.tree().statistics().splits == splits) t.Put(50, std::string(800, 'x'));
  };
  leaf.SetImage(wrong);
  PageLoad damaged = leaf.BeginAndRead();
  t.AtPoint("bwtree.load.before_image_again", split_another);
  ExpectNamesImage(leaf.Finish(&damaged), leaf.id, wrong);
  EXPECT_TRUE(leaf.on_storage());
  // The right image is put in under the same change.
  leaf.SetImage(leaf.image);
  PageLoad intact = leaf.BeginAndRead();
  t.AtPoint("bwtree.load.before_image_again", [&] {
    const uint64_t splits = t.tree().statistics().splits;
    while (t.tree().statistics().splits == splits) t.Put(2, std::string(800, 'x'));
  });
  ASSERT_TRUE(leaf.Finish(&intact).ok());
  EXPECT_FALSE(leaf.on_storage());
  t.ExpectRight();
}

// A scan would go on there, and a flusher would write that page first: to ids that do not exist, in a circle, or past
// records.
TEST(PageLoad, ARightSiblingThatTheInnerPagesDoNotNameIsRefused) {
  for (const bool stub : {false, true}) {
    StoredLeaf leaf;
    StoredTree& t = leaf.t;
    const PageLoad load = leaf.BeginAndRead();
    const std::string low(load.page->low());
    const std::string high(load.page->fence->high_key());
    const PageId sibling = load.page->fence->sibling;
    ASSERT_NE(sibling, kNoPage);
    if (stub) t.Put(kNumber, "blind");
    const Node* const head = t.HeadOf(leaf.id);
    for (const PageId wrong : {t.LeafOf(0), t.LeafOf(59), t.tree().root(), PageId(1u << 30), PageId(60000)}) {
      ASSERT_NE(wrong, sibling);
      const ImageParts parts = EmptyImage(t, leaf.id, {low, high, wrong});
      leaf.SetImage(parts);
      ExpectNamesImage(t.Load(kNumber), leaf.id, parts);
      EXPECT_EQ(t.HeadOf(leaf.id), head);
    }
    leaf.SetImage(leaf.image);
    t.ExpectRight();
  }
}

// The right sibling of a parent's last child is named by the next parent.
TEST(PageLoad, TheSiblingOfAParentsLastChildIsComparedToo) {
  StoredTree t;
  t.FillSettled(400);
  ASSERT_GE(t.tree().root_level(), 2);
  // Walks go from right to left.
  PageId id = kNoPage;
  std::string high;
  PageId parent_right_of_it = kNoPage;
  t.Walk(0, [&](const VisitedPage& page) {
    if (id == kNoPage && parent_right_of_it != kNoPage && page.parent != parent_right_of_it) {
      id = page.id;
      high = page.high;
    }
    parent_right_of_it = page.parent;
  });
  ASSERT_NE(id, kNoPage);
  const Target target(high, Side::kBelow);
  ASSERT_TRUE(t.Evict(id));
  const ImageParts image = t.ImageOf(id);
  PageLoad load;
  ASSERT_TRUE(t.tree().BeginLoad(target, &load));
  ASSERT_TRUE(load.ReadImage(t.store()).ok());
  const ImageParts parts = EmptyImage(t, id, {load.page->low(), high, t.LeafOf(0)});
  t.SetImage(id, parts);
  ExpectNamesImage(t.Load(target), id, parts);
  EXPECT_EQ(t.HeadOf(id), nullptr);
  t.SetImage(id, image);
  const Status loaded = t.Load(target);
  EXPECT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_NE(t.HeadOf(id), nullptr);
  t.ExpectRight();
}

// A descent that took it for a leaf's parent would follow its children.
TEST(PageLoad, AnInnerPageInTheLeafsPlaceIsRefused) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  const PageLoad load = leaf.BeginAndRead();
  PageEntry child;
  child.data = load.page->low().data();
  child.key_bytes = static_cast<uint16_t>(load.page->low().size());
  child.child = t.LeafOf(50);
  BasePage::Content content;
  content.Add(child);
  const BasePage::Bounds bounds{load.page->low(), load.page->fence->high_key(), load.page->fence->sibling};
  std::string payload;
  EncodeBaseImage(*BasePage::Build(/*level=*/1, bounds, Timestamp(), content), &payload);
  const ImageParts parts(t.Append(HeaderOf(PartKind::kBase, leaf.id, {}, /*level=*/1), payload));
  leaf.SetImage(parts);
  const Status status = t.Load(kNumber);
  EXPECT_EQ(status, ErrorCode::kCorruption);
  EXPECT_NE(status.message().find(Concat("page ", leaf.id.value, ": its image in segment ", parts.newest().segment(),
                                         " at ", parts.newest().offset())),
            std::string_view::npos)
      << status.ToString();
  EXPECT_TRUE(leaf.on_storage());
}

TEST(PageLoad, AnInnerPageHasNoUpdatesOfItsOwnOnStorage) {
  StoredTree t;
  t.FillSettled(60);
  const PageId root = t.tree().root();
  const ImageParts image = t.ImageOf(root);
  const PageAddress delta = t.Append(HeaderOf(PartKind::kDelta, root, image.newest(), /*level=*/1), UpdateOf(KeyOf(1)));
  StoredTree::Images images = t.AllImages();
  images[root] = PartsOf({delta, image.newest()});
  StoredTree::Records found;
  ExpectNames(t.Restore(images, &found), root, image.newest());
}

// --- A page that other threads change meanwhile.

TEST(PageLoad, TheFirstThreadInstallsThePage) {
  StoredLeaf leaf;
  PageLoad late = leaf.BeginAndRead();
  ASSERT_TRUE(leaf.t.Load(kNumber).ok());
  const Node* const head = leaf.t.HeadOf(leaf.id);
  const uint64_t bytes = leaf.t.tree().statistics().bytes;
  ASSERT_TRUE(leaf.Finish(&late).ok());
  EXPECT_EQ(leaf.t.HeadOf(leaf.id), head);
  EXPECT_EQ(leaf.t.tree().statistics().bytes, bytes);
  leaf.t.ExpectRight();
}

TEST(PageLoad, AStubsUpdatesStayOnThePage) {
  StoredLeaf leaf(/*deltas=*/0);
  StoredTree& t = leaf.t;
  // Some of the updates were written already. The value is so long that the next part does not take it along.
  t.Put(kNumber, std::string(90, 'b'));
  t.Flush(leaf.id);
  t.Put(kNumber + 1, "blind, too");
  PageLoad load = leaf.BeginAndRead();
  t.Put(kNumber + 1, "while the image is read");
  ASSERT_TRUE(IsStub(t.HeadOf(leaf.id)));
  ASSERT_TRUE(leaf.Finish(&load).ok());
  EXPECT_FALSE(IsStub(t.HeadOf(leaf.id)));
  EXPECT_FALSE(IsClean(t.HeadOf(leaf.id)));
  // The unwritten updates are now written: as a delta part behind the existing parts.
  const size_t parts = t.ImageOf(leaf.id).count();
  t.Flush(leaf.id);
  EXPECT_EQ(t.ImageOf(leaf.id).count(), parts + 1);
  PartBuffer buffer;
  ASSERT_TRUE(t.store().Read(t.ImageOf(leaf.id).newest(), leaf.id, &buffer).ok());
  const auto updates = DecodeDeltaImage(buffer.part().payload);
  ASSERT_TRUE(updates.ok());
  EXPECT_EQ(updates->size(), 1u) << "of both versions, the newer one";
  ASSERT_TRUE(t.Evict(leaf.id));
  t.ExpectRight();
}

TEST(PageLoad, AnImageThatIsReplacedMeanwhileIsNotPutIn) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  PageLoad old = leaf.Begin();
  EXPECT_TRUE(leaf.StillImage(old));
  t.Put(kNumber, "newer");
  t.Flush(leaf.id);
  ASSERT_TRUE(t.Evict(leaf.id));
  ASSERT_TRUE(old.ReadImage(t.store()).ok());  // the parts of the old image are still there
  EXPECT_FALSE(leaf.StillImage(old));
  ASSERT_TRUE(leaf.Finish(&old).ok());
  EXPECT_TRUE(leaf.on_storage());
  t.ExpectRight();
}

TEST(PageLoad, ThePageMayBeSplitMeanwhile) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  PageLoad old = leaf.BeginAndRead();
  const uint64_t splits = t.tree().statistics().splits;
  ASSERT_TRUE(t.Load(kNumber).ok());
  while (t.tree().statistics().splits == splits) t.Put(kNumber, std::string(800, 'x'));
  t.Flush();
  t.Evict();
  ASSERT_TRUE(leaf.Finish(&old).ok());
  t.ExpectRight();
}

// Another thread loads the page, and merges it and its right neighbour. The inner pages no longer name the neighbour
// then. That is no damage.
TEST(PageLoad, AMergeWithTheRightNeighbourMeanwhileIsNoDamage) {
  for (const bool stub : {false, true}) {
    StoredLeaf leaf;
    StoredTree& t = leaf.t;
    if (stub) t.Put(kNumber, "blind");
    PageLoad late = leaf.BeginAndRead();
    const uint64_t merges = t.tree().statistics().merges;
    t.AtPoint("bwtree.load.before_image_again", [&] {
      ASSERT_TRUE(t.Load(kNumber).ok());
      // The second round leaves nothing but tombstones in the base pages.
      for (int round = 0; round < 2; ++round) {
        for (uint64_t i = 0; i < 60; ++i) {
          if (i != kNumber) t.Delete(i);
        }
      }
      t.SetConsolidation(t.now() + 1);
      MergeOnce(&t.tree());
    });
    const Status status = leaf.Finish(&late);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_GT(t.tree().statistics().merges, merges);
    t.ExpectRight();
  }
}

// The load copies the mark of a flush, and the flush ends before the compare-and-swap. So the page that is installed
// does not know what the flush has written.
TEST(PageLoad, APageWhoseFlushEndsDuringItsLoadIsMarkedAsDirty) {
  StoredLeaf leaf;
  StoredTree& t = leaf.t;
  t.Put(kNumber, "blind");
  const auto added = t.Add(leaf.id);
  ASSERT_TRUE(added.ok());
  ASSERT_EQ(*added, PageFlusher::Added::kAdded);
  t.pages().TakeDirty([](uint64_t, uint64_t) {});  // a checkpoint that has added the page
  t.AtPoint("bwtree.load.before_cas", [&] { ASSERT_TRUE(t.flusher().Write().ok()); });
  ASSERT_TRUE(t.Load(kNumber).ok());
  ASSERT_EQ(t.ImageOf(leaf.id).count(), leaf.image.count() + 1);
  ASSERT_FALSE(IsStub(t.HeadOf(leaf.id)));
  EXPECT_FALSE(IsClean(t.HeadOf(leaf.id)));
  bool marked = false;
  t.pages().TakeDirty([&](uint64_t word, uint64_t marks) {
    marked |= leaf.id.value / MappingTable::kMarksPerWord == word &&
              (marks >> (leaf.id.value % MappingTable::kMarksPerWord) & 1) != 0;
  });
  EXPECT_TRUE(marked);
  t.ExpectRight();
}

TEST(PageLoad, ALostCompareAndSwapChangesNothing) {
  for (const bool stub : {false, true}) {
    StoredLeaf leaf;
    StoredTree& t = leaf.t;
    if (stub) t.Put(kNumber, "blind");
    const Node* const head = t.HeadOf(leaf.id);
    const uint64_t bytes = t.tree().statistics().bytes;
    testing::SetCasHandler([](std::string_view name) { return name == "bwtree.load.cas"; });
    ASSERT_TRUE(t.Load(kNumber).ok());
    EXPECT_EQ(t.HeadOf(leaf.id), head);
    EXPECT_EQ(t.tree().statistics().bytes, bytes);
    testing::SetCasHandler({});
    // The compare-and-swap is really lost: an update that comes before it stays.
    t.AtPoint("bwtree.load.before_cas", [&] { t.Put(kNumber + 1, "just before"); });
    ASSERT_TRUE(t.Load(kNumber).ok());
    EXPECT_TRUE(IsStub(t.HeadOf(leaf.id)));
    ASSERT_TRUE(t.Load(kNumber).ok());
    EXPECT_FALSE(IsStub(t.HeadOf(leaf.id)));
    t.ExpectRight();
  }
}

}  // namespace
}  // namespace deut::dc
