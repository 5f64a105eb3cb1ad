// FindUnloadedLeaves: the leaves that a scan will have to load.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Lows = std::vector<std::string>;

constexpr uint64_t kRecords = 400;
constexpr size_t kAll = 1'000'000;

// Options by which one parent is above all leaves.
BwTreeOptions OneParent() {
  BwTreeOptions options = SmallPages();
  options.inner_page_bytes = 16 << 10;
  return options;
}

class NeighboursTest : public ::testing::Test {
 protected:
  explicit NeighboursTest(const BwTreeOptions& options = OneParent()) : t_(options) {
    t_.FillSettled(kRecords);
    leaves_ = t_.Pages(0);
    std::reverse(leaves_.begin(), leaves_.end());
    t_.Walk(0, [&](const VisitedPage& page) { lows_.emplace_back(page.bounded ? page.high : std::string_view()); });
    std::reverse(lows_.begin(), lows_.end());
    // The upper bound of one leaf is the lower bound of the next.
    lows_.insert(lows_.begin(), std::string());
    lows_.pop_back();
    EXPECT_GT(leaves_.size(), 30u);
    EXPECT_EQ(lows_.size(), leaves_.size());
  }

  Lows FindUnloadedLeaves(std::string_view key, Side side, bool ascending, size_t count) {
    return t_.tree().FindUnloadedLeaves(Target(key, side), ascending, count);
  }
  Lows From(size_t first, size_t last) const { return Lows(&lows_[first], &lows_[last] + 1); }

  StoredTree t_;
  std::vector<PageId> leaves_;  // leaves from left to right
  Lows lows_;                   // lower bounds of leaves_
};

TEST_F(NeighboursTest, LoadedLeavesAreNotNamed) {
  EXPECT_EQ(FindUnloadedLeaves({}, Side::kAt, true, kAll), Lows());
  EXPECT_EQ(FindUnloadedLeaves({}, Side::kBelow, false, kAll), Lows());
}

TEST_F(NeighboursTest, TheLeafThatIsMeantAndSoManyBesideIt) {
  t_.Evict();
  const size_t last = leaves_.size() - 1;
  EXPECT_EQ(FindUnloadedLeaves(lows_[10], Side::kAt, true, 3), From(10, 13));
  EXPECT_EQ(FindUnloadedLeaves(lows_[10] + "x", Side::kAt, true, 0), From(10, 10));
  EXPECT_EQ(FindUnloadedLeaves(lows_[10], Side::kAt, false, 3), From(7, 10));
  // The keys below a leaf's first key belong to its left neighbour.
  EXPECT_EQ(FindUnloadedLeaves(lows_[10], Side::kBelow, false, 3), From(6, 9));
  EXPECT_EQ(FindUnloadedLeaves(lows_[10] + "x", Side::kBelow, false, 3), From(7, 10));
  // At the ends there are fewer neighbours.
  EXPECT_EQ(FindUnloadedLeaves({}, Side::kAt, true, kAll), From(0, last));
  EXPECT_EQ(FindUnloadedLeaves({}, Side::kBelow, false, kAll), From(0, last));
  EXPECT_EQ(FindUnloadedLeaves(lows_[last], Side::kAt, true, 5), From(last, last));
  EXPECT_EQ(FindUnloadedLeaves(lows_[2], Side::kBelow, false, 5), From(0, 1));
}

TEST_F(NeighboursTest, OfThoseBesideItOnlyTheOnesThatAreNotThere) {
  for (const size_t leaf : {11u, 12u, 15u}) ASSERT_TRUE(t_.Evict(leaves_[leaf]));
  EXPECT_EQ(FindUnloadedLeaves(lows_[10], Side::kAt, true, 3), From(11, 12));
  EXPECT_EQ(FindUnloadedLeaves(lows_[10], Side::kAt, true, 5), Lows({lows_[11], lows_[12], lows_[15]}));
  // A stub with updates does not count as a loaded leaf.
  for (uint64_t i = 0; i < kRecords; ++i) {
    if (t_.LeafOf(i) == leaves_[12]) t_.Put(i, "blind");
  }
  ASSERT_TRUE(IsStub(t_.HeadOf(leaves_[12])));
  EXPECT_EQ(FindUnloadedLeaves(lows_[10], Side::kAt, true, 3), From(11, 12));
}

