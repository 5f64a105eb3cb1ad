// Random sequences of all that happens to pages: the content of the images is always the content of the tree.
// In each sequence a flush may be in flight while other steps are taken. After some steps everything is written, and a
// tree that is recovered from the images is compared with the expected records.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/compression.h"
#include "common/io/disk_fault.h"
#include "common/runtime/random.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_rewrite.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_store.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

using Added = PageFlusher::Added;

constexpr uint64_t kKeys = 90;
constexpr uint64_t kSequences = 1000;
constexpr int kSteps = 150;

BwTreeOptions Options(Random& random) {
  BwTreeOptions options = SmallPages();
  // With the larger pages most flushes are delta parts, with the smaller ones there are many splits and merges.
  options.leaf_page_bytes = random.OneIn(2) ? 1024 : 4096;
  options.leaf_chain_length = static_cast<uint16_t>(random.Between(2, 12));
  if (random.OneIn(4)) options.compression = Compression::kLz4;
  return options;
}

class Sequence {
 public:
  explicit Sequence(uint64_t seed) : random_(seed), t_(Options(random_)) {}

  void Run() {
    for (uint64_t i = 0; i < kKeys; ++i) Put(i);
    Checkpoint();
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) Step();
    Checkpoint();
    t_.Evict();
    t_.ExpectRight();
  }

 private:
  std::string Value() {
    return std::string(random_.Below(4) == 0 ? random_.Below(150) : 40, static_cast<char>('a' + random_.Below(26)));
  }
  // Most steps are about few keys, so that they meet in pages.
  uint64_t Key() { return random_.OneIn(3) ? random_.Below(kKeys) : 20 + random_.Below(8); }

  void Step() {
    const uint64_t choice = random_.Below(100);
    if (choice < 35) return Put(Key());
    if (choice < 43) return Delete(Key());
    if (choice < 53) return Consolidate();
    if (choice < 65) return Flush();
    if (choice < 72) return BeginFlush();
    if (choice < 77) return EndFlush(/*fails=*/random_.OneIn(3));
    if (choice < 83) return Evict();
    if (choice < 88) return Load();
    if (choice < 91) return t_.SetConsolidation(t_.now() + 1);
    if (choice < 93) return Merge();
    if (choice < 95) return Copy();
    if (choice < 96) return ReadAll();
    if (choice < 98) return SendAgain();
    Checkpoint();
  }

  void Put(uint64_t number) {
    const std::string value = Value();
    t_.Put(number, value);
    sent_.push_back({number, /*deleted=*/false, value, t_.now()});
  }
  void Delete(uint64_t number) {
    t_.Delete(number);
    sent_.push_back({number, /*deleted=*/true, {}, t_.now()});
  }
  // As after a start of the TC: updates that were applied before change nothing (rules X1, X2).
  void SendAgain() {
    for (uint64_t i = 0; i < 10; ++i) {
      const Sent& sent = sent_[random_.Below(sent_.size())];
      const std::string key = KeyOf(sent.number);
      const auto outcome =
          sent.deleted ? t_.tree().Delete(key, V(sent.time)) : t_.tree().Put(key, sent.value, V(sent.time));
      ASSERT_TRUE(outcome.ok());
    }
  }
  // Calls `then` for the leaf of a key.
  template <typename Then>
  void WithLeaf(uint64_t number, Then&& then) {
    const PageId leaf = t_.LeafOf(number);
    t_.Walk(0, [&](const VisitedPage& page) {
      if (page.id == leaf) then(page);
    });
  }
  void Consolidate() {
    WithLeaf(Key(), [this](const VisitedPage& page) { (void)t_.tree().Move(page); });
  }
  void Evict() {
    WithLeaf(Key(), [this](const VisitedPage& page) { (void)t_.tree().Evict(page); });
  }
  void Load() { ASSERT_TRUE(t_.Load(Key()).ok()); }
  void BeginFlush() {
    WithLeaf(Key(), [this](const VisitedPage& page) { (void)t_.flusher().Add(t_.tree(), page.id); });
  }
  void EndFlush(bool fails) {
    if (fails) t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
    const bool empty = t_.flusher().empty();
    const Status written = t_.flusher().Write();
    t_.disk().RemoveAllFaults();
    ASSERT_TRUE(fails && !empty ? written == ErrorCode::kResourceExhausted : written.ok()) << written.ToString();
  }
  void Flush() {
    BeginFlush();
    EndFlush(/*fails=*/random_.OneIn(8));
  }
  void Merge() {
    EndFlush(/*fails=*/false);
    MergeOnce(&t_.tree());
  }
  // As the cleaner does.
  void Copy() {
    const auto rewriter = std::move(*PageRewriter::Create(t_.pages(), t_.domain(), t_.store()));
    const SegmentKind kind = random_.OneIn(2) ? SegmentKind::kBase : SegmentKind::kDelta;
    for (const SegmentUsage& usage : t_.store().usage()) {
      if (usage.kind != kind) continue;
      ASSERT_TRUE(t_.store().ForEachPart(usage.number, [&](const PartView& part) { return rewriter->Add(part); }).ok());
    }
    ASSERT_TRUE(rewriter->Write().ok());
  }
  // Readers consolidate, too.
  void ReadAll() {
    for (const auto& [key, value] : t_.records()) {
      RecordBatch batch;
      (void)t_.tree().Read(key, &batch);
    }
  }

  // Writes all pages, and loads those that must be loaded first.
  void WriteAll() {
    for (bool again = true; again;) {
      again = false;
      std::vector<std::string> to_load;
      for (uint8_t level = 0; level <= t_.tree().root_level(); ++level) {
        t_.Walk(level, [&](const VisitedPage& page) {
          const Added added = t_.flusher().Add(t_.tree(), page.id);
          again |= added == Added::kBusy || added == Added::kNotLoaded;
          if (added == Added::kNotLoaded) to_load.emplace_back(page.high);
        });
        EndFlush(/*fails=*/false);
      }
      for (const std::string& high : to_load) ASSERT_TRUE(t_.Load(Target(high, Side::kBelow)).ok());
    }
  }
  void Checkpoint() {
    EndFlush(/*fails=*/false);
    WriteAll();
    StoredTree::Records found;
    const Status restored = t_.Restore(&found);
    ASSERT_TRUE(restored.ok()) << restored.ToString();
    ASSERT_EQ(found, t_.records());
    for (int i = 0; i < 3; ++i) t_.domain().Collect();  // pages that were merged away
    ASSERT_EQ(t_.LiveBytes(), t_.BytesOfImages());
    for (const auto& [page, image] : t_.AllImages()) ASSERT_LE(image.count(), ImageParts::kMax);
  }

  struct Sent {
    uint64_t number;
    bool deleted;
    std::string value;
    uint64_t time;
  };

  Random random_;
  StoredTree t_;
  std::vector<Sent> sent_;
};

TEST(PageContentRandomTest, WhatIsWrittenIsWhatTheTreeHas) {
  for (uint64_t seed = 1; seed <= kSequences; ++seed) {
    SCOPED_TRACE(seed);
    Sequence(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace deut::dc
