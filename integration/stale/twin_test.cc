// Two processes of one data component: one starts from a copy of the other's folder, and the TC is connected to the
// one and the other in turn, as by a host name that moves. Both claim to be the same data component, and each has
// only the updates sent to it. The store must stay right, or refuse.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/stale/stale_world.h"
#include "tc/client/client.h"

namespace deut::stale {
namespace {

enum class Copied { kAtRest, kWhileItRan };

class TwinTest : public ::testing::TestWithParam<Copied> {
 protected:
  void SetUp() override {
    ASSERT_EQ(world_.Create().ToString(), "OK");
    ASSERT_TRUE(world_.Write("old", 60).ok());
    ASSERT_TRUE(world_.AwaitCheckpoint().ok());
    if (GetParam() == Copied::kAtRest) world_.Kill(Component::kDc);
    world_.Copy(Component::kDc, "twin");
    if (GetParam() == Copied::kAtRest) world_.Start(Component::kDc);
    world_.StartTwin("twin");
    ASSERT_EQ(world_.cluster().AwaitServing().ToString(), "OK");
  }

  // Returns a counter of the TC; 0 while it does not answer.
  uint64_t Counter(std::string_view name) {
    const Result<ServiceStatus> status = world_.cluster().client().GetStatus({.timeout = seconds(5)});
    return status.ok() ? testing::CounterOf(status->tc, name) : 0;
  }

  StaleWorld world_{/*proxies=*/true};
};

TEST_P(TwinTest, ATcThatIsLedFromOneToTheOtherIsRightOrRefuses) {
  std::string refusal;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    ASSERT_TRUE(world_.Write(Concat("round ", round), 30).ok());
    // The TC forgets its writes, so that it must read them from the DC that it is connected to.
    ASSERT_TRUE(world_.cluster().client().DropCaches({.timeout = seconds(60)}).ok());
    world_.RouteToTwin(round % 2 == 0);
    const Verdict verdict = world_.Judge();
    ASSERT_NE(verdict.kind, Verdict::Kind::kWrong) << verdict.why;
    refusal = verdict.why;
    if (verdict.kind == Verdict::Kind::kRefused) break;
  }
  std::cout << (refusal.empty() ? "right" : refusal) << "\n";
}

// The TC has removed its log up to the position that the DC had made stable. The twin lacks some of that log: it must
// be refused at every start, and the TC must change nothing.
TEST_P(TwinTest, ATwinThatTheLogCannotBringUpToDateIsRefused) {
  const uint64_t copied = Counter("ship.position");
  ASSERT_EQ(world_.WriteFiller(8).ToString(), "OK");
  const Deadline deadline = RealRuntime().Now() + seconds(120);
  while (Counter("ship.redo_start") <= copied) {
    ASSERT_TRUE(world_.Write("new", 1).ok());
    ASSERT_LT(RealRuntime().Now(), deadline) << "redo starts at " << Counter("ship.redo_start");
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(20));
  }
  world_.Kill(Component::kTc);
  world_.RouteToTwin(true);
  world_.Start(Component::kTc);
  const Verdict verdict = world_.Judge();
  ASSERT_EQ(verdict.kind, Verdict::Kind::kRefused) << verdict.why;
  std::cout << verdict.why << "\n";
  const FolderBytes refused = BytesOf(world_.FolderOf(Component::kTc));
  for (int again = 0; again < 2; ++again) {
    world_.Kill(Component::kTc);
    world_.Start(Component::kTc);
    EXPECT_EQ(world_.Judge().kind, Verdict::Kind::kRefused);
  }
  world_.Kill(Component::kTc);
  EXPECT_TRUE(BytesOf(world_.FolderOf(Component::kTc)) == refused) << "a refused start has changed the log";
  // With the data component that the TC knows, everything is as before.
  world_.RouteToTwin(false);
  world_.Start(Component::kTc);
  const Verdict known = world_.Judge();
  EXPECT_EQ(known.kind, Verdict::Kind::kRight) << known.why;
}

INSTANTIATE_TEST_SUITE_P(All, TwinTest, ::testing::Values(Copied::kAtRest, Copied::kWhileItRan), [](const auto& test) {
  return test.param == Copied::kAtRest ? "CopiedAtRest" : "CopiedWhileItRan";
});

}  // namespace
}  // namespace deut::stale
