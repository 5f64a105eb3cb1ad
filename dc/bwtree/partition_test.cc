// How equal the pieces of a partitioned tree are, depending on how its records were inserted and deleted.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kRecords = 40000;

// Returns the largest piece's number of records divided by the mean. Checks that there are as many pieces as
// requested, and that the pieces are disjoint and cover the tree.
double Imbalance(TestTree& t, uint32_t pieces) {
  const std::vector<std::string> cuts = t.tree->Partition(pieces);
  EXPECT_EQ(cuts.size(), pieces - 1);
  EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
  EXPECT_EQ(std::set<std::string>(cuts.begin(), cuts.end()).size(), cuts.size());
  std::vector<size_t> records(cuts.size() + 1);
  for (const TestRecord& record : t.Scan(true)) {
    ++records[static_cast<size_t>(std::upper_bound(cuts.begin(), cuts.end(), record.key) - cuts.begin())];
  }
  size_t all = 0;
  for (const size_t of_piece : records) all += of_piece;
  return static_cast<double>(*std::max_element(records.begin(), records.end())) * pieces / static_cast<double>(all);
}

void ExpectBalanced(TestTree& t, double bound) {
  for (const uint32_t pieces : {2, 7, 16, 64, 200}) EXPECT_LE(Imbalance(t, pieces), bound) << pieces;
}

void Put(TestTree& t, uint64_t number, uint64_t time) { t.Put(KeyOf(number), std::string(20, 'v'), V(time)); }

// The pages are between half full and full.
TEST(PartitionTest, PiecesOfRandomInsertsAreAboutEqual) {
  TestTree t;
  for (uint64_t i = 0; i < kRecords; ++i) Put(t, i * 7919 % kRecords, i + 1);
  ExpectBalanced(t, 1.7);
}

TEST(PartitionTest, PiecesOfAscendingAndDescendingInsertsAreAboutEqual) {
  TestTree up;
  TestTree down;
  for (uint64_t i = 0; i < kRecords; ++i) {
    Put(up, i, i + 1);
    Put(down, kRecords - i, i + 1);
  }
  ExpectBalanced(up, 1.7);
  ExpectBalanced(down, 1.7);
}

// Nine of ten keys lie in a thousandth of the number range.
TEST(PartitionTest, PiecesFollowTheRecordsNotTheirKeys) {
  TestTree t;
  Random random(1);
  for (uint64_t i = 0; i < kRecords; ++i) Put(t, random.Below(random.OneIn(10) ? 90000000 : 90000), i + 1);
  ExpectBalanced(t, 1.7);
}

// A thinned page is merged only when little is left of it, so pages differ more in size than after inserts.
TEST(PartitionTest, PiecesStayNearAfterHalfOfTheKeysWereThinned) {
  TestTree t;
  for (uint64_t i = 0; i < kRecords; ++i) Put(t, i * 7919 % kRecords, i + 1);
  for (uint64_t i = kRecords / 2; i < kRecords; ++i) {
    if (i % 10 != 0) t.Delete(KeyOf(i), V(kRecords + i));
  }
  t.consolidation = 3 * kRecords;
  EXPECT_GT(t.MergeAll(), 0u);
  ExpectBalanced(t, 3.5);
}

TEST(PartitionTest, AskingForTooManyGivesAsManyAsThereAre) {
  TestTree t;
  for (uint64_t i = 0; i < kRecords; ++i) Put(t, i, i + 1);
  EXPECT_TRUE(t.tree->Partition(1).empty());
  const std::vector<std::string> cuts = t.tree->Partition(1000000);
  EXPECT_GT(cuts.size(), 1000u);
  EXPECT_LT(cuts.size(), kRecords);
  EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
}

}  // namespace
}  // namespace deut::dc
