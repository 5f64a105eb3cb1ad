// Which runs are merged, how often a version is written, and how many runs there are.
#include "tc/spill/spill_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tc/spill/spilled_runs.h"

namespace deut::tc {
namespace {

constexpr uint32_t kAny = UINT32_MAX;

// A digit is a run of that level; '-' is one that cannot be merged now.
std::vector<LeveledRun> Runs(std::string_view levels) {
  std::vector<LeveledRun> runs;
  for (const char c : levels) {
    runs.push_back(c == '-' ? LeveledRun{.level = 0, .busy = true}
                            : LeveledRun{.level = static_cast<uint32_t>(c - '0')});
  }
  return runs;
}

TEST(SpillLevelsTest, FewRunsAreNotMerged) {
  EXPECT_EQ(FindSpillMerge({}, kAny), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("0000000000000000"), kAny), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("00000000000000000"), kAny), 9u);
}

TEST(SpillLevelsTest, TheLowestLevelIsMergedFirst) {
  EXPECT_EQ(FindSpillMerge(Runs("00000000111111111"), kAny), 0u);
  EXPECT_EQ(FindSpillMerge(Runs("11111111100000000"), kAny), 9u);
  EXPECT_EQ(FindSpillMerge(Runs("22222222111111111000"), kAny), 8u) << "beside the higher level";
  EXPECT_EQ(FindSpillMerge(Runs("0000000010000000000"), kAny), 9u);
  EXPECT_EQ(FindSpillMerge(Runs("000000000001100000"), kAny), 3u) << "the first runs are dropped first";
  EXPECT_EQ(FindSpillMerge(Runs("000000011111110000000222"), kAny), std::nullopt) << "no eight of one level";
}

TEST(SpillLevelsTest, WhileAMergeIsInProgressOnlyThoseOfALowerLevelBegin) {
  EXPECT_EQ(FindSpillMerge(Runs("11111111100000000"), 1), 9u);
  EXPECT_EQ(FindSpillMerge(Runs("11111111100000000"), 0), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("--------00000000"), 1), std::nullopt) << "few runs";
  EXPECT_EQ(FindSpillMerge(Runs("---------0000000"), 1), std::nullopt);
  EXPECT_EQ(FindSpillMerge(Runs("0000----0000000000"), 1), 8u);
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
  EXPECT_LE(some.written, 510u * 13 / 5);
}

// Merges handle three versions while two are spilled. So runs of each level are made faster than they are merged, and
// gather up to the limit. A merge is always left to do then.
TEST(SpillLevelsTest, RunsThatGatherBehindSlowMergesCanAllBeMerged) {
  struct Run {
    uint64_t versions = 1;
    LeveledRun leveled;
  };
  struct Merge {
    size_t first;
    uint64_t left;
  };
  std::vector<Run> runs;
  std::vector<Merge> merges;  // the last one has the lowest level
  const auto begin_merge = [&] {
    std::vector<LeveledRun> levels;
    for (const Run& run : runs) levels.push_back(run.leveled);
    const std::optional<size_t> first =
        FindSpillMerge(levels, merges.empty() ? kAny : runs[merges.back().first].leveled.level);
    if (!first) return;
    Merge& merge = merges.emplace_back(Merge{.first = *first, .left = 0});
    for (size_t i = *first; i < *first + kMergedRuns; ++i) {
      runs[i].leveled.busy = true;
      merge.left += runs[i].versions;
    }
  };
  const auto finish_merge = [&] {
    const auto at = runs.begin() + static_cast<ptrdiff_t>(merges.back().first);
    const auto end = at + static_cast<ptrdiff_t>(kMergedRuns);
    Run merged{.versions = 0, .leveled = {.level = at->leveled.level + 1}};
    for (auto run = at; run != end; ++run) merged.versions += run->versions;
    *at = merged;
    runs.erase(at + 1, end);
    merges.pop_back();
  };
  uint64_t spills = 0;
  for (uint64_t step = 0; step < 40'000; ++step) {
    if (runs.size() < SpilledRuns::kMaxRuns) {
      runs.emplace_back();
      ++spills;
    }
    for (uint64_t versions = 1 + step % 2; versions > 0; --versions) {
      begin_merge();
      if (merges.empty()) break;
      if (--merges.back().left == 0) finish_merge();
    }
    begin_merge();
    ASSERT_TRUE(runs.size() < SpilledRuns::kMaxRuns || !merges.empty()) << "stuck after " << spills;
  }
  EXPECT_GT(spills, 10'000u);
}

}  // namespace
}  // namespace deut::tc
