// Point reads in steps, with changes to their pages between the steps.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKeys = 600;

std::string ValueOf(uint64_t i) { return Concat("value ", i, std::string(30, 'v')); }

// Every third key is missing.
bool IsThere(uint64_t i) { return i % 3 != 2; }

void Fill(TestTree& t) {
  for (uint64_t i = 0; i < kKeys; ++i) {
    if (IsThere(i)) t.Put(KeyOf(i), ValueOf(i), V(i + 1));
  }
}

// Reads all keys together, and calls `between` between the steps.
void ReadAll(TestTree& t, const std::function<void()>& between) {
  const ReclamationDomain::Guard guard(t.domain);
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(KeyOf(i));
  std::vector<BwTree::Lookup> lookups(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) lookups[i] = t.tree->BeginRead(keys[i]);
  between();
  for (int step = 0; step < BwTree::kReadSteps; ++step) {
    for (BwTree::Lookup& lookup : lookups) t.tree->ContinueRead(&lookup);
  }
  for (uint64_t i = 0; i < kKeys; ++i) {
    RecordBatch answer;
    const BwTree::Found found = t.tree->EndRead(lookups[i], &answer);
    ASSERT_EQ(found == BwTree::Found::kYes, IsThere(i)) << i;
    ASSERT_EQ(answer.size(), IsThere(i) ? 1u : 0u);
    if (IsThere(i)) EXPECT_EQ(RecordBatch::Iterator(answer).record().value, ValueOf(i));
  }
}

TEST(ReadTest, SeveralKeysAtOnce) {
  TestTree t;
  Fill(t);
  ReadAll(t, [] {});
  // A tree of one page has no inner page to search.
  TestTree empty;
  const ReclamationDomain::Guard guard(empty.domain);
  BwTree::Lookup lookup = empty.tree->BeginRead("a");
  empty.tree->ContinueRead(&lookup);
  RecordBatch answer;
  EXPECT_EQ(empty.tree->EndRead(lookup, &answer), BwTree::Found::kNo);
}

TEST(ReadTest, PagesAreSplitMeanwhile) {
  TestTree t;
  Fill(t);
  const uint64_t splits = t.tree->statistics().splits;
  ReadAll(t, [&] {
    for (uint64_t i = 0; i < kKeys; ++i) {
      for (int n = 0; n < 4; ++n) t.Put(Concat(KeyOf(i), "-", n), std::string(60, 'w'), V(kKeys + 4 * i + n));
    }
  });
  EXPECT_GT(t.tree->statistics().splits, splits + 20);
}

TEST(ReadTest, PagesAreMergedMeanwhile) {
  TestTree t;
  Fill(t);
  for (uint64_t i = 0; i < kKeys; ++i) {
    for (int n = 0; n < 4; ++n) t.Put(Concat(KeyOf(i), "-", n), std::string(60, 'w'), V(kKeys + 4 * i + n));
  }
  for (uint64_t i = 0; i < kKeys; ++i) {
    for (int n = 0; n < 4; ++n) t.Delete(Concat(KeyOf(i), "-", n), V(5 * kKeys + 4 * i + n));
  }
  t.consolidation = 10 * kKeys;
  uint64_t merged = 0;
  ReadAll(t, [&] {
    for (int round = 0; round < 4; ++round) merged += MergeOnce(t.tree.get()).merged;
  });
  EXPECT_GT(merged, 20u);
}

// The right half is updated while no index term leads to it, so the left half's copies of its records are old.
TEST(ReadTest, KeysBehindAnUnpostedSplitAreReadFromTheRightHalf) {
  TestTree t;
  // The updates come in a mixed order, so that both halves hold some of them.
  const auto place = [](uint64_t i) { return i * 37 % 101; };
  size_t looked_at = 0;
  uint64_t now = 0;
  bool busy = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "bwtree.split.before_post" || busy) return;
    busy = true;
    // No passing thread posts the term. (A split by the updates below would retry for ever.)
    testing::SetCasHandler(
        [lost = 0](std::string_view cas) mutable { return cas == "bwtree.post.cas" && ++lost < 3000; });
    const uint64_t there = now;
    for (uint64_t i = 1; i <= there; ++i) t.Put(KeyOf(place(i)), Concat("later ", i), V(10 * kKeys + now + i));
    const ReclamationDomain::Guard guard(t.domain);
    for (uint64_t i = 1; i <= there; ++i, ++looked_at) {
      const std::string key = KeyOf(place(i));
      BwTree::Lookup lookup = t.tree->BeginRead(key);
      for (int step = 0; step < BwTree::kReadSteps; ++step) t.tree->ContinueRead(&lookup);
      RecordBatch answer;
      ASSERT_EQ(t.tree->EndRead(lookup, &answer), BwTree::Found::kYes);
      EXPECT_EQ(RecordBatch::Iterator(answer).record().value, Concat("later ", i));
    }
    testing::SetCasHandler({});
    busy = false;
  });
  for (uint64_t i = 1; i <= 100; ++i) {
    t.Put(KeyOf(place(i)), ValueOf(i), V(i));
    now = i;
  }
  testing::SetPointHandler({});
  EXPECT_GT(looked_at, 100u);
}

}  // namespace
}  // namespace deut::dc
