#include "dc/record_ops/apply_team.h"

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(ApplyTeamTest, EachPieceIsDoneOnceBeforeItReturns) {
  ApplyTeam team(RealRuntime(), 3);
  for (size_t pieces = 0; pieces < 200; ++pieces) {
    std::vector<int> done(pieces, 0);  // no atomics: the helpers' writes happen before TryRun returns
    ASSERT_TRUE(team.TryRun(pieces, [&](size_t piece) { ++done[piece]; }));
    EXPECT_EQ(done, std::vector<int>(pieces, 1));
  }
}

// Two pieces that wait for each other need two threads.
TEST(ApplyTeamTest, HelpersHelp) {
  ApplyTeam team(RealRuntime(), 1);
  Event begun[2];
  ASSERT_TRUE(team.TryRun(2, [&](size_t piece) {
    begun[piece].Signal(RealRuntime());
    begun[1 - piece].Wait(RealRuntime(), kNoDeadline);
  }));
}

TEST(ApplyTeamTest, OneThreadAtATimeHasTheTeam) {
  ApplyTeam team(RealRuntime(), 1);
  bool inner = true, helped = false;
  ASSERT_TRUE(team.TryRun(1, [&](size_t) { inner = team.TryRun(1, [&](size_t) { helped = true; }); }));
  EXPECT_FALSE(inner);
  EXPECT_FALSE(helped);
  EXPECT_TRUE(team.TryRun(1, [&](size_t) { helped = true; }));
  EXPECT_TRUE(helped);
}

TEST(ApplyTeamTest, WithoutHelpersNothingIsCalled) {
  ApplyTeam team(RealRuntime(), 0);
  EXPECT_FALSE(team.TryRun(1, [](size_t) { FAIL(); }));
}

// Several threads make many short calls, so that helpers wake late. The team is destroyed at any moment of the
// helpers.
TEST(ApplyTeamTest, LateHelpersFindTheGateClosedOrTheNextWork) {
  for (int life = 0; life < 20; ++life) {
    auto team = std::make_unique<ApplyTeam>(RealRuntime(), 2);
    std::atomic<uint64_t> expected{0}, done{0};
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 3; ++i) {
      threads.push_back(RealRuntime().StartThread("caller", [&] {
        for (size_t call = 0; call < 300; ++call) {
          std::atomic<size_t> own{0};
          if (!team->TryRun(call % 5, [&](size_t) { own.fetch_add(1); })) continue;
          EXPECT_EQ(own.load(), call % 5);
          expected.fetch_add(call % 5);
          done.fetch_add(own.load());
        }
      }));
    }
    threads.clear();
    team.reset();
    EXPECT_EQ(done.load(), expected.load());
  }
}

}  // namespace
}  // namespace deut::dc
