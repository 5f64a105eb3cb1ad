// The cases of stale_case.h that pass today, once, or again and again: DEUT_STALE_SECONDS=N (scripts/stale).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "integration/stale/stale_case.h"

namespace deut::stale {
namespace {

class StaleTest : public ::testing::TestWithParam<StaleCase> {};

TEST_P(StaleTest, IsRightOrRefused) {
  const CaseResult result = RunCase(GetParam());
  EXPECT_EQ(result.broken, "");
  std::cout << GetParam().name() << ": "
            << (result.verdict.kind == Verdict::Kind::kRight ? "right" : Concat("refused: ", result.verdict.why))
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(All, StaleTest, ::testing::ValuesIn(AllCases()),
                         [](const auto& test) { return test.param.name(); });

TEST(StaleLongTest, AllCasesAgainAndAgain) {
  const char* const given = std::getenv("DEUT_STALE_SECONDS");
  if (given == nullptr) GTEST_SKIP() << "DEUT_STALE_SECONDS is not set";
  const Deadline deadline = RealRuntime().Now() + seconds(std::strtoull(given, nullptr, 10));
  uint64_t run = 0;
  while (RealRuntime().Now() < deadline) {
    for (const StaleCase& stale : AllCases()) {
      if (RealRuntime().Now() >= deadline) break;
      ASSERT_EQ(RunCase(stale).broken, "") << stale.name() << ", run " << run;
      ++run;
    }
  }
  std::cout << run << " runs\n";
}

}  // namespace
}  // namespace deut::stale