TEST_F(NeighboursTest, NoneBeyondTheEndOfTheScan) {
  t_.Evict();
  const auto ascending = [this](const std::string& end) {
    return t_.tree().FindUnloadedLeaves(Target(lows_[10], Side::kAt), true, 5, end);
  };
  EXPECT_EQ(ascending(lows_[12]), From(10, 11));
  EXPECT_EQ(ascending(lows_[12] + "x"), From(10, 12));
  EXPECT_EQ(ascending(lows_[20]), From(10, 15));
  EXPECT_EQ(ascending(lows_[10]), From(10, 10)) << "the named leaf stays";
  const auto descending = [this](const std::string& end) {
    return t_.tree().FindUnloadedLeaves(Target(lows_[10], Side::kAt), false, 5, end);
  };
  EXPECT_EQ(descending(lows_[8]), From(8, 10));
  EXPECT_EQ(descending(lows_[8] + "x"), From(8, 10));
  EXPECT_EQ(descending(lows_[1]), From(5, 10));
  EXPECT_EQ(descending({}), From(5, 10));
  // The leaf at the end is in memory: the one beyond it is not named in its place.
  for (uint64_t i = 0; i < kRecords; ++i) {
    if (t_.LeafOf(i) == leaves_[8]) ASSERT_TRUE(t_.Load(i).ok());
  }
  EXPECT_EQ(descending(lows_[8]), From(9, 10));
}

TEST_F(NeighboursTest, ATreeOfOnePageHasNoNeighbours) {
  StoredTree small;
  small.Fill(0, 3);
  EXPECT_EQ(small.tree().FindUnloadedLeaves(Target({}, Side::kAt), true, kAll), Lows());
}

// A tree with many small parents.
class NeighboursOfManyParentsTest : public NeighboursTest {
 protected:
  NeighboursOfManyParentsTest() : NeighboursTest(SmallPages()) {}
};

TEST_F(NeighboursOfManyParentsTest, ThoseOfOneParentAlone) {
  t_.Evict();
  std::vector<PageId> parents;
  t_.Walk(0, [&](const VisitedPage& page) { parents.push_back(page.parent); });
  std::reverse(parents.begin(), parents.end());
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const auto of_one = std::equal_range(parents.begin(), parents.end(), parents[i], [&](PageId a, PageId b) {
      return std::find(parents.begin(), parents.end(), a) < std::find(parents.begin(), parents.end(), b);
    });
    const auto first = static_cast<size_t>(of_one.first - parents.begin());
    const auto last = static_cast<size_t>(of_one.second - parents.begin()) - 1;
    EXPECT_EQ(FindUnloadedLeaves(lows_[i], Side::kAt, true, kAll), From(i, last)) << i;
    EXPECT_EQ(FindUnloadedLeaves(lows_[i], Side::kAt, false, kAll), From(first, i)) << i;
  }
}

// The parents have been split, and their base pages still have the terms that moved to their right neighbours.
TEST_F(NeighboursOfManyParentsTest, NoneOfAnotherParentAfterASplit) {
  for (uint64_t i = kRecords; i < 2 * kRecords; ++i) t_.Fill(i, i + 1);
  t_.Flush(/*leaves_only=*/true);
  t_.Evict();
  std::map<std::string, PageId> parents;  // parent by the upper bound of its leaf
  uint64_t split = 0;
  t_.Walk(0, [&](const VisitedPage& page) {
    parents[std::string(page.high)] = page.parent;
    if (page.bounded && page.parent_head->fence != page.parent_head->base->fence) ++split;
  });
  EXPECT_GT(split, 0u);
  const auto parent_of = [&](const std::string& low) {
    const auto leaf = parents.upper_bound(low);
    return leaf == parents.end() ? parents.at("") : leaf->second;
  };
  for (const auto& [high, parent] : parents) {
    for (const bool ascending : {false, true}) {
      const Lows named = FindUnloadedLeaves(high, Side::kBelow, ascending, kAll);
      EXPECT_FALSE(named.empty());
      EXPECT_TRUE(std::is_sorted(named.begin(), named.end()));
      for (const std::string& low : named) EXPECT_EQ(parent_of(low), parent) << low << " beside what ends at " << high;
    }
  }
}

}  // namespace
}  // namespace deut::dc
