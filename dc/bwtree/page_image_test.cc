#include "dc/bwtree/page_image.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "dc/bwtree/page_state.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

PageEntry Record(std::string_view data, uint16_t key_bytes, uint64_t timestamp, uint32_t sequence, bool tombstone) {
  PageEntry entry;
  entry.data = data.data();
  entry.key_bytes = key_bytes;
  entry.value_bytes = static_cast<uint32_t>(data.size() - key_bytes);
  entry.version = Version{Timestamp(timestamp), sequence};
  entry.tombstone = tombstone;
  return entry;
}

PageEntry Child(std::string_view separator, uint32_t id) {
  PageEntry entry;
  entry.data = separator.data();
  entry.key_bytes = static_cast<uint16_t>(separator.size());
  entry.child = PageId(id);
  return entry;
}

Owned<BasePage> Leaf() {
  BasePage::Content content;
  content.Add(Record("bb1", 2, 5, 1, false));
  content.Add(Record("c", 1, 6, 2, true));
  return BasePage::Build(0, {"b", "d", PageId(9)}, Timestamp(4), content);
}

Owned<BasePage> Inner() {
  BasePage::Content content;
  content.Add(Child("", 3));
  content.Add(Child("m", 4));
  return BasePage::Build(2, {}, Timestamp(), content);
}

std::string Encoded(const BasePage& page) {
  std::string image;
  EncodeBaseImage(page, &image);
  return image;
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string all;
  for (const int byte : bytes) all.push_back(static_cast<char>(byte));
  return all;
}

const std::string& GoldenLeaf() {
  static const std::string golden = Bytes({0,   1,   0, 0,              // level, bounded, zero
                                           2,   0,   0, 0,              // entries
                                           4,   0,   0, 0, 0, 0, 0, 0,  // flat timestamp
                                           9,   0,   0, 0,              // right neighbour
                                           1,   0,   0, 0, 1, 0, 0, 0,  // bytes of low and high
                                           40,  0,   0, 0, 1, 0, 0, 0,  // bytes of the entries, tombstones
                                           'b', 'd', 1, 0, 0, 0,        // low, high, the tombstone's number
                                           2,   0,   1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'b', 'b',
                                           '1', 1,   0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,   'c'});
  return golden;
}

TEST(PageImageTest, BytesOfALeaf) { EXPECT_EQ(Encoded(*Leaf()), GoldenLeaf()); }

TEST(PageImageTest, BytesOfAnInnerPage) {
  EXPECT_EQ(Encoded(*Inner()), Bytes({2, 0, 0, 0,  2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,
                                      0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 4, 0, 0, 0, 'm'}));
}

TEST(PageImageTest, APageComesBackAsItWas) {
  const auto leaf = DecodeBaseImage(GoldenLeaf());
  ASSERT_TRUE(leaf.ok()) << leaf.status().ToString();
  const BasePage& page = **leaf;
  EXPECT_EQ(page.low(), "b");
  EXPECT_EQ(page.fence->high_key(), "d");
  EXPECT_EQ(page.fence->sibling, PageId(9));
  EXPECT_EQ(page.flat(), Timestamp(4));
  ASSERT_EQ(page.count(), 2u);
  EXPECT_EQ(page.record(0).key(), "bb");
  EXPECT_EQ(page.record(0).value(), "1");
  EXPECT_EQ(page.record(0).version, (Version{Timestamp(5), 1}));
  EXPECT_TRUE(page.record(1).tombstone);
  EXPECT_EQ(page.record(1).version, (Version{Timestamp(6), 2}));
  const auto inner = DecodeBaseImage(Encoded(*Inner()));
  ASSERT_TRUE(inner.ok()) << inner.status().ToString();
  EXPECT_EQ((*inner)->level, 2);
  EXPECT_FALSE((*inner)->fence->bounded());
  EXPECT_EQ((*inner)->child(0), PageId(3));
  EXPECT_EQ((*inner)->key(1), "m");
  EXPECT_EQ((*inner)->child(1), PageId(4));
}

struct Chain {
  Owned<BasePage> base = Leaf();
  Owned<FlushMark> written;
  Owned<RecordDelta> put = RecordDelta::New(NodeKind::kPut, "bc", "xy", Version{Timestamp(8), 3});
  Owned<FlushMark> pending = FlushMark::New(2);
  Owned<RecordDelta> tombstone = RecordDelta::New(NodeKind::kTombstone, "bb", "", Version{Timestamp(9), 1});

  Chain() {
    base->SetStored(1, StoredIn::kBasePart);
    base->SetRemovals(StoredIn::kBasePart);
    put->LinkTo(base.get());
    pending->LinkTo(put.get());
    tombstone->LinkTo(pending.get());
  }
};

const std::string& GoldenDelta() {
  static const std::string golden =
      Bytes({2, 0, 0, 0,                                                                     // updates
             2, 2, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'b', 'b',              // the tombstone
             1, 2, 0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 'b', 'c', 'x', 'y'});  // the put
  return golden;
}

