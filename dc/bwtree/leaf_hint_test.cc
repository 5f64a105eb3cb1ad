// A LeafHint that was found for an update stays valid, regardless of later changes to the page.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKeys = 3000;
constexpr uint64_t kLate = 1000000;  // a timestamp after all others

void Fill(TestTree& t) {
  for (uint64_t i = 0; i < kKeys; ++i) t.Put(KeyOf(i), std::string(20, 'v'), V(i + 1));
}

BwTree::LeafHint HintOf(BwTree& tree, std::string_view key) {
  BwTree::LeafHint hint;
  tree.FindLeaves(std::span(&key, 1), &hint);
  return hint;
}

void ExpectPut(TestTree& t, uint64_t number, const BwTree::LeafHint& hint, size_t records) {
  const auto outcome = t.tree->Put(KeyOf(number), "late", V(kLate), hint);
  ASSERT_TRUE(outcome.ok() && *outcome == BwTree::Outcome::kApplied);
  const auto found = t.Read(KeyOf(number));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->value, "late");
  EXPECT_EQ(t.Scan(true).size(), records);  // the record is not in a second page
}

TEST(LeafHintTest, UpdatesReachAPageThatWasSplitSince) {
  TestTree t;
  Fill(t);
  const ReclamationDomain::Guard guard(t.domain);
  const BwTree::LeafHint last = HintOf(*t.tree, KeyOf(1500));
  const BwTree::LeafHint first = HintOf(*t.tree, Concat(KeyOf(1500), "a"));
  // The page is split into many.
  for (int i = 0; i < 500; ++i) t.Put(Concat(KeyOf(1499), "m", 1000 + i), std::string(20, 'n'), V(kKeys + 1));
  for (int i = 0; i < 500; ++i) t.Put(Concat(KeyOf(1500), "m", 1000 + i), std::string(20, 'n'), V(kKeys + 1));
  ExpectPut(t, 1500, last, kKeys + 1000);
  const auto outcome = t.tree->Delete(KeyOf(1501), V(kLate), first);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(t.Read(KeyOf(1501)), nullptr);
  EXPECT_EQ(t.Scan(true).size(), kKeys + 999);
}

TEST(LeafHintTest, UpdatesReachATreeThatWasASinglePage) {
  TestTree t;
  const ReclamationDomain::Guard guard(t.domain);
  const BwTree::LeafHint hint = HintOf(*t.tree, KeyOf(1500));
  Fill(t);
  ExpectPut(t, 1500, hint, kKeys);
}

TEST(LeafHintTest, SeveralHintsAreFoundTogether) {
  TestTree t;
  Fill(t);
  const ReclamationDomain::Guard guard(t.domain);
  const uint64_t numbers[] = {0, 2999, 1500, 1501, 7, 2200, 1500, 900};
  std::vector<std::string> keys;
  for (const uint64_t number : numbers) keys.push_back(KeyOf(number));
  for (const size_t count : {size_t{1}, size_t{5}, BwTree::kMaxLeavesPerCall}) {
    const std::vector<std::string_view> wanted(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(count));
    std::vector<BwTree::LeafHint> hints(count);
    t.tree->FindLeaves(wanted, hints.data());
    for (size_t i = 0; i < count; ++i) t.tree->PrefetchRoom(hints[i]);
    for (size_t i = 0; i < count; ++i) ExpectPut(t, numbers[i], hints[i], kKeys);
  }
}

TEST(LeafHintTest, UpdatesReachAPageThatWasMergedSince) {
  TestTree t;
  Fill(t);
  uint64_t left = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    if (i % 50 != 0) t.Delete(KeyOf(i), V(kKeys + i));
    left += i % 50 == 0 ? 1 : 0;
  }
  t.consolidation = 3 * kKeys;
  const ReclamationDomain::Guard guard(t.domain);
  // Finds hints in several pages, at most every other one of which stays.
  for (uint64_t i = 0; i < kKeys; i += 150) (void)HintOf(*t.tree, KeyOf(i));
  const BwTree::LeafHint hints[] = {HintOf(*t.tree, KeyOf(1000)), HintOf(*t.tree, KeyOf(1050)),
                                    HintOf(*t.tree, KeyOf(1100)), HintOf(*t.tree, KeyOf(1150))};
  EXPECT_GT(t.MergeAll(), 10u);
  for (uint64_t i = 0; i < 4; ++i) ExpectPut(t, 1000 + 50 * i, hints[i], left);
}

TEST(LeafHintTest, UpdatesReachAPageThatWasEvictedOrLoadedSince) {
  constexpr uint64_t kNumber = 20;
  StoredTree t;
  t.FillSettled(60);
  {
    const ReclamationDomain::Guard guard(t.domain());
    const BwTree::LeafHint in_memory = HintOf(t.tree(), KeyOf(kNumber));
    ASSERT_TRUE(t.Evict(t.LeafOf(kNumber)));
    const auto outcome = t.tree().Put(KeyOf(kNumber), "blind", V(kLate), in_memory);
    ASSERT_TRUE(outcome.ok() && *outcome == BwTree::Outcome::kApplied);
    EXPECT_TRUE(t.HeadOf(t.LeafOf(kNumber))->base->stub());
  }
  t.Flush(t.LeafOf(kNumber));
  ASSERT_TRUE(t.Evict(t.LeafOf(kNumber)));
  {
    const ReclamationDomain::Guard guard(t.domain());
    const BwTree::LeafHint on_storage = HintOf(t.tree(), KeyOf(kNumber));
    ASSERT_TRUE(t.Load(kNumber).ok());
    const auto outcome = t.tree().Put(KeyOf(kNumber), "loaded", V(kLate + 1), on_storage);
    ASSERT_TRUE(outcome.ok() && *outcome == BwTree::Outcome::kApplied);
  }
  RecordBatch answer;
  ASSERT_EQ(t.tree().Read(KeyOf(kNumber), &answer), BwTree::Found::kYes);
  EXPECT_EQ(RecordBatch::Iterator(answer).record().value, "loaded");
}

}  // namespace
}  // namespace deut::dc
