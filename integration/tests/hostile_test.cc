// The slice of integration/hostile that runs in CI: every attack for a second on both daemons, without TLS and with it. How fast the client beside
// an attack is depends on the machine's other load, so only a very large ratio fails here; scripts/hostile asks for the real one.
#include <gtest/gtest.h>

#include <string>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/process.h"

namespace deut {
namespace {

TEST(HostileTest, BothDaemonsBearEveryAttackOfTheSlice) {
  const testing::TempDir directory;
  const testing::Ended ended = testing::RunProgram(
      {"python3", "integration/hostile/main.py", Concat("--tcd=", testing::ProgramAt("TCD")),
       Concat("--dcd=", testing::ProgramAt("DCD")), Concat("--certificates=", testing::ProgramAt("CERTIFICATES")),
       "--slice", "--seconds=1", "--io=posix", "--p99=100000"},
      directory.Sub("hostile.log"), seconds(280));
  EXPECT_EQ(ended.status, 0) << ended.output;
}

}  // namespace
}  // namespace deut
