#include "tc/server/range_plan.h"

#include <algorithm>
#include <vector>

#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr RangePlanOptions kOptions{.records_per_range = 1000};

TEST(RangePlanTest, RangesBetweenTheLimitsStay) {
  EXPECT_TRUE(PlanRanges({{}}, kOptions).steps.empty());
  EXPECT_TRUE(PlanRanges({{.records = 1999}}, kOptions).steps.empty());
  EXPECT_TRUE(
      PlanRanges({{.records = 501}, {.records = 500}, {.records = 1999}, {.records = 0}}, kOptions).steps.empty());
}

TEST(RangePlanTest, SplitsWhatIsTooLarge) {
  EXPECT_EQ(PlanRanges({{.records = 10'000}, {.records = 1000}, {.records = 2000}}, kOptions).steps,
            (std::vector<RangeStep>{{.first = 0, .parts = 10}, {.first = 2, .parts = 2}}));
}

TEST(RangePlanTest, SplitsWhatIsTooHot) {
  // sqrt(500 * 80,000 / 80,000) = 22, which is more than its size asks for.
  EXPECT_EQ(PlanRanges({{.records = 500, .updates = 80'000}}, kOptions).steps,
            (std::vector<RangeStep>{{.first = 0, .parts = 22, .hot = true}}));
  // Parts have at least min_records.
  EXPECT_EQ(PlanRanges({{.records = 50, .updates = 1e9}}, kOptions).steps,
            (std::vector<RangeStep>{{.first = 0, .parts = 3, .hot = true}}));
  EXPECT_TRUE(PlanRanges({{.records = 30, .updates = 1e9}}, kOptions).steps.empty());
}

TEST(RangePlanTest, MergesNeighboursThatAreSmallAndCold) {
  std::vector<RangeLoad> loads(20, {.records = 50});
  loads[3] = {.records = 400, .updates = 80'000};
  EXPECT_EQ(PlanRanges(loads, kOptions).steps,
            (std::vector<RangeStep>{
                {.first = 0, .count = 3}, {.first = 3, .parts = 20, .hot = true}, {.first = 4, .count = 16}}));
  // With 700 updates a second in the first range and none in the second, the first is worth 0.9 ranges, and both
  // together 1.3. A scan of either would meet all updates.
  EXPECT_TRUE(PlanRanges({{.records = 100, .updates = 700}, {.records = 100}},
                         {.records_per_range = 1e9, .records_times_updates = 85'000})
                  .steps.empty());
}

TEST(RangePlanTest, APlanIsBounded) {
  std::vector<RangeLoad> loads(100, {.records = 10'000});
  loads.resize(1100);
  RangePlanOptions options = kOptions;
  options.max_changed = 200;
  size_t made = 0, gone = 0;
  for (const RangeStep& step : PlanRanges(loads, options).steps) {
    made += step.parts - 1;
    gone += step.count - 1;
    EXPECT_LE(step.count, RangePlan::kMaxMergedAtOnce);
  }
  EXPECT_EQ(made, 200u);
  EXPECT_GE(gone, 200u);
  EXPECT_LE(gone, 200u + RangePlan::kMaxMergedAtOnce);
}

// A table with keys in [0, 1): the number of records below a key, and of updates. Plans change its ranges as the
// repartitioner would, which cuts where the records are.
class Simulation {
 public:
  explicit Simulation(RangePlanOptions options) : options_(options) {}

  // Adds records and updates in [begin, begin + width).
  void Put(double begin, double width, double records, double updates) {
    blocks_.push_back({begin, begin + width, {.records = records, .updates = updates}});
  }
  void Clear() { blocks_.clear(); }

  // Plays rounds until nothing changes, with measurements that are off by up to `noise`. Returns their number, or -1
  // after `most` rounds.
  int Settle(int most, double noise = 0) {
    for (int rounds = 0; rounds <= most; ++rounds) {
      if (!Round(noise)) return rounds;
    }
    return -1;
  }
  bool Round(double noise) {
    std::vector<RangeLoad> loads;
    for (size_t i = 0; i < lows_.size(); ++i) {
      RangeLoad load = Between(lows_[i], high(i));
      load.records *= 1 + noise * (2 * random_.Unit() - 1);
      load.updates *= 1 + noise * (2 * random_.Unit() - 1);
      loads.push_back(load);
    }
    const RangePlan plan = PlanRanges(loads, options_);
    std::vector<double> lows;
    auto step = plan.steps.begin();
    for (size_t i = 0; i < lows_.size();) {
      lows.push_back(lows_[i]);
      if (step == plan.steps.end() || step->first != i) {
        ++i;
        continue;
      }
      for (size_t part = 1; part < step->parts; ++part) lows.push_back(CutAt(i, part, step->parts));
      i += step->count;
      ++step;
    }
    lows_ = lows;
    return !plan.steps.empty();
  }
  size_t ranges() const { return lows_.size(); }
  double weight() const {
    double all = 0;
    for (size_t i = 0; i < lows_.size(); ++i) {
      all += Between(lows_[i], high(i)).records / options_.records_per_range;
    }
    return all;
  }
  size_t ranges_within(double low, double high) const {
    return static_cast<size_t>(std::ranges::count_if(lows_, [&](double l) { return l >= low && l < high; }));
  }

 private:
  struct Block {
    double begin, end;
    RangeLoad load;
  };
  double high(size_t i) const { return i + 1 < lows_.size() ? lows_[i + 1] : 1; }
  RangeLoad Between(double low, double high) const {
    RangeLoad sum;
    for (const Block& block : blocks_) {
      const double part =
          std::max(0.0, std::min(high, block.end) - std::max(low, block.begin)) / (block.end - block.begin);
      sum += {.records = part * block.load.records, .updates = part * block.load.updates};
    }
    return sum;
  }
  // Returns the key below which part/parts of the range's records are.
  double CutAt(size_t i, size_t part, size_t parts) const {
    const double wanted = Between(lows_[i], high(i)).records * static_cast<double>(part) / static_cast<double>(parts);
    double low = lows_[i], top = high(i);
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + top) / 2;
      (Between(lows_[i], middle).records < wanted ? low : top) = middle;
    }
    return top;
  }

  const RangePlanOptions options_;
  std::vector<Block> blocks_;
  std::vector<double> lows_ = {0};
  Random random_{1};
};

TEST(RangePlanTest, FromEmptyToFiftyMillionRecordsAndBack) {
  Simulation table(RangePlanOptions{});
  for (int way = 0; way < 2; ++way) {
    for (int step = 0; step <= 50; ++step) {
      const double records = 50e6 * (way == 0 ? step : 50 - step) / 50;
      table.Clear();
      // The beginning is denser.
      table.Put(0, 1, records / 2, 0);
      table.Put(0, 0.01, records / 2, 0);
      ASSERT_GE(table.Settle(24), 0) << records;
      const double wanted = std::min(table.weight(), 0.7 * 8192);
      EXPECT_LE(static_cast<double>(table.ranges()), 2 * wanted + 1) << records;
      EXPECT_GE(static_cast<double>(table.ranges()), wanted / 2) << records;
      EXPECT_LE(table.ranges(), 8192u);
    }
  }
  EXPECT_EQ(table.ranges(), 1u);
}

TEST(RangePlanTest, AHotPlaceHasMoreRangesAndLosesThem) {
  Simulation table(RangePlanOptions{});
  table.Put(0, 1, 1e6, 0);
  ASSERT_GE(table.Settle(10), 0);
  const size_t cold = table.ranges();
  table.Put(0.5, 0.01, 0, 50'000);
  ASSERT_GE(table.Settle(10), 0);
  // sqrt(10,000 * 50,000 / 80,000) = 79, in place of 5.
  EXPECT_GE(table.ranges_within(0.5, 0.51), 40u);
  EXPECT_LE(table.ranges_within(0.5, 0.51), 158u);
  EXPECT_GE(table.ranges() - table.ranges_within(0.5, 0.51), cold / 2);
  table.Clear();
  table.Put(0, 1, 1e6, 0);
  ASSERT_GE(table.Settle(10), 0);
  EXPECT_LE(table.ranges(), 2 * cold);
}

TEST(RangePlanTest, NothingSwingsWhileLoadsAreUncertain) {
  for (const double noise : {0.1, 0.3}) {
    Simulation table(RangePlanOptions{});
    table.Put(0, 1, 1e6, 1000);
    table.Put(0.2, 0.1, 1000, 20'000);
    table.Put(0.7, 0.001, 10, 50'000);
    table.Put(0.8, 0.001, 1e5, 0);
    for (int i = 0; i < 60; ++i) table.Round(noise);
    EXPECT_GE(table.Settle(20, noise), 0) << noise;
    // A load near a bound may still cross it, once.
    int changed = 0;
    for (int i = 0; i < 200; ++i) changed += table.Round(noise) ? 1 : 0;
    EXPECT_LE(changed, 3) << noise;
  }
}

TEST(RangePlanTest, NeverMoreThanTheMost) {
  RangePlanOptions options;
  options.max_ranges = 64;
  Simulation table(options);
  table.Put(0, 1, 1e9, 1e6);
  ASSERT_GE(table.Settle(30), 0);
  EXPECT_LE(table.ranges(), 64u);
  EXPECT_GE(table.ranges(), 22u);
  // The place of most updates moves, and the ranges with it.
  table.Put(0.9, 0.01, 1e9, 1e6);
  for (int i = 0; i < 30; ++i) {
    table.Round(0);
    EXPECT_LE(table.ranges(), 64u);
  }
  EXPECT_EQ(table.Settle(10), 0);
  EXPECT_GE(table.ranges_within(0.9, 0.91), 10u);
}

}  // namespace
}  // namespace deut::tc
