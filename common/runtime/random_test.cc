#include "common/runtime/random.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace deut {
namespace {

// The published first output of SplitMix64 for seed 0, and the first output of xoshiro256** computed from its
// definition.
TEST(Random, KnownAnswers) {
  EXPECT_EQ(Mix64(0), 0xE220A8397B1DCDAFull);
  Random random(0);
  const uint64_t second_word = Mix64(1);
  EXPECT_EQ(random.Next(), std::rotl(second_word * 5, 7) * 9);
}

TEST(Random, TheSameSeedGivesTheSameNumbersAndOthersDiffer) {
  Random a(7), b(7), c(8);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t number = a.Next();
    EXPECT_EQ(number, b.Next());
    seen.insert(number);
    seen.insert(c.Next());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

TEST(Random, BelowIsUniformAndInside) {
  Random random(1);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100000; ++i) ++counts.at(random.Below(10));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.Below(1), 0u);
  for (int i = 0; i < 100; ++i) {
    const uint64_t number = random.Between(5, 7);
    EXPECT_TRUE(number >= 5 && number <= 7);
  }
}

TEST(Random, UnitAndOneIn) {
  Random random(2);
  double sum = 0;
  int hits = 0;
  for (int i = 0; i < 100000; ++i) {
    const double unit = random.Unit();
    ASSERT_TRUE(unit >= 0 && unit < 1);
    sum += unit;
    hits += random.OneIn(4);
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.01);
  EXPECT_NEAR(hits, 25000, 600);
}

TEST(Random, ServesTheStandardAlgorithms) {
  std::vector<int> numbers(50);
  std::iota(numbers.begin(), numbers.end(), 0);
  Random random(3);
  std::shuffle(numbers.begin(), numbers.end(), random);
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers[49], 49);
}

}  // namespace
}  // namespace deut
