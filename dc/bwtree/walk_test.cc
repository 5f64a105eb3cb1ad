#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/consolidate.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/page_bits.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// A page as a walk has seen it; the walk's order is kept.
struct Seen {
  PageId id;
  PageId parent;
  std::string high;
  bool bounded = false;
};

class Collector final : public PageVisitor {
 public:
  void Visit(const VisitedPage& page) override {
    seen.push_back(Seen{page.id, page.parent, std::string(page.high), page.bounded});
  }
  std::vector<Seen> seen;
};

// Checks that the walk went from right to left: each bound is below the one before, and only the first page may have
// none.
void ExpectDescending(const std::vector<Seen>& seen) {
  for (size_t i = 1; i < seen.size(); ++i) {
    EXPECT_TRUE(seen[i].bounded);
    if (seen[i - 1].bounded) EXPECT_LT(seen[i].high, seen[i - 1].high);
  }
}

std::set<PageId> IdsOf(const std::vector<Seen>& seen) {
  std::set<PageId> ids;
  for (const Seen& page : seen) EXPECT_TRUE(ids.insert(page.id).second) << "page " << page.id.value << " twice";
  return ids;
}

TEST(Walk, ATreeOfOnePageIsItsRoot) {
  StoredTree t;
  t.Put(1, "one");
  EXPECT_EQ(t.tree().root_level(), 0);
  Collector collector;
  BwTree::Walk walk;
  t.tree().VisitPages(/*level=*/0, &walk, &collector);
  EXPECT_TRUE(walk.complete);
  ASSERT_EQ(collector.seen.size(), 1u);
  EXPECT_EQ(collector.seen[0].id, t.tree().root());
  EXPECT_EQ(collector.seen[0].parent, kNoPage);
  EXPECT_FALSE(collector.seen[0].bounded);
}

TEST(Walk, ALevelAboveTheRootHasNoPages) {
  StoredTree t;
  t.Put(1, "one");
  Collector collector;
  BwTree::Walk walk;
  t.tree().VisitPages(/*level=*/1, &walk, &collector);
  EXPECT_TRUE(walk.complete);
  EXPECT_TRUE(collector.seen.empty());
}

TEST(Walk, VisitsEveryPageOfALevelOnceOneParentAtATime) {
  StoredTree t;
  t.FillSettled(400);
  ASSERT_GE(t.tree().root_level(), 2);
  size_t pages = 0;
  for (uint8_t level = 0; level <= t.tree().root_level(); ++level) {
    Collector collector;
    BwTree::Walk walk;
    std::set<PageId> parents;
    while (!walk.complete) {
      const size_t before = collector.seen.size();
      t.tree().VisitPages(level, &walk, &collector);
      ASSERT_LT(before, collector.seen.size());
      const PageId parent = collector.seen[before].parent;
      EXPECT_TRUE(parents.insert(parent).second);
      for (size_t i = before; i < collector.seen.size(); ++i) EXPECT_EQ(collector.seen[i].parent, parent);
      if (!walk.complete && collector.seen.back().bounded) EXPECT_LT(walk.high, collector.seen.back().high);
    }
    EXPECT_FALSE(collector.seen.front().bounded);
    ExpectDescending(collector.seen);
    pages += IdsOf(collector.seen).size();
  }
  EXPECT_EQ(pages, t.pages().used());
}

TEST(Walk, SaysWhatTheParentSaysOfAPage) {
  StoredTree t;
  t.FillSettled(200);
  t.Walk(0, [&](const VisitedPage& page) {
    ASSERT_NE(page.parent, kNoPage);
    EXPECT_EQ(t.pages().Load(page.parent), page.parent_head);
    EXPECT_EQ(t.pages().LoadWord(page.id), page.word);
    const Node* const head = page.word.head();
    ASSERT_NE(head, nullptr);
    EXPECT_EQ(head->fence->bounded(), page.bounded);
    EXPECT_EQ(head->fence->high_key(), page.high);
  });
  // The walk also visits pages that are not in memory.
  ASSERT_GT(t.Evict(), 10);
  int on_storage = 0;
  t.Walk(0, [&](const VisitedPage& page) { on_storage += page.word.on_storage() ? 1 : 0; });
  EXPECT_GT(on_storage, 10);
}

