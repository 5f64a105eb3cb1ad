// Merging of pages: the ids that it frees, and the races with threads that come between its steps.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKeys = 2000;

// Options with pages that are small, but large enough that a few sparse ones fit together.
BwTreeOptions MergeablePages() {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 2048;
  options.inner_page_bytes = 1024;
  return options;
}

// A tree and its expected content.
struct Model {
  Model() : t(MergeablePages()) {}

  void Put(uint64_t key) {
    const uint64_t version = ++clock;
    t.Put(KeyOf(key), Concat("value ", version), V(version));
    records[KeyOf(key)] = Concat("value ", version);
  }
  void Delete(uint64_t key) {
    t.Delete(KeyOf(key), V(++clock));
    records.erase(KeyOf(key));
  }
  void Fill(uint64_t keys) {
    for (uint64_t key = 0; key < keys; ++key) Put(key);
  }
  // From now on no update below the clock is still on its way (rule X1).
  void LetGo() { t.consolidation = clock + 1; }

  void Check() {
    const std::vector<TestRecord> found = t.Scan(true);
    ASSERT_EQ(found.size(), records.size());
    auto expected = records.begin();
    for (const TestRecord& record : found) {
      ASSERT_EQ(record.key, expected->first);
      ASSERT_EQ(record.value, expected->second);
      ++expected;
    }
    ASSERT_EQ(t.Scan(false).size(), records.size());
    for (uint64_t key = 0; key < kKeys; ++key) {
      const auto record = t.Read(KeyOf(key));
      ASSERT_EQ(record != nullptr, records.contains(KeyOf(key))) << key;
    }
  }

  TestTree t;
  uint64_t clock = 0;
  std::map<std::string, std::string> records;
};

TEST(MergeTest, AnEmptiedTreeGivesItsPagesBack) {
  Model m;
  m.Fill(kKeys);
  const uint64_t pages = m.t.table->used();
  const uint64_t bytes = m.t.tree->statistics().bytes;
  EXPECT_EQ(m.t.MergeAll(), 0u) << "full pages are not merged";
  EXPECT_EQ(m.t.table->used(), pages);
  for (uint64_t key = 0; key < kKeys; ++key) m.Delete(key);
  m.LetGo();
  EXPECT_GT(m.t.MergeAll(), pages / 2);
  m.Check();
  // One page for each level is left.
  EXPECT_EQ(m.t.table->used(), m.t.tree->root_level() + 1u);
  EXPECT_LT(m.t.tree->statistics().bytes, bytes / 20);
  EXPECT_EQ(m.t.tree->statistics().merges, pages - m.t.table->used());
  m.Fill(kKeys);
  m.Check();
  EXPECT_GE(m.t.table->used(), pages);
}

TEST(MergeTest, AThinnedTreeShrinksWithItsRecords) {
  Model m;
  m.Fill(kKeys);
  const uint64_t pages = m.t.table->used();
  for (uint64_t key = 0; key < kKeys; ++key) {
    if (key % 32 != 0) m.Delete(key);
  }
  m.LetGo();
  m.t.MergeAll();
  m.Check();
  EXPECT_LT(m.t.table->used(), pages / 3);
  EXPECT_EQ(m.t.tree->statistics().records, m.records.size());
}

TEST(MergeTest, TombstonesThatMayStillBeNeededStay) {
  Model m;
  m.Fill(kKeys);
  for (uint64_t key = 0; key < kKeys; ++key) m.Delete(key);
  // A late update of an older version must still meet its tombstone (rule X1).
  m.t.MergeAll();
  m.t.Put(KeyOf(7), "late", V(8, 0));
  m.Check();
  BwTree::MergeReport report = MergeOnce(m.t.tree.get());
  EXPECT_TRUE(report.postponed) << "so that somebody comes again";
}

