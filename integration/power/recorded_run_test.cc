// A recorded run of a store with its pages on the disk loses power at each of its changing operations; the test notes
// the DC's activities at each.
// DEUT_POWER_RUNS: number of runs of each kind (default 1). DEUT_SEED: seed of the first. DEUT_POWER_STEP: tests
// every Nth operation (1: all; default: 3).
#include "integration/power/recorded_run.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "integration/power/figures.h"

namespace deut::power {
namespace {

constexpr int kJudges = 4;  // more than processors, because a life mostly waits
constexpr uint64_t kMinPoints = 1000;

struct Case {
  const char* name;
  uint32_t threads;
  uint32_t steps;
};

// The minimum number of each activity in a run. At least one crash point each must find the activity about to begin,
// in flight, and just ended.
struct Kind {
  const char* name;
  uint64_t times;
  bool lasts;  // it changes the disk, or is held until another thread changes it
};
constexpr Kind kKinds[] = {{"dc.split", 100, true},
                           {"dc.merge", 10, true},
                           {"dc.root_change", 3, true},
                           {"dc.table_create", 3, true},
                           {"dc.table_drop", 1, true},
                           {"dc.checkpoint_pass", 5, true},
                           {"dc.checkpoint_structure", 5, true},
                           {"dc.checkpoint_file", 5, true},
                           {"dc.checkpoint_removal", 5, true},
                           {"dc.cleaning", 10, true},
                           {"dc.page_flush", 10, true},
                           {"dc.page_load", 10, true},
                           {"dc.swap_out", 10, true},
                           {"dc.segment_open", 10, true},
                           {"dc.segment_close", 10, false},
                           {"dc.segment_removal", 10, true}};

void CheckActivities(const RecordedRun& recorded, std::map<std::string, Activity>* sums) {
  std::map<std::string, Activity> activities;
  for (const Activity& activity : recorded.Activities()) {
    activities[activity.name] = activity;
    (*sums)[activity.name].Add(activity);
  }
  for (const Kind& kind : kKinds) {
    const Activity& seen = activities[kind.name];
    EXPECT_GE(seen.times, kind.times) << kind.name;
    EXPECT_GT(seen.before, 0u) << kind.name;
    EXPECT_GT(seen.after, 0u) << kind.name;
    if (kind.lasts) EXPECT_GT(seen.inside, 0u) << kind.name;
  }
  EXPECT_GE(recorded.run().dc_work().checkpoints, 5u);
  EXPECT_GE(recorded.run().dc_work().cleaned, 10u);
}

class Recorded : public ::testing::TestWithParam<Case> {};

TEST_P(Recorded, AtEveryOperation) {
  const Case which = GetParam();
  const uint64_t first = FromEnvironment("DEUT_SEED", 1);
  const uint64_t runs = FromEnvironment("DEUT_POWER_RUNS", 1);
  Figures figures;
  std::map<std::string, Activity> sums;
  for (uint64_t seed = first; seed < first + runs && !HasFatalFailure(); ++seed) {
    RecordedRunOptions options{.seed = seed,
                               .threads = which.threads,
                               .steps = which.steps,
                               .min_points = kMinPoints,
                               .every = FromEnvironment("DEUT_POWER_STEP", 3)};
    for (const Kind& kind : kKinds) options.min_times.emplace_back(kind.name, kind.times);
    RecordedRun recorded(options);
    ASSERT_EQ(recorded.Record(), "") << "seed " << seed;
    EXPECT_GE(recorded.points(), kMinPoints);
    CheckActivities(recorded, &sums);
    EXPECT_FALSE(HasFailure()) << "seed " << seed;
    const std::string wrong = recorded.JudgeAll(kJudges, [&figures](const RecordedRun::Verdict& verdict) {
      ++figures.crash_points;
      figures.second_crashes += verdict.crashed_again ? 1 : 0;
      figures.Add(*verdict.run);
    });
    ASSERT_EQ(wrong, "") << "\nrepeat: bazel test --config=test --test_env=DEUT_SEED=" << seed << " --test_filter='*"
                         << which.name << "' //integration/power:recorded_run_test";
  }
  std::printf("%-26s %9s %20s %9s %9s\n", "the DC", "times", "crash points before", "inside", "after");
  for (const auto& [name, sum] : sums)
    std::printf("%-26s %9lu %20lu %9lu %9lu\n", name.c_str(), sum.times, sum.before, sum.inside, sum.after);
}

INSTANTIATE_TEST_SUITE_P(All, Recorded, ::testing::Values(Case{"OneClient", 1, 200}, Case{"FourClients", 4, 400}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace deut::power
