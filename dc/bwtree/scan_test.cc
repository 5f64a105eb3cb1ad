// Scans that step from page to page by their fences, and changes to the next page before they reach it.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKeys = 1000;

// Counts the steps to a neighbour and the descents from an inner page to its child. Runs a callback before the first
// step to a neighbour.
class Watch {
 public:
  explicit Watch(std::function<void()> before_first = {}) : before_first_(std::move(before_first)) {
    testing::SetPointHandler([this](std::string_view name) {
      if (name == "bwtree.scan.before_sibling" && ++siblings == 1 && before_first_) before_first_();
      if (name == "bwtree.descend.before_child") ++descents;
    });
  }
  ~Watch() { testing::SetPointHandler({}); }

  size_t siblings = 0;
  size_t descents = 0;

 private:
  const std::function<void()> before_first_;
};

struct Scanned {
  std::vector<std::string> keys;
  uint64_t pages = 0;
};

// Runs a whole scan inside one guard.
Scanned ScanByPlaces(TestTree& t, std::string_view low = {}, std::string_view high = {}) {
  Scanned scanned;
  ScanCursor cursor;
  cursor.low = low;
  cursor.high = high;
  RecordBatch batch;
  ScanBudget budget;
  ScanHint hint;
  const ReclamationDomain::Guard guard(t.domain);
  for (; !cursor.complete; ++scanned.pages) EXPECT_TRUE(t.tree->ScanAscending(&cursor, &budget, &batch, &hint));
  for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) scanned.keys.emplace_back(it.record().key);
  return scanned;
}

std::vector<std::string> Keys(uint64_t begin, uint64_t end, uint64_t step = 1) {
  std::vector<std::string> keys;
  for (uint64_t i = begin; i < end; i += step) keys.push_back(KeyOf(i));
  return keys;
}

void Fill(TestTree& t) {
  for (uint64_t i = 0; i < kKeys; ++i) t.Put(KeyOf(i), std::string(40, 'v'), V(i + 1));
}

TEST(ScanTest, TheNextPageIsReachedWithoutADescent) {
  TestTree t;
  Fill(t);
  // Readers consolidate pages, and may split them, for which they descend. So the test scans until there is nothing
  // left to consolidate.
  for (uint64_t before = UINT64_MAX; before != t.tree->statistics().consolidations;) {
    before = t.tree->statistics().consolidations;
    for (int i = 0; i < 20; ++i) (void)t.Scan(true);
  }
  Watch watch;
  const Scanned scanned = ScanByPlaces(t);
  EXPECT_EQ(scanned.keys, Keys(0, kKeys));
  EXPECT_GT(scanned.pages, 30u);
  EXPECT_EQ(watch.siblings, scanned.pages - 1);
  EXPECT_LE(watch.descents, t.tree->root_level());
}

TEST(ScanTest, ItEndsAtItsBound) {
  TestTree t;
  Fill(t);
  EXPECT_EQ(ScanByPlaces(t, KeyOf(17), KeyOf(903)).keys, Keys(17, 903));
  EXPECT_EQ(ScanByPlaces(t, KeyOf(17), KeyOf(18)).keys, Keys(17, 18));
  EXPECT_EQ(ScanByPlaces(t, KeyOf(kKeys)).keys, Keys(0, 0));
}

TEST(ScanTest, ANextPageThatIsSplitMeanwhileIsReadToItsEnd) {
  TestTree t;
  for (uint64_t i = 0; i < kKeys; i += 2) t.Put(KeyOf(i), std::string(40, 'v'), V(i + 1));
  const uint64_t splits = t.tree->statistics().splits;
  Watch watch([&t] {
    for (uint64_t i = 1; i < kKeys; i += 2) t.Put(KeyOf(i), std::string(40, 'v'), V(kKeys + i));
  });
  const Scanned scanned = ScanByPlaces(t);
  EXPECT_GT(t.tree->statistics().splits, splits);
  // The scan has already read the first page.
  const std::vector<std::string> all = Keys(0, kKeys);
  ASSERT_LT(scanned.keys.size(), all.size());
  size_t first_both = 0;
  while (scanned.keys[first_both + 1] != KeyOf(2 * first_both + 1) && scanned.keys[first_both] == KeyOf(2 * first_both))
    ++first_both;
  const std::vector<std::string> rest(scanned.keys.begin() + static_cast<int64_t>(first_both), scanned.keys.end());
  EXPECT_EQ(rest, std::vector<std::string>(all.end() - static_cast<int64_t>(rest.size()), all.end()));
}

TEST(ScanTest, ANextPageThatGoesIntoItsNeighbourMeanwhileIsFoundThere) {
  TestTree t;
  Fill(t);
  for (uint64_t i = 0; i < kKeys; ++i) {
    if (i % 16 != 0) t.Delete(KeyOf(i), V(kKeys + i + 1));
  }
  t.consolidation = 3 * kKeys;
  // Every page is consolidated before the scan begins, so that the deleted records are gone.
  (void)t.Scan(true);
  uint64_t merged = 0;
  Watch watch([&] { merged = MergeOnce(t.tree.get()).merged; });
  const Scanned scanned = ScanByPlaces(t);
  EXPECT_GT(merged, 0u);
  EXPECT_EQ(scanned.keys, Keys(0, kKeys, 16));
  EXPECT_GT(watch.siblings, 0u);
}

}  // namespace
}  // namespace deut::dc