// Rule X1: an update at or below the larger flat timestamp may still be on its way to the page with the smaller one.
TEST(MergeTest, FlatTimestampsMeetOnlyBelowTheBound) {
  Model m;
  m.Fill(kKeys);
  const uint64_t first_deletion = m.clock + 1;
  for (uint64_t key = kKeys / 2; key < kKeys; ++key) m.Delete(key);
  m.LetGo();
  for (uint64_t key = kKeys / 2; key < kKeys; ++key) m.t.Scan(true, KeyOf(key));  // drops tombstones
  for (uint64_t key = 0; key < kKeys / 2; ++key) m.Delete(key);
  // A new stream sends everything again from the beginning; a second store receives it for the first time.
  m.t.consolidation = 0;
  EXPECT_EQ(MergeOnce(m.t.tree.get()).merged, 0u);
  // An update below the flat timestamp of the pages on the right, which was not applied to those on the left.
  m.t.Put(KeyOf(3), "missed", V(first_deletion, 77));
  m.t.consolidation = m.clock + 1;
  EXPECT_GT(m.t.MergeAll(), 0u);
  m.Check();
}

// Rule X1: dropped tombstones stay effective in the merged page.
TEST(MergeTest, AnOldUpdateIsADuplicateAlsoAfterAMerge) {
  Model m;
  m.Fill(kKeys);
  std::vector<Version> overtaken(kKeys);  // versions superseded by the key's deletion
  for (uint64_t key = 0; key < kKeys; ++key) {
    if (key % 50 == 0) continue;
    overtaken[key] = V(m.clock, 77);
    m.Delete(key);
  }
  m.LetGo();
  EXPECT_GT(m.t.MergeAll(), 0u);
  for (uint64_t key = 0; key < kKeys; ++key) {
    if (key % 50 != 0) m.t.Put(KeyOf(key), "overtaken", overtaken[key]);
  }
  m.Check();
}

// An update has found its page before the page was removed.
TEST(MergeTest, NothingIsPutOnARemovedPage) {
  Model m;
  m.Fill(kKeys);
  for (uint64_t key = 100; key < kKeys; ++key) m.Delete(key);
  m.LetGo();
  for (uint64_t key = 200; key < 1200; key += 7) {
    bool done = false;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != "bwtree.update.before_cas" || done) return;
      done = true;
      // All steps but the last run: the page is still where the update has found it.
      testing::SetCasHandler([](std::string_view cas) { return cas == "bwtree.consolidate.cas"; });
      MergeOnce(m.t.tree.get());
      testing::SetCasHandler(nullptr);
    });
    m.Put(key);
    testing::SetPointHandler(nullptr);
    m.t.domain.Collect();
  }
  m.Check();
}

// A splitter posts its term late: another thread has posted it, and the page was merged away since.
TEST(MergeTest, ATermDoesNotComeBack) {
  Model m;
  m.Fill(kKeys);
  bool done = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "bwtree.split.before_post" || done) return;
    done = true;
    m.t.Scan(true);
    for (uint64_t gone = 0; gone < kKeys + 200; ++gone) m.Delete(gone);
    m.LetGo();
    m.t.MergeAll();
  });
  uint64_t key = kKeys;
  while (!done) m.Put(key++);
  testing::SetPointHandler(nullptr);
  m.records.clear();
  for (int i = 0; i < 4; ++i) m.t.domain.Collect();
  m.t.Scan(true);
  for (key = 0; key < kKeys + 200; ++key) m.Delete(key);
  m.Check();
  m.Fill(kKeys);
  m.Check();
}

// Writes inner pages, and the pages that must be written before them.
void FlushInner(StoredTree* t) {
  for (uint8_t level = 1; level <= t->tree().root_level(); ++level) {
    for (const PageId page : t->Pages(level)) ASSERT_TRUE(t->Add(page).ok());
    ASSERT_TRUE(t->flusher().Write().ok());
  }
}

// A checkpoint writes inner pages after the children whose bounds have changed, while no page changes. A parent that
// was written between unlinking and absorbing must be written again.
TEST(MergeTest, AParentIsWrittenAfterTheChildThatHasGrown) {
  StoredTree t;
  t.Fill(0, 400);
  for (uint64_t key = 0; key < 400; ++key) {
    if (key % 20 != 0) t.Delete(key);
  }
  t.SetConsolidation(t.now() + 1);
  t.Flush();
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "bwtree.merge.before_absorb") RealRuntime().StartThread("flush", [&] { FlushInner(&t); })->Join();
  });
  uint64_t merged = 0;
  for (BwTree::Walk walk; merged == 0 && !walk.complete;) {
    BwTree::MergeReport report;
    t.tree().MergePages(/*level=*/0, &walk, &report);
    merged += report.merged;
  }
  testing::SetPointHandler(nullptr);
  ASSERT_GT(merged, 0u);
  FlushInner(&t);
  StoredTree::Records found;
  const Status status = t.Restore(&found);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(found, t.records());
}

