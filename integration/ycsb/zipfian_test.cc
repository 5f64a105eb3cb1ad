#include "integration/ycsb/zipfian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace deut::ycsb {
namespace {

double ExactSum(uint64_t first, uint64_t last, double theta) {
  double sum = 0;
  for (uint64_t i = last; i >= first; --i) sum += std::pow(static_cast<double>(i), -theta);  // small terms first
  return sum;
}

TEST(ZetaSum, IsTheSumAlsoWhereItIsComputedByTheFormula) {
  for (const double theta : {0.0, 0.5, 0.877, 0.99, 0.999}) {
    EXPECT_NEAR(ZetaSum(1, 2'000'000, theta), ExactSum(1, 2'000'000, theta), 1e-6);
    EXPECT_NEAR(ZetaSum(12'345, 345'678, theta), ExactSum(12'345, 345'678, theta), 1e-7);
    EXPECT_NEAR(ZetaSum(500'000, 500'003, theta), ExactSum(500'000, 500'003, theta), 1e-12);
    EXPECT_EQ(ZetaSum(5, 4, theta), 0);
  }
}

// Ranks 0 and 1 are drawn exactly, the rest by the method's approximation. The test compares the share of the ranks
// below 2^k.
TEST(Zipfian, DrawsRanksInProportion) {
  constexpr int kDraws = 1'000'000;
  for (const double theta : {0.5, 0.877, 0.99}) {
    for (const uint64_t n : {uint64_t{100}, uint64_t{10'000}, uint64_t{1'000'000}}) {
      const Zipfian zipfian(n, theta);
      Random random(42);
      std::vector<int> below_power(21, 0);
      int first = 0, second = 0;
      for (int i = 0; i < kDraws; ++i) {
        const uint64_t rank = zipfian.Next(random);
        ASSERT_LT(rank, n);
        first += rank == 0 ? 1 : 0;
        second += rank == 1 ? 1 : 0;
        for (int k = 0; k <= 20; ++k) below_power[k] += rank < (uint64_t{1} << k) ? 1 : 0;
      }
      const double zeta = ExactSum(1, n, theta);
      const auto deviation = [](double p) { return 5 * std::sqrt(p * (1 - p) / kDraws); };
      EXPECT_NEAR(first / double{kDraws}, 1 / zeta, deviation(1 / zeta));
      EXPECT_NEAR(second / double{kDraws}, std::pow(0.5, theta) / zeta, deviation(std::pow(0.5, theta) / zeta));
      for (int k = 0; (uint64_t{1} << k) <= n; ++k) {
        const double share = ExactSum(1, uint64_t{1} << k, theta) / zeta;
        EXPECT_NEAR(below_power[k] / double{kDraws}, share, 0.025)
            << "theta " << theta << ", n " << n << ", ranks below 2^" << k;
      }
    }
  }
}

TEST(Zipfian, ThetaZeroIsUniform) {
  const Zipfian zipfian(10, 0);
  Random random(7);
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 100'000; ++i) ++counts[zipfian.Next(random)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 475);  // 5 standard deviations
}

TEST(Zipfian, FewRanks) {
  Random random(7);
  const Zipfian one(1, 0.99), two(2, 0.99);
  int second = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(one.Next(random), 0u);
    second += two.Next(random) == 1 ? 1 : 0;
  }
  EXPECT_NEAR(second, 3350, 240);  // 0.5^0.99 / (1 + 0.5^0.99) = 0.335
}

TEST(Zipfian, GrownIsAsMadeAtOnce) {
  Zipfian grown(1, 0.99);
  for (uint64_t n = 2; n < 500; ++n) grown.Grow(n);
  grown.Grow(20'000);
  for (uint64_t n = 20'001; n <= 20'050; ++n) grown.Grow(n);
  grown.Grow(3'000'000);
  const Zipfian fresh(3'000'000, 0.99);
  Random a(3), b(3);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t x = grown.Next(a), y = fresh.Next(b);
    ASSERT_LE(std::max(x, y) - std::min(x, y), 1u) << "the sums may differ in the last bits";
  }
}

}  // namespace
}  // namespace deut::ycsb
