#include "common/runtime/descriptor_budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "common/base/status.h"

namespace deut {
namespace {

constexpr DescriptorNeeds kNeeds{.reserve = 100, .min_files = 50, .max_files = 500, .per_connection = 2};
constexpr uint64_t kDefaultMax = 16'384;

TEST(DescriptorBudgetTest, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const Result<uint64_t> limit = RaiseDescriptorLimit();
  ASSERT_TRUE(limit.ok()) << limit.status().ToString();
  EXPECT_EQ(*limit, before.rlim_max);
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
}

TEST(DescriptorBudgetTest, EveryPlanFitsItsLimit) {
  for (const uint64_t limit : {182u, 183u, 200u, 256u, 1024u, 4096u, 65'536u, 1'048'576u}) {
    for (const uint64_t wanted : {0u, 1u, 16u, 40u, 400u, 4000u}) {
      const Result<DescriptorBudget> plan = PlanDescriptors(limit, kNeeds, wanted, kDefaultMax);
      const uint64_t least = 150 + 2 * (wanted == 0 ? kMinConnections : wanted);
      ASSERT_EQ(plan.ok(), least <= limit) << limit << " " << wanted;
      if (!plan.ok()) continue;
      EXPECT_LE(plan->connections * 2 + plan->files + 100, limit);
      EXPECT_GE(plan->files, 50u);
      EXPECT_LE(plan->files, 500u);
      if (wanted != 0) EXPECT_EQ(plan->connections, wanted);
      if (wanted == 0) EXPECT_LE(plan->connections, kDefaultMax);
    }
  }
  EXPECT_EQ(PlanDescriptors(524'288, kNeeds, 0, kDefaultMax)->connections, kDefaultMax);
  EXPECT_EQ(PlanDescriptors(524'288, kNeeds, 0, kDefaultMax)->files, 500u);
  EXPECT_EQ(PlanDescriptors(524'288, kNeeds, 0, 300)->connections, 300u);
  EXPECT_EQ(PlanDescriptors(524'288, kNeeds, 0, 1)->connections, kMinConnections);
  EXPECT_EQ(PlanDescriptors(524'288, kNeeds, 400, 300)->connections, 400u) << "the operator's choice counts";
}

TEST(DescriptorBudgetTest, FilesBeyondTheUsualOnesGetWhatConnectionsLeave) {
  DescriptorNeeds needs = kNeeds;
  needs.max_files = 10'000;
  needs.files_before_connections = 500;
  for (const uint64_t limit : {1024u, 4096u, 20'000u, 524'288u}) {
    EXPECT_EQ(PlanDescriptors(limit, needs, 0, kDefaultMax)->connections,
              PlanDescriptors(limit, kNeeds, 0, kDefaultMax)->connections)
        << limit;
  }
  EXPECT_LE(PlanDescriptors(20'000, needs, 0, kDefaultMax)->files, 501u);
  EXPECT_EQ(PlanDescriptors(40'000, needs, 0, kDefaultMax)->files, 40'000u - 100 - 2 * kDefaultMax);
  EXPECT_EQ(PlanDescriptors(524'288, needs, 0, kDefaultMax)->files, 10'000u);
  EXPECT_EQ(PlanDescriptors(4096, needs, 40, kDefaultMax)->files, 4096u - 100 - 80);
}

TEST(DescriptorBudgetTest, ARefusalSaysWhatIsNeededAndWhatToChange) {
  EXPECT_EQ(
      PlanDescriptors(1024, kNeeds, 4000, kDefaultMax).status().message(),
      "--max_connections=4000 needs 8150 open files (2 for each connection, 50 for data, 100 in reserve), and the hard "
      "limit is 1024; lower --max_connections to 437 at most, or raise the limit of open files (ulimit -Hn in a shell, "
      "LimitNOFILE= in a systemd unit)");
  EXPECT_EQ(
      PlanDescriptors(128, kNeeds, 0, kDefaultMax).status().message(),
      "at least 182 open files are needed (16 connections of 2, 50 for data, 100 in reserve), and the hard limit is "
      "128; raise the limit of open files (ulimit -Hn in a shell, LimitNOFILE= in a systemd unit)");
  EXPECT_EQ(PlanDescriptors(128, kNeeds, 0, kDefaultMax).status(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace deut
