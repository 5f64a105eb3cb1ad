#include "common/testing/test_points.h"

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::testing {
namespace {

int PassesAndFailures() {
  int failures = 0;
  DEUT_POINT("test.point");
  if (DEUT_CAS_FAILS("test.cas")) ++failures;
  return failures;
}

#ifdef DEUT_TEST_POINTS

TEST(TestPoints, HandlersSeeNamesAndDecide) {
  std::vector<std::string> passed;
  SetPointHandler([&](std::string_view name) { passed.emplace_back(name); });
  SetCasHandler([](std::string_view name) { return name == "test.cas"; });
  EXPECT_EQ(PassesAndFailures(), 1);
  SetPointHandler({});
  SetCasHandler({});
  EXPECT_EQ(PassesAndFailures(), 0);
  EXPECT_EQ(passed, std::vector<std::string>{"test.point"});
}

TEST(TestPoints, AHandlerMayBeReplacedWhileThreadsPass) {
  std::atomic<bool> stop{false};
  std::atomic<int> passes{0};
  auto thread = RealRuntime().StartThread("passer", [&] {
    while (!stop) PassesAndFailures();
  });
  for (int i = 0; i < 200; ++i) {
    SetPointHandler([&](std::string_view) { passes.fetch_add(1); });
    SetPointHandler({});
  }
  SetPointHandler([&](std::string_view) { passes.fetch_add(1); });
  while (passes.load() == 0) RealRuntime().Yield();
  stop = true;
  thread->Join();
  SetPointHandler({});
}

#else

TEST(TestPoints, AreNothingOutsideTestConfigurations) { EXPECT_EQ(PassesAndFailures(), 0); }

#endif

#ifndef DEUT_MUTATIONS
TEST(TestPoints, NoStepIsOmittedOutsideMutationBuilds) {
  static_assert(DEUT_STEP("R1.check"));
  SUCCEED();
}
#endif

}  // namespace
}  // namespace deut::testing
