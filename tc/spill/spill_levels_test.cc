// Which runs are merged, how often a version is written, and how many runs there are.
#include "tc/spill/spill_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tc/spill/spilled_runs.h"

namespace deut::tc {
namespace {

constexpr uint32_t kAny = UINT32_MAX;

// A digit is a run of that level; '-' is one of a merge that is not finished.
std::vector<LeveledRun> Runs(std::string_view levels) {
  std::vector<LeveledRun> runs;
  for (const char c : levels) {
    runs.push_back(c == '-' ? LeveledRun{.level = 0, .merging = true}
                            : LeveledRun{.level = static_cast<uint32_t>(c - '0')});
  }
  return runs;
}

TEST(SpillLevelsTest, FewRunsAreNotMerged) {
  EXPECT_EQ(FindSpillMerge({}, kAny), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("0000000000000000"), kAny), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("00000000000000000"), kAny), 9u);
}

TEST(SpillLevelsTest, TheLatestOfTheLowestLevelAreMerged) {
  EXPECT_EQ(FindSpillMerge(Runs("00000000111111111"), kAny), 0u);
  EXPECT_EQ(FindSpillMerge(Runs("11111111100000000"), kAny), 9u);
  EXPECT_EQ(FindSpillMerge(Runs("22222222111111111000"), kAny), 9u);
  EXPECT_EQ(FindSpillMerge(Runs("0000000010000000000"), kAny), 11u);
  EXPECT_EQ(FindSpillMerge(Runs("000000011111110000000222"), kAny), std::nullopt) << "no eight of one level";
}

TEST(SpillLevelsTest, WhileAMergeIsInProgressOnlyThoseOfALowerLevelBegin) {
  EXPECT_EQ(FindSpillMerge(Runs("11111111100000000"), 1), 9u);
  EXPECT_EQ(FindSpillMerge(Runs("11111111100000000"), 0), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("--------00000000"), 1), std::nullopt) << "few runs";
  EXPECT_EQ(FindSpillMerge(Runs("---------0000000"), 1), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("0000----0000000000"), 1), 10u);
  EXPECT_EQ(FindSpillMerge(Runs("0000000---------0000000"), 1), std::nullopt) << "merging runs separate the others";
}

struct Counted {
  size_t most_runs = 0;
  uint64_t written = 0;
};
// `spills` runs of one version each; after each, `dropped_percent` of a version are applied.
Counted Spill(uint64_t spills, uint64_t dropped_percent) {
  struct Run {
    uint64_t versions;
    uint64_t end;
  };
  Counted counted;
  std::vector<Run> runs;
  std::vector<LeveledRun> levels;
  for (uint64_t i = 1; i <= spills; ++i) {
    runs.push_back({.versions = 1, .end = i});
    levels.push_back({});
    counted.written += 1;
    counted.most_runs = std::max(counted.most_runs, runs.size());
    while (!runs.empty() && runs.front().end * 100 <= i * dropped_percent) {
      runs.erase(runs.begin());
      levels.erase(levels.begin());
    }
    for (std::optional<size_t> found; (found = FindSpillMerge(levels, kAny)).has_value();) {
      const auto at = static_cast<ptrdiff_t>(*found), end = at + static_cast<ptrdiff_t>(kMergedRuns);
      uint64_t versions = 0;
      for (auto run = runs.begin() + at; run != runs.begin() + end; ++run) versions += run->versions;
      counted.written += versions;
      runs[*found] = {.versions = versions, .end = runs[*found + kMergedRuns - 1].end};
      runs.erase(runs.begin() + at + 1, runs.begin() + end);
      levels[*found].level += 1;
      levels.erase(levels.begin() + at + 1, levels.begin() + end);
    }
  }
  return counted;
}

TEST(SpillLevelsTest, AVersionIsWrittenOncePerLevelAndRunsStayFew) {
  const Counted many = Spill(9000, 0);
  EXPECT_LT(many.most_runs, 40u);
  EXPECT_LT(many.most_runs, SpilledRuns::kMaxRuns / 4 * 3);
  EXPECT_LE(many.written, 9000u * 5);  // 8^4 < 9000 < 8^5
  EXPECT_LE(Spill(500, 0).written, 500u * 3);
  EXPECT_EQ(Spill(16, 0).written, 16u);
}

// When the DC has applied two thirds of the spilled versions, most runs go before they are merged twice.
TEST(SpillLevelsTest, ABacklogThatIsAppliedIsMergedLittle) {
  const Counted some = Spill(510, 62);
  EXPECT_LT(some.most_runs, 30u);
  EXPECT_LE(some.written, 510u * 5 / 2);
}

}  // namespace
}  // namespace deut::tc