// The pass of a checkpoint looks at dirty pages only.
TEST(Walk, VisitsOnlyThePagesOfASetAndTheRoot) {
  StoredTree t;
  t.FillSettled(400);
  ASSERT_GE(t.tree().root_level(), 2);
  for (uint8_t level = 0; level <= t.tree().root_level(); ++level) {
    std::vector<Seen> expected;
    PageBits only;
    size_t number = 0;
    t.Walk(level, [&](const VisitedPage& page) {
      if (page.id != t.tree().root() && ++number % 3 != 0) return;
      expected.push_back(Seen{page.id, page.parent, std::string(page.high), page.bounded});
      if (page.id != t.tree().root()) only.AddWord(page.id.value / 64, uint64_t{1} << (page.id.value % 64));
    });
    Collector collector;
    for (BwTree::Walk walk; !walk.complete;) t.tree().VisitPages(level, &walk, &collector, &only);
    ASSERT_EQ(collector.seen.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(collector.seen[i].id, expected[i].id);
      EXPECT_EQ(collector.seen[i].parent, expected[i].parent);
      EXPECT_EQ(collector.seen[i].high, expected[i].high);
      EXPECT_EQ(collector.seen[i].bounded, expected[i].bounded);
    }
  }
}

TEST(Walk, SplitsBetweenItsStepsMakeItNeitherSkipNorRepeat) {
  StoredTree t;
  t.FillSettled(300);
  uint64_t next = 1000;
  Collector collector;
  BwTree::Walk walk;
  while (!walk.complete) {
    const std::string bound = walk.high;
    std::set<PageId> outstanding;
    t.Walk(0, [&](const VisitedPage& page) {
      if (bound.empty() || (page.bounded && page.high <= bound)) outstanding.insert(page.id);
    });
    const size_t seen = collector.seen.size();
    t.tree().VisitPages(/*level=*/0, &walk, &collector);
    for (size_t i = seen; i < collector.seen.size(); ++i) {
      if (!bound.empty()) EXPECT_LE(collector.seen[i].high, bound);
    }
    // Left of the visited pages, right of them and between them, leaves are split, and inner pages, and in the end
    // the root.
    for (uint64_t i = 0; i < 300; i += 7) t.Put(i * 10'000'000 % 99'999'999, std::string(300, 'x'));
    for (int i = 0; i < 30; ++i) t.Put(next++, StoredTree::kValue);
    const std::set<PageId> visited = IdsOf(collector.seen);
    // A page that was outstanding before the step still is, or was visited; never both.
    t.Walk(0, [&](const VisitedPage& page) {
      if (!outstanding.contains(page.id)) return;
      const bool left = !walk.complete && page.bounded && page.high <= walk.high;
      EXPECT_NE(left, visited.contains(page.id)) << page.id.value;
    });
  }
  IdsOf(collector.seen);
  ExpectDescending(collector.seen);
  t.ExpectRight();
}

