// Runs the core cases of stale_case.h once, or all of them repeatedly: DEUT_STALE_SECONDS=N (scripts/stale).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "integration/stale/stale_case.h"

namespace deut::stale {
namespace {

// Number of starts after a refusal. The longest run of refusals that was ever seen to end by itself had nine.
constexpr int kRestarts = 2, kRestartsInLongRuns = 12;

std::string Said(const CaseResult& result) {
  if (!result.played) return "there is no such file";
  return result.verdict.kind == Verdict::Kind::kRight ? "right" : Concat("refused: ", result.verdict.why);
}

class StaleTest : public ::testing::TestWithParam<StaleCase> {};

TEST_P(StaleTest, IsRightOrRefused) {
  const CaseResult result = RunCase(GetParam(), kRestarts);
  EXPECT_EQ(result.broken, "");
  EXPECT_TRUE(result.played) << "the folder has no such file: the case tests nothing";
  std::cout << GetParam().name() << ": " << Said(result) << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, StaleTest, ::testing::ValuesIn(CoreCases()),
                         [](const auto& test) { return test.param.name(); });

TEST(StaleLongTest, AllCasesAgainAndAgain) {
  const char* const given = std::getenv("DEUT_STALE_SECONDS");
  if (given == nullptr) GTEST_SKIP() << "DEUT_STALE_SECONDS is not set";
  const char* const name = std::getenv("DEUT_STALE_CASE");
  const Deadline deadline = RealRuntime().Now() + seconds(std::strtoull(given, nullptr, 10));
  const uint64_t seed = std::random_device()();
  std::cout << "the order of the cases is of seed " << seed << "\n";
  std::mt19937_64 random(seed);
  std::vector<StaleCase> cases = AllCases();
  if (name != nullptr) std::erase_if(cases, [name](const StaleCase& each) { return each.name() != name; });
  ASSERT_FALSE(cases.empty()) << "no such case: " << name;
  uint64_t run = 0;
  std::vector<std::string> broken;
  while (RealRuntime().Now() < deadline) {
    std::ranges::shuffle(cases, random);
    for (const StaleCase& stale : cases) {
      if (RealRuntime().Now() >= deadline) break;
      const CaseResult result = RunCase(stale, kRestartsInLongRuns);
      ++run;
      if (!result.broken.empty()) broken.push_back(Concat(stale.name(), ": ", result.broken));
      std::cout << run << " " << stale.name() << ": " << (result.broken.empty() ? Said(result) : broken.back())
                << std::endl;
    }
  }
  std::cout << run << " runs of " << cases.size() << " cases\n";
  for (const std::string& each : broken) ADD_FAILURE() << each;
}

}  // namespace
}  // namespace deut::stale
