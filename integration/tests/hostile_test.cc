// The part of integration/hostile that runs in CI: one round of each case on both daemons. The test judges zero
// errors, the required effect of each attack, exits and logs. It judges no latency, because that depends on the
// machine's other load; scripts/hostile judges latencies.
#include <gtest/gtest.h>

#include <string>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/process.h"

namespace deut {
namespace {

// Alone it takes less than a minute. The limit only catches a hang.
void RunSlice(const std::string& tls) {
  const testing::TempDir directory;
  const testing::Ended ended = testing::RunProgram(
      {"python3", "-B", "integration/hostile/main.py", Concat("--tcd=", testing::ProgramAt("TCD")),
       Concat("--dcd=", testing::ProgramAt("DCD")), Concat("--certificates=", testing::ProgramAt("CERTIFICATES")),
       "--slice", "--io=posix", Concat("--tls=", tls)},
      directory.Sub("hostile.log"), seconds(420));
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(HostileTest, TheJudgesFindStallsErrorsIdleAttacksAndBadEnds) {
  const testing::TempDir directory;
  const testing::Ended ended = testing::RunProgram({"python3", "-B", "integration/hostile/judge_test.py"},
                                                   directory.Sub("judges.log"), seconds(120));
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(HostileTest, BothDaemonsWithoutTlsBearEveryAttackOfTheSlice) { RunSlice("off"); }

TEST(HostileTest, BothDaemonsWithTlsBearEveryAttackOfTheSlice) { RunSlice("on"); }

}  // namespace
}  // namespace deut