TEST(Walk, WhileOthersSplitPagesEveryPageOfTheBeginningIsVisitedOnce) {
  StoredTree t;
  t.FillSettled(300);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> walks{0};
  const auto writer = RealRuntime().StartThread("writer", [&] {
    uint64_t i = 0;
    while (!stop.load() && i < 30'000) t.Put(++i * 7919 % 1'000'000, StoredTree::kValue);
    while (!stop.load()) RealRuntime().Yield();
  });
  for (int round = 0; round < 40; ++round) {
    const std::vector<PageId> before = t.Pages(0);
    Collector collector;
    BwTree::Walk walk;
    while (!walk.complete) t.tree().VisitPages(/*level=*/0, &walk, &collector);
    const std::set<PageId> visited = IdsOf(collector.seen);
    ExpectDescending(collector.seen);
    for (const PageId page : before) EXPECT_TRUE(visited.contains(page)) << page.value;
    walks.fetch_add(1);
  }
  stop.store(true);
  writer->Join();
  t.ExpectRight();
}

// A walk meets a removed page whose merge cannot be completed. While the walk is about to undo it, another thread
// undoes it and evicts the page.
TEST(Walk, APageEvictedWhileItsMergeIsUndoneIsVisitedAsItIs) {
  constexpr uint64_t kLast = 1000;
  int met = 0;
  // The first seed puts the page at the right place in its parent. Should that change, another seed will.
  for (uint64_t seed = 38; seed < 238 && met == 0; ++seed) {
    BwTreeOptions options = SmallPages();
    options.leaf_page_bytes = 2048;
    options.inner_page_bytes = 1024;
    StoredTree t(options);
    t.FillSettled(kLast);
    Random random(seed);
    const uint64_t first = 300 + random.Below(300);
    for (uint64_t i = first; i < first + 100; ++i) t.Delete(i);
    t.SetConsolidation(t.now() + 1);
    const auto merge = [&] {
      BwTree::Walk walk;
      BwTree::MergeReport report;
      while (!walk.complete) t.tree().MergePages(/*level=*/0, &walk, &report);
    };
    // The pages first become small, and are written.
    testing::SetCasHandler([](std::string_view name) { return name == "bwtree.remove.cas"; });
    merge();
    testing::SetCasHandler({});
    t.Flush();
    const std::vector<PageId> leaves = t.Pages(0);
    bool inside = false;
    bool walks = false;
    PageId removed;
    testing::SetPointHandler([&](std::string_view name) {
      if (name == "bwtree.merge.before_unlink" && !inside && met == 0) {
        inside = true;
        for (const PageId leaf : leaves) {
          if (!t.pages().HasImage(leaf)) continue;  // the page was freed
          const Node* const head = t.HeadOf(leaf);
          if (head != nullptr && IsRemoved(head)) removed = leaf;
        }
        // Splits pages beside the merge, so that the parent is split, perhaps where the removed page begins.
        const uint64_t from = random.OneIn(2) ? first + 100 : first - 200;
        for (uint64_t i = 0; i < 150; ++i) t.Put(from + random.Below(100), std::string(60 + i, 'x'));
        walks = true;
        t.Pages(0);
        walks = false;
        inside = false;
      }
      if (name == "bwtree.merge.before_undo" && std::exchange(walks, false)) {
        const ReclamationDomain::Guard guard(t.domain());
        const Node* const head = t.pages().Load(removed);
        if (!IsRemoved(head)) return;
        t.tree().FinishMerge(removed, head);
        met += t.Evict(removed) ? 1 : 0;
      }
    });
    merge();
    t.ExpectRight();
  }
  EXPECT_GT(met, 0);
}

// The terms of an inner page, read where they lie, are those of the page that its chain is consolidated to.
TEST(Walk, TheTermsOfAChainAreThoseOfItsConsolidatedPage) {
  // Chains of terms stay long, and pages are split at each level.
  BwTreeOptions options = SmallPages();
  options.inner_chain_length = 12;
  StoredTree t(options);
  size_t with_deltas = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    t.Put(i * 7919 % 2000, StoredTree::kValue);
    if (i % 50 != 49) continue;
    const ReclamationDomain::Guard guard(t.domain());
    for (uint8_t level = 1; level <= t.tree().root_level(); ++level) {
      t.Walk(level, [&](const VisitedPage& page) {
        const Node* const head = page.word.head();
        with_deltas += head->kind != NodeKind::kBase ? 1 : 0;
        const InnerTerms terms(head);
        const Owned<BasePage> built = BuildConsolidated(head, Timestamp());
        ASSERT_EQ(terms.count(), built->count());
        for (size_t at = 0; at < terms.count(); ++at) {
          ASSERT_EQ(terms.key(at), built->key(at));
          ASSERT_EQ(terms.child(at), built->child(at));
          // The first term counts as below every key.
          ASSERT_EQ(terms.LowerBound(terms.key(at)), std::max<size_t>(at, 1));
          ASSERT_EQ(terms.UpperBound(terms.key(at)), at + 1);
          ASSERT_EQ(terms.LowerBound(std::string(terms.key(at)) + '\0'), at + 1);
        }
      });
    }
  }
  EXPECT_GT(with_deltas, 10u);
}

// While a parent's pages are visited, one of them is split, its term is posted, and it is evicted and changed again
// without being loaded. Its side link is unknown then. (The right half has a very recent image.)
TEST(Walk, APageIsSplitAndEvictedMeanwhile) {
  StoredTree t;
  t.FillSettled(60);
  bool done = false;
  t.Walk(0, [&](const VisitedPage&) {
    if (done) return;
    done = true;
    RealRuntime()
        .StartThread("other",
                     [&] {
                       const uint64_t splits = t.tree().statistics().splits;
                       for (uint64_t i = 0; t.tree().statistics().splits == splits; ++i)
                         t.Put(i % 4, std::string(150, 'x'));
                       t.Flush();
                       ASSERT_GT(t.Evict(), 0);
                       t.Put(0, "blind");
                     })
        ->Join();
  });
  ASSERT_TRUE(done);
  t.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