// Between any two steps another thread updates and reads the pages of the merge, and takes the remaining steps.
TEST(MergeTest, AThreadThatComesBetweenTheStepsCompletesThem) {
  for (const char* point : {"bwtree.merge.before_remove", "bwtree.merge.before_unlink", "bwtree.merge.before_absorb",
                            "bwtree.merge.before_touch"}) {
    SCOPED_TRACE(point);
    Model m;
    m.Fill(kKeys);
    for (uint64_t key = 0; key < kKeys; ++key) {
      if (key % 16 != 0) m.Delete(key);
    }
    m.LetGo();
    Random random(1);
    int met = 0;
    bool inside = false;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != point || inside) return;
      inside = true;
      ++met;
      for (uint64_t key = random.Below(40); key < kKeys; key += 40) {
        if (random.OneIn(3)) {
          m.Put(key);
        } else {
          ASSERT_EQ(m.t.Read(KeyOf(key)) != nullptr, m.records.contains(KeyOf(key))) << key;
        }
      }
      inside = false;
    });
    const uint64_t merged = m.t.MergeAll();
    testing::SetPointHandler(nullptr);
    EXPECT_GT(met, 5);
    EXPECT_GT(merged, 0u);
    m.Check();
  }
}

// Between removal and unlinking the parent is split, so that the page becomes the first one of the right half.
TEST(MergeTest, IsUndoneIfThePageBecomesItsParentsFirst) {
  int undone = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Model m;
    m.Fill(kKeys);
    Random random(seed);
    const uint64_t first = random.Below(kKeys - 400);
    for (uint64_t key = first; key < first + 200; ++key) m.Delete(key);
    m.LetGo();
    bool inside = false;
    testing::SetPointHandler([&](std::string_view name) {
      if (name == "bwtree.merge.before_undo") ++undone;
      if (name != "bwtree.merge.before_unlink" || inside) return;
      inside = true;
      // Splits pages to the left and right, but not those that are being merged.
      const uint64_t from = random.OneIn(2) ? first + 200 : (first < 300 ? 0 : first - 300);
      for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t key = from + random.Below(100);
        const std::string name_of = Concat(KeyOf(key), "-", i);
        m.t.Put(name_of, "x", V(++m.clock));
        m.records[name_of] = "x";
      }
      inside = false;
    });
    m.t.MergeAll();
    testing::SetPointHandler(nullptr);
    m.Check();
    if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(undone, 0);
}

TEST(MergeTest, EachLostCompareAndSwapIsRepeatedOrGivenUp) {
  Model m;
  m.Fill(kKeys);
  for (uint64_t key = 0; key < kKeys; ++key) m.Delete(key);
  m.LetGo();
  std::map<std::string, int> tries;
  testing::SetCasHandler([&](std::string_view name) { return ++tries[std::string(name)] % 2 == 1; });
  m.t.MergeAll();
  m.t.MergeAll();
  testing::SetCasHandler(nullptr);
  for (const char* name : {"bwtree.remove.cas", "bwtree.unlink.cas", "bwtree.absorb.cas", "bwtree.touch.cas"}) {
    EXPECT_GT(tries[name], 2) << name;
  }
  m.t.MergeAll();
  m.Check();
  EXPECT_EQ(m.t.table->used(), m.t.tree->root_level() + 1u);
}

// A page behind the walk may be merged with the next one.
TEST(MergeTest, CutsAreInOrderAlsoWhenPagesAreMergedMeanwhile) {
  for (int at = 2; at < 12; ++at) {
    Model m;
    m.Fill(kKeys);
    int passes = 0;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != "bwtree.partition.before_page" || ++passes != at) return;
      for (uint64_t key = 0; key < kKeys; ++key) {
        if (key % 8 < 6) m.Delete(key);
      }
      m.LetGo();
      m.t.MergeAll();
    });
    const std::vector<std::string> cuts = m.t.tree->Partition(100000);
    testing::SetPointHandler({});
    for (size_t i = 1; i < cuts.size(); ++i) ASSERT_LT(cuts[i - 1], cuts[i]) << "at page " << at;
    m.Check();
  }
}

}  // namespace
}  // namespace deut::dc
