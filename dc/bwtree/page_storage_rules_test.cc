// The steps by which pages go to storage and come back, each against the order of events in which it is decisive. Another thread's part is
// played at a test point.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr TableId kTable{5};

// A tree whose pages can be written, swapped out and loaded.
class StoredTree final : public TreeSource {
 public:
  StoredTree() {
    store_ = std::move(*SegmentStore::Create(*storage_, RealRuntime(), "/pages", DcId(1), SegmentStoreOptions()));
    pages_ = std::move(*MappingTable::Create(1 << 16));
    tree_ = std::move(*BwTree::Create(environment(), SmallPages(), kTable));
    flusher_ = std::move(*PageFlusher::Create(environment(), *store_, *this));
  }
  ~StoredTree() override { testing::SetPointHandler({}); }

  BwTree* FindTree(TableId table) override { return table == kTable ? tree_.get() : nullptr; }
  BwTreeEnvironment environment() { return {*pages_, domain_, consolidation_, nullptr, store_.get()}; }

  void Put(uint64_t number, std::string value) {
    const std::string key = KeyOf(number);
    ++now_;
    for (;;) {
      const auto outcome = tree_->Put(key, value, V(now_));
      DEUT_CHECK(outcome.ok());
      if (*outcome != BwTree::Outcome::kNotLoaded) break;
      ASSERT_TRUE(Load(Target(key, Side::kAt)).ok());
    }
    records_[key] = std::move(value);
  }
  void Fill(uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) Put(i, "0123456789012345678901234567890123456789");
  }

  Status Load(const Target& target) {
    PageLoad load;
    if (!tree_->BeginLoad(target, &load)) return Status::Ok();
    DEUT_RETURN_IF_ERROR(load.ReadImage(*store_));
    return tree_->FinishLoad(target, &load);
  }

  // Writes all pages of all levels, or of the leaves.
  void Flush(bool leaves_only = false) {
    for (uint8_t level = 0; level <= (leaves_only ? 0 : tree_->root_level()); ++level) {
      Walk(level, [this](const VisitedPage& page) { ASSERT_TRUE(flusher_->Add(*tree_, page.id).ok()); });
      ASSERT_TRUE(flusher_->Write().ok());
    }
  }
  int Evict() {
    int evicted = 0;
    Walk(0, [&](const VisitedPage& page) { evicted += tree_->Evict(page) ? 1 : 0; });
    return evicted;
  }
  void Walk(uint8_t level, std::function<void(const VisitedPage&)> visit) {
    class Visitor final : public PageVisitor {
     public:
      explicit Visitor(std::function<void(const VisitedPage&)> visit) : visit_(std::move(visit)) {}
      void Visit(const VisitedPage& page) override { visit_(page); }

     private:
      const std::function<void(const VisitedPage&)> visit_;
    };
    Visitor visitor(std::move(visit));
    BwTree::Walk walk;
    while (!walk.complete) tree_->VisitPages(level, &walk, &visitor);
  }

  // At the next pass of the point, once: what another thread does meanwhile.
  void AtPoint(std::string name, std::function<void()> then) {
    auto done = std::make_shared<std::atomic<bool>>(false);
    testing::SetPointHandler([name = std::move(name), then = std::move(then), done](std::string_view at) {
      if (at != name || done->exchange(true)) return;
      RealRuntime().StartThread("other", then)->Join();
    });
  }

  Status Scan(BwTree& tree, std::map<std::string, std::string>* found) {
    ScanCursor cursor;
    while (!cursor.complete) {
      RecordBatch batch;
      ScanBudget budget;
      if (!tree.ScanAscending(&cursor, &budget, &batch)) {
        const std::string low = cursor.low;
        PageLoad load;
        if (!tree.BeginLoad(Target(low, Side::kAt), &load)) continue;
        DEUT_RETURN_IF_ERROR(load.ReadImage(*store_));
        DEUT_RETURN_IF_ERROR(tree.FinishLoad(Target(low, Side::kAt), &load));
      }
      for (RecordBatch::Iterator it(batch); it.Valid(); it.Next())
        (*found)[std::string(it.record().key)] = it.record().value;
    }
    return Status::Ok();
  }
  void ExpectRight() {
    testing::SetPointHandler({});
    std::map<std::string, std::string> found;
    const Status scanned = Scan(*tree_, &found);
    ASSERT_TRUE(scanned.ok()) << scanned.ToString();
    EXPECT_EQ(found, records_);
    for (const auto& [key, value] : records_) {
      ASSERT_TRUE(Load(Target(key, Side::kAt)).ok());
      RecordBatch batch;
      ASSERT_EQ(tree_->Read(key, &batch), BwTree::Found::kYes) << key;
      ASSERT_EQ(RecordBatch::Iterator(batch).record().value, value) << key;
    }
  }
  // What a start would make of the images as they are.
  Status Restore(std::map<std::string, std::string>* found) {
    ReclamationDomain domain;
    const auto pages = std::move(*MappingTable::Create(1 << 16));
    {
      const ReclamationDomain::Guard guard(domain_);
      for (uint32_t id = 1; id <= pages_->last_id(); ++id) {
        const ImageParts parts = pages_->Image(PageId(id));
        if (!parts.empty()) pages->Restore(PageId(id), parts);
      }
    }
    pages->RestoreFree(pages_->last_id());
    // The images stay those of the tree that has written them.
    const BwTreeEnvironment restored{*pages, domain, consolidation_, nullptr, /*images=*/nullptr};
    const std::unique_ptr<BwTree> tree = BwTree::Restore(restored, SmallPages(), kTable, tree_->root());
    BwTree::NamedPages level;
    level.inner.push_back({tree->root(), BwTree::NamedPage::kAnyLevel, {}, {}, false});
    Status status;
    while (status.ok() && !level.inner.empty()) {
      BwTree::NamedPages below;
      for (const BwTree::NamedPage& page : level.inner) {
        if (status.ok()) status = tree->RestorePage(page, *store_, &below);
      }
      level = std::move(below);
    }
    if (status.ok()) status = Scan(*tree, found);
    return status;
  }

  BwTree& tree() { return *tree_; }
  MappingTable& pages() { return *pages_; }
  SegmentStore& store() { return *store_; }
  PageFlusher& flusher() { return *flusher_; }
  ReclamationDomain& domain() { return domain_; }
  const std::map<std::string, std::string>& records() const { return records_; }

 private:
  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<MappingTable> pages_;
  ReclamationDomain domain_;
  std::atomic<uint64_t> consolidation_{0};
  std::unique_ptr<BwTree> tree_;
  std::unique_ptr<PageFlusher> flusher_;
  uint64_t now_ = 0;
  std::map<std::string, std::string> records_;
};

