// Random sequences of all that happens to pages: the content of the images is always the content of the tree. There are
// two flushers, as those of a checkpoint and of the page evictor. In half of the sequences each of them merges parts.
// Each may have a flush in flight while other steps are taken, and another thread may take steps in the middle of a
// step. After each step, a page that most steps are about is compared with its image (stored_marks_check.h). After some
// steps the pages that are marked as dirty are written, and a tree that is recovered from the images is compared with
// the expected records, before and after old updates are sent again.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/compression.h"
#include "common/io/disk_fault.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_bits.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_rewrite.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_marks_check.h"
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
constexpr uint64_t kHotKey = 20;
constexpr uint64_t kHotKeys = 8;
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
  explicit Sequence(uint64_t seed) : random_(seed), t_(Options(random_)) {
    for (auto& flusher : flushers_) {
      flusher = std::move(*PageFlusher::Create(t_.environment(), t_.store(), t_));
      flusher->SetMergesParts(random_.OneIn(2));
    }
    testing::SetPointHandler([this](std::string_view at) {
      if (at != race_point_) return;
      race_point_ = {};
      RealRuntime().StartThread("other", [this] { Interrupt(); })->Join();
    });
  }

  void Run() {
    for (uint64_t i = 0; i < kKeys; ++i) Put(i);
    Checkpoint();
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
      Step();
      WithLeaf(kHotKey + random_.Below(kHotKeys), [this](const VisitedPage& page) { ExpectMarksRight(t_, page.id); });
    }
    Checkpoint();
    t_.Evict();
    t_.ExpectRight();
  }

 private:
  std::string Value() {
    return std::string(random_.Below(4) == 0 ? random_.Below(150) : 40, static_cast<char>('a' + random_.Below(26)));
  }
  // Most steps are about few keys, so that they meet in pages.
  uint64_t Key() { return random_.OneIn(3) ? random_.Below(kKeys) : kHotKey + random_.Below(kHotKeys); }

  void Step() {
    const uint64_t choice = random_.Below(100);
    if (choice < 32) return Put(Key());
    if (choice < 39) return Delete(Key());
    if (choice < 47) return Consolidate();
    if (choice < 55) return Flush();
    if (choice < 58) return MergeParts();
    if (choice < 62) return BeginFlush(AnyFlusher());
    if (choice < 63) return BeginMerge(AnyFlusher());
    if (choice < 68) return EndFlush(AnyFlusher(), /*fails=*/random_.OneIn(3));
    if (choice < 73) return Evict();
    if (choice < 78) return Load();
    if (choice < 81) return t_.SetConsolidation(t_.now() + 1);
    if (choice < 83) return (void)MergeOnce(&t_.tree());
    if (choice < 85) return Copy();
    if (choice < 86) return ReadAll();
    if (choice < 88) return SendAgain(t_.tree());
    if (choice < 99) return Race();
    Checkpoint();
  }

  // Takes a step, and further ones on another thread when this one passes a point in the middle of it.
  void Race() {
    struct Point {
      std::string_view name;
      void (Sequence::*step)();
    };
    static constexpr std::array<Point, 15> kPoints = {{
        {"bwtree.consolidate.collected", &Sequence::Consolidate},
        {"bwtree.move.before_cas", &Sequence::Consolidate},
        {"bwtree.load.before_image_again", &Sequence::Load},
        {"bwtree.load.before_cas", &Sequence::Load},
        {"bwtree.evict.before_cas", &Sequence::Evict},
        {"bwtree.mark.before_cas", &Sequence::Flush},
        {"bwtree.flush.encoded", &Sequence::Flush},
        {"bwtree.flush.before_register", &Sequence::Flush},
        {"mapping_table.set_image.before_cas", &Sequence::Flush},
        {"bwtree.merge_parts.before_claim", &Sequence::MergeParts},
        {"bwtree.flush.encoded", &Sequence::MergeParts},
        {"bwtree.flush.before_register", &Sequence::MergeParts},
        {"bwtree.rewrite.read", &Sequence::Copy},
        {"bwtree.rewrite.written", &Sequence::Copy},
        {"bwtree.rewrite.before_replace", &Sequence::Copy},
    }};
    const Point& point = kPoints[random_.Below(kPoints.size())];
    next_race_point_ = point.name;
    (this->*point.step)();
    race_point_ = next_race_point_ = {};
  }
  // Called when a step has found its page: searches pass some of the points, too.
  void PageFound() {
    if (!next_race_point_.empty()) race_point_ = std::exchange(next_race_point_, {});
  }
  // Steps of another thread. It does not use the flusher or the rewriter that the first thread may be using.
  void Interrupt() {
    for (uint64_t steps = random_.Between(1, 3); steps > 0; --steps) {
      const uint64_t choice = random_.Below(11);
      if (choice < 2) Put(Key());
      if (choice == 2) Delete(Key());
      if (choice == 3) Consolidate();
      if (choice == 4) Evict();
      if (choice == 5) Load();
      if (choice == 6) BeginFlush(*flushers_[1]);
      if (choice >= 7 && choice < 9) EndFlush(*flushers_[1], /*fails=*/random_.OneIn(4));
      if (choice == 9) t_.SetConsolidation(t_.now() + 1);
      if (choice == 10 && !copying_) Copy();
    }
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
  void SendAgain(BwTree& tree) {
    for (uint64_t i = 0; i < 10; ++i) {
      const Sent& sent = sent_[random_.Below(sent_.size())];
      const std::string key = KeyOf(sent.number);
      const auto outcome = sent.deleted ? tree.Delete(key, V(sent.time)) : tree.Put(key, sent.value, V(sent.time));
      ASSERT_TRUE(outcome.ok());
    }
  }
  // Calls `then` for the leaf of a key.
  template <typename Then>
  void WithLeaf(uint64_t number, Then&& then) {
    const PageId leaf = t_.LeafOf(number);
    t_.Walk(0, [&](const VisitedPage& page) {
      if (page.id != leaf) return;
      PageFound();
      then(page);
    });
  }
  void Consolidate() {
    WithLeaf(Key(), [this](const VisitedPage& page) { (void)t_.tree().Move(page); });
  }
  void Evict() {
    WithLeaf(Key(), [this](const VisitedPage& page) { (void)t_.tree().Evict(page); });
  }
  void Load() {
    PageFound();
    ASSERT_TRUE(t_.Load(Key()).ok());
  }

  PageFlusher& AnyFlusher() { return *flushers_[random_.Below(flushers_.size())]; }
  void BeginFlush(PageFlusher& flusher) {
    WithLeaf(Key(), [&](const VisitedPage& page) { (void)flusher.Add(t_.tree(), page.id); });
  }
  void EndFlush(PageFlusher& flusher, bool fails) {
    if (fails) t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
    const bool empty = flusher.empty();
    const Status written = flusher.Write();
    t_.disk().RemoveAllFaults();
    ASSERT_TRUE(fails && !empty ? written == ErrorCode::kResourceExhausted : written.ok()) << written.ToString();
  }
  void EndFlushes() {
    for (const auto& flusher : flushers_) EndFlush(*flusher, /*fails=*/false);
  }
  void Flush() {
    BeginFlush(*flushers_[0]);
    EndFlush(*flushers_[0], /*fails=*/random_.OneIn(8));
  }
  void BeginMerge(PageFlusher& flusher) {
    WithLeaf(Key(), [&](const VisitedPage& page) { (void)flusher.AddMergedParts(t_.tree(), page.id); });
  }
  void MergeParts() {
    BeginMerge(*flushers_[0]);
    EndFlush(*flushers_[0], /*fails=*/random_.OneIn(8));
  }
  // As the cleaner does.
  void Copy() {
    PageFound();
    copying_ = true;
    const auto rewriter = std::move(*PageRewriter::Create(t_.pages(), t_.domain(), t_.store()));
    const SegmentKind kind = random_.OneIn(2) ? SegmentKind::kBase : SegmentKind::kDelta;
    for (const SegmentUsage& usage : t_.store().usage()) {
      if (usage.kind != kind) continue;
      ASSERT_TRUE(t_.store().ForEachPart(usage.number, [&](const PartView& part) { return rewriter->Add(part); }).ok());
    }
    ASSERT_TRUE(rewriter->Write().ok());
    copying_ = false;
  }
  // Readers consolidate, too.
  void ReadAll() {
    for (const auto& [key, value] : t_.records()) {
      RecordBatch batch;
      (void)t_.tree().Read(key, &batch);
    }
  }

  // Every dirty page is marked.
  void TakeMarks() {
    t_.pages().TakeDirty([this](uint64_t word, uint64_t marks) { marked_.AddWord(word, marks); });
    for (uint8_t level = 0; level <= t_.tree().root_level(); ++level) {
      t_.Walk(level, [this](const VisitedPage& page) {
        const bool clean = page.word.on_storage() || IsClean(page.word.head());
        EXPECT_TRUE(clean || page.id == t_.tree().root() || marked_.Contains(page.id)) << page.id.value;
      });
    }
  }
  // Writes the pages whose marks were taken, as a checkpoint does, and loads those that must be loaded first.
  void WriteMarked() {
    for (bool again = true; again;) {
      again = false;
      std::vector<std::string> to_load;
      for (uint8_t level = 0; level <= t_.tree().root_level(); ++level) {
        t_.Walk(
            level,
            [&](const VisitedPage& page) {
              const Added added = flushers_[0]->Add(t_.tree(), page.id);
              again |= added == Added::kBusy || added == Added::kNotLoaded;
              if (added == Added::kNotLoaded) to_load.emplace_back(page.high);
            },
            &marked_);
        EndFlush(*flushers_[0], /*fails=*/false);
      }
      for (const std::string& high : to_load) ASSERT_TRUE(t_.Load(Target(high, Side::kBelow)).ok());
    }
    marked_.Clear();
  }
  void Checkpoint() {
    EndFlushes();
    t_.Walk(0, [this](const VisitedPage& page) { ExpectMarksRight(t_, page.id); });
    TakeMarks();
    WriteMarked();
    StoredTree::Records found;
    Status restored = t_.Restore(&found);
    ASSERT_TRUE(restored.ok()) << restored.ToString();
    ASSERT_EQ(found, t_.records());
    found.clear();
    restored = t_.Restore(t_.AllImages(), &found, [this](BwTree& tree) { SendAgain(tree); });
    ASSERT_TRUE(restored.ok()) << restored.ToString();
    ASSERT_EQ(found, t_.records()) << "after updates were sent again";
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

  // The point at which another thread takes steps; empty: at none.
  std::string_view race_point_;
  std::string_view next_race_point_;
  PageBits marked_;  // marks that were taken
  bool copying_ = false;
  Random random_;
  StoredTree t_;
  std::array<std::unique_ptr<PageFlusher>, 2> flushers_;
  std::vector<Sent> sent_;
};

TEST(PageContentRandomTest, WhatIsWrittenIsWhatTheTreeHas) {
  for (uint64_t seed = 1; seed <= kSequences; ++seed) {
    Sequence(seed).Run();
    ASSERT_FALSE(HasFailure()) << "in sequence " << seed;
  }
}

}  // namespace
}  // namespace deut::dc
