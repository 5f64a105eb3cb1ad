// The TC is killed (-9) while it spills updates that wait for the DC (rule S9). No acknowledged write is lost, and
// the next start does not use files spilled before it.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/tests/kill_fixture.h"
#include "tc/client/client.h"

namespace deut {
namespace {

using testing::CounterOf;

class SpillKillTest : public testing::KillFixture {
 protected:
  // The budget is smaller than the versions of the load's keys that an old reader pins.
  SpillKillTest()
      : KillFixture({.tc = {.flags = {"--record_buckets_log2=14", "--log_segment=16MiB", "--log_buffer=16MiB",
                                      "--version_budget=40KiB"}}},
                    {.pairs = 512}) {}

  uint64_t Counter(const char* name) {
    const Result<ServiceStatus> status = cluster_.client().GetStatus();
    EXPECT_TRUE(status.ok()) << status.status().ToString();
    return status.ok() ? CounterOf(status->tc, name) : 0;
  }
};

TEST_F(SpillKillTest, NothingIsLost) {
  for (int cycle = 0; cycle < 5 && !HasFailure(); ++cycle) {
    load_.Start();
    load_.AwaitProgress(5);
    Result<Transaction> old = cluster_.client().Begin();
    ASSERT_TRUE(old.ok()) << old.status().ToString();
    ASSERT_TRUE(old->Get(load_.pairs_table(), "nothing").ok());
    // Writers that are refused meanwhile retry.
    for (const Deadline end = RealRuntime().Now() + seconds(120); Counter("versions.spilled_now") == 0;) {
      ASSERT_LT(RealRuntime().Now(), end) << "nothing was spilled";
      testing::Pause(milliseconds(10));
    }
    testing::Pause(microseconds(random_.Below(200'000)));
    cluster_.KillTc();
    CheckLog();
    cluster_.StartTc();
    (void)old->Abort();
    load_.AwaitProgress(5);
    load_.Stop();
    CheckEverything();
    EXPECT_EQ(Counter("versions.spilled_now"), 0u);
  }
  EXPECT_EQ(load_.unknown(), 0u) << "the TC knows what became of each commit";
}

}  // namespace
}  // namespace deut