TEST(PageImageTest, BytesOfUpdates) {
  const Chain chain;
  std::string image = "before ";
  ASSERT_EQ(EncodeDeltaImage(chain.tombstone.get(), StoredIn::kNoPart, &image), 2u);
  EXPECT_EQ(image, Concat("before ", GoldenDelta()));
  const auto deltas = DecodeDeltaImage(GoldenDelta());
  ASSERT_TRUE(deltas.ok()) << deltas.status().ToString();
  ASSERT_EQ(deltas->size(), 2u);
  EXPECT_TRUE((*deltas)[0]->tombstone());
  EXPECT_EQ((*deltas)[0]->key(), "bb");
  EXPECT_EQ((*deltas)[1]->value(), "xy");
  EXPECT_EQ((*deltas)[1]->version(), (Version{Timestamp(8), 3}));
}

TEST(PageImageTest, BytesOfABaseImageAreKnownBeforehand) {
  EXPECT_EQ(BaseImageBytes(*Leaf()), GoldenLeaf().size());
  EXPECT_EQ(BaseImageBytes(*Inner()), Encoded(*Inner()).size());
}

TEST(PageImageTest, OfSeveralVersionsTheLargestIsEncoded) {
  const Chain chain;
  const Owned<RecordDelta> newer = RecordDelta::New(NodeKind::kPut, "bc", "newer", Version{Timestamp(10), 1});
  newer->LinkTo(chain.tombstone.get());
  const Owned<RecordDelta> late = RecordDelta::New(NodeKind::kPut, "bc", "late", Version{Timestamp(7), 1});
  late->LinkTo(newer.get());
  std::string image;
  ASSERT_EQ(EncodeDeltaImage(late.get(), StoredIn::kNoPart, &image), 2u);
  const auto deltas = DecodeDeltaImage(image);
  ASSERT_TRUE(deltas.ok());
  EXPECT_EQ((*deltas)[0]->key(), "bb");
  EXPECT_EQ((*deltas)[1]->value(), "newer");
}

TEST(PageImageTest, WhatIsInTheImageIsNotEncoded) {
  const Chain chain;
  std::string image;
  chain.pending->state.in.store(StoredIn::kDeltaPart);
  EXPECT_EQ(EncodeDeltaImage(chain.tombstone.get(), StoredIn::kNoPart, &image), 1u);
  EXPECT_EQ(EncodeDeltaImage(chain.tombstone.get(), StoredIn::kDeltaPart, &image), 2u);
  chain.pending->state.in.store(StoredIn::kBasePart);
  EXPECT_EQ(EncodeDeltaImage(chain.tombstone.get(), StoredIn::kDeltaPart, &image), 1u);
}

// An update that is sent again, after a restart, is in the image already.
TEST(PageImageTest, AVersionThatTheImageHasIsNotEncodedAgain) {
  const Chain chain;
  const Owned<RecordDelta> again = RecordDelta::New(NodeKind::kPut, "bb", "1", Version{Timestamp(5), 1});
  again->LinkTo(chain.base.get());
  std::string image;
  EXPECT_EQ(EncodeDeltaImage(again.get(), StoredIn::kNoPart, &image), 0u);
}

TEST(PageImageTest, APageThatLostRecordsWithoutATraceOnStorageHasNoDelta) {
  const Chain chain;
  EXPECT_EQ(RemovalsOf(chain.tombstone.get()), StoredIn::kBasePart);
  const Owned<SplitDelta> split = SplitDelta::New(chain.tombstone.get(), "bbb", PageId(77));
  EXPECT_EQ(RemovalsOf(split.get()), StoredIn::kNoPart);
  const Owned<FlushMark> written = FlushMark::New(3);
  written->LinkTo(split.get());
  written->state.in.store(StoredIn::kBasePart);
  EXPECT_EQ(RemovalsOf(written.get()), StoredIn::kBasePart);
  EXPECT_EQ(RemovalsOf(Leaf().get()), StoredIn::kNoPart) << "no image has it";
  EXPECT_EQ(RemovalsOf(BasePage::BuildStub({}).get()), StoredIn::kDeltaPart);
}

// Any bytes yield a page or CORRUPTION, and a page encodes to the same bytes again.
void ExpectSound(std::string_view bytes) {
  auto page = DecodeBaseImage(bytes);
  if (page.ok()) {
    EXPECT_EQ(Encoded(**page), bytes);
  } else {
    EXPECT_EQ(page.status(), ErrorCode::kCorruption);
  }
  const auto deltas = DecodeDeltaImage(bytes);
  if (!deltas.ok()) EXPECT_EQ(deltas.status(), ErrorCode::kCorruption);
}

TEST(PageImageTest, DamageIsRefusedOrIsAnotherPage) {
  Random random(1);
  const std::string inner = Encoded(*Inner());
  for (const std::string& image : {GoldenLeaf(), inner, GoldenDelta()}) {
    for (size_t cut = 0; cut < image.size(); ++cut) {
      EXPECT_FALSE(DecodeBaseImage(image.substr(0, cut)).ok());
      EXPECT_FALSE(DecodeDeltaImage(image.substr(0, cut)).ok());
    }
    EXPECT_FALSE(DecodeBaseImage(Concat(image, "x")).ok());
    for (int i = 0; i < 20000; ++i) {
      std::string bytes = image;
      for (uint64_t flips = 1 + random.Below(3); flips > 0; --flips) {
        bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(3) == 0 ? 0xff : random.Next());
      }
      ExpectSound(bytes);
    }
  }
}

}  // namespace
}  // namespace deut::dc
