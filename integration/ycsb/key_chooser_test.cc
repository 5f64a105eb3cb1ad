#include "integration/ycsb/key_chooser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace deut::ycsb {
namespace {

TEST(Scramble, StaysWithinAndReachesEvery) {
  for (const uint64_t n : {1u, 2u, 3u, 7u, 8u, 9u, 1000u}) {
    std::vector<int> hits(n, 0);
    for (uint64_t rank = 0; rank < 40 * n; ++rank) {
      const uint64_t record = Scramble(rank, n);
      ASSERT_LT(record, n);
      ++hits[record];
    }
    EXPECT_GT(*std::min_element(hits.begin(), hits.end()), 0) << n;
  }
}

// One more record takes ranks from at most one record; each rank moves to the new record or stays.
TEST(Scramble, GrowthMovesNothingElse) {
  constexpr uint64_t kRanks = 20'000;
  for (uint64_t n = 1; n < 200; ++n) {
    uint64_t moved = 0, from = n;
    for (uint64_t rank = 0; rank < kRanks; ++rank) {
      const uint64_t before = Scramble(rank, n), after = Scramble(rank, n + 1);
      if (before == after) continue;
      ASSERT_EQ(after, n);
      ASSERT_TRUE(from == n || from == before);
      from = before;
      ++moved;
    }
    EXPECT_GT(moved, 0u);
  }
}

TEST(KeyChooser, ZipfianHasPopularRecordsThatStayPopular) {
  Random random(1);
  KeyChooser chooser(Distribution::kZipfian, 10'000, 0.99);
  std::vector<int> before(10'000, 0), after(10'500, 0);
  for (int i = 0; i < 200'000; ++i) ++before[chooser.Next(random, 10'000)];
  for (uint64_t n = 10'001; n <= 10'500; ++n) chooser.Next(random, n);
  for (int i = 0; i < 200'000; ++i) ++after[chooser.Next(random, 10'500)];
  const auto most = std::max_element(before.begin(), before.end()) - before.begin();
  EXPECT_GT(before[most], 10'000) << "rank 0 alone has a tenth of the draws";
  // The most popular record stays the same unless one of the 500 new records took it over (the hash has no seed and
  // decides that none did).
  EXPECT_EQ(std::max_element(after.begin(), after.end()) - after.begin(), most);
}

TEST(KeyChooser, LatestPrefersTheNewest) {
  Random random(1);
  KeyChooser chooser(Distribution::kLatest, 1000, 0.99);
  for (const uint64_t n : {uint64_t{1000}, uint64_t{1001}, uint64_t{5000}}) {
    int newest = 0, newest_tenth = 0;
    for (int i = 0; i < 50'000; ++i) {
      const uint64_t record = chooser.Next(random, n);
      ASSERT_LT(record, n);
      newest += record == n - 1 ? 1 : 0;
      newest_tenth += record >= n - n / 10 ? 1 : 0;
    }
    EXPECT_GT(newest, 5000);
    EXPECT_GT(newest_tenth, 30'000);
  }
}

TEST(KeyChooser, UniformHasNoFavourite) {
  Random random(1);
  KeyChooser chooser(Distribution::kUniform, 100, 0.99);
  std::vector<int> hits(100, 0);
  for (int i = 0; i < 100'000; ++i) ++hits[chooser.Next(random, 100)];
  for (const int count : hits) EXPECT_NEAR(count, 1000, 160);  // 5 standard deviations
}

}  // namespace
}  // namespace deut::ycsb