TEST(PageStorageRules, PagesGoAndComeBack) {
  StoredTree t;
  t.Fill(0, 500);
  t.Flush();
  EXPECT_GT(t.Evict(), 20);
  for (uint64_t i = 0; i < 500; i += 3) t.Put(i, "blind");
  t.ExpectRight();
  t.Flush();
  t.Evict();
  std::map<std::string, std::string> found;
  EXPECT_TRUE(t.Restore(&found).ok());
  EXPECT_EQ(found, t.records());
}

TEST(PageStorageRules, BlindUpdatesLookAtTheParentAgain) {
  StoredTree t;
  t.Fill(0, 40);
  for (uint64_t i = 1000; i < 1010; ++i) t.Put(i, "0123456789");
  t.Flush();
  ASSERT_GT(t.Evict(), 1);
  // Between the look at the parent and the look at the child that it names, the child is split, written and swapped out.
  bool split = false;
  t.AtPoint("bwtree.descend.before_child", [&] {
    const uint64_t before = t.tree().statistics().splits;
    ASSERT_TRUE(t.Load(Target(KeyOf(1000), Side::kAt)).ok());
    for (uint64_t i = 1010; i < 1098; ++i) t.Put(i, "0123456789012345678901234567890123456789");
    split = t.tree().statistics().splits > before;
    t.Flush();
    ASSERT_GT(t.Evict(), 1);
  });
  t.Put(1098, "blind");
  EXPECT_TRUE(split);
  t.ExpectRight();
}

TEST(PageStorageRules, APageStaysUntilTheTermOfItsSplitIsPosted) {
  StoredTree t;
  t.Fill(0, 40);
  t.Flush();
  uint64_t current = 40;  // it is being put while the other thread is at work
  t.AtPoint("bwtree.split.before_post", [&] {
    t.Flush(/*leaves_only=*/true);
    t.Evict();
    for (uint64_t i = 0; i < current; ++i) t.Put(i, "blind");
  });
  const uint64_t before = t.tree().statistics().splits;
  for (; t.tree().statistics().splits == before; ++current) t.Put(current, "0123456789012345678901234567890123456789");
  t.ExpectRight();
}

TEST(PageStorageRules, WhatWasReadIsComparedWithTheImageAgain) {
  StoredTree t;
  t.Fill(0, 40);
  t.Flush();
  ASSERT_GT(t.Evict(), 1);
  const std::string key = KeyOf(20);
  PageLoad load;
  ASSERT_TRUE(t.tree().BeginLoad(Target(key, Side::kAt), &load));
  ASSERT_TRUE(load.ReadImage(t.store()).ok());
  // An update that is written and swapped out, and another one that keeps the page in memory, as a stub.
  t.Put(20, "first");
  t.Flush();
  ASSERT_GE(t.Evict(), 1);
  t.Put(21, "second");
  ASSERT_TRUE(t.tree().FinishLoad(Target(key, Side::kAt), &load).ok());
  t.ExpectRight();
}

TEST(PageStorageRules, DirtyPagesStay) {
  StoredTree t;
  t.Fill(0, 100);
  t.Flush();
  for (uint64_t i = 0; i < 100; i += 10) t.Put(i, "new");
  t.Evict();
  t.ExpectRight();
}

TEST(PageStorageRules, AChildIsWrittenBeforeThePageThatNamesIt) {
  StoredTree t;
  t.Fill(0, 100);
  {
    const ReclamationDomain::Guard guard(t.domain());
    ASSERT_TRUE(t.flusher().Add(t.tree(), t.tree().root()).ok());
  }
  ASSERT_TRUE(t.flusher().Write().ok());
  std::map<std::string, std::string> found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(found, t.records());
}

TEST(PageStorageRules, AChildThatIsSplitBetweenItsEncodingAndItsParentsIsWrittenAgain) {
  StoredTree t;
  t.Fill(0, 100);
  t.Flush();
  const std::map<std::string, std::string> before = t.records();
  for (uint64_t i = 200; i < 206; ++i) t.Put(i, "0123456789");
  bool split = false;
  t.AtPoint("bwtree.flush.encoded", [&] {
    const uint64_t splits = t.tree().statistics().splits;
    for (uint64_t i = 206; t.tree().statistics().splits == splits; ++i)
      t.Put(i, "0123456789012345678901234567890123456789");
    split = true;
  });
  // The last leaf, and then all that are above it, in one batch.
  for (int i = 0; i < 100 && !split; ++i) t.Put(200 + static_cast<uint64_t>(i % 6), "x");
  {
    const ReclamationDomain::Guard guard(t.domain());
    std::vector<PageId> last;
    t.Walk(0, [&](const VisitedPage& page) {
      if (last.empty()) last.push_back(page.id);
    });
    ASSERT_TRUE(t.flusher().Add(t.tree(), last[0]).ok());
    for (uint8_t level = 1; level <= t.tree().root_level(); ++level) {
      t.Walk(level, [&](const VisitedPage& page) { ASSERT_TRUE(t.flusher().Add(t.tree(), page.id).ok()); });
    }
  }
  ASSERT_TRUE(t.flusher().Write().ok());
  EXPECT_TRUE(split);
  testing::SetPointHandler({});
  std::map<std::string, std::string> found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  for (const auto& [key, value] : before) EXPECT_EQ(found[key], value) << key;
}

}  // namespace
}  // namespace deut::dc
