#include "common/testing/flight_board.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/temp_dir.h"

namespace deut::testing {
namespace {

#ifdef DEUT_TEST_POINTS

// The only argument of this program when it is the process whose board the tests read.
constexpr char kAsTheOther[] = "--fly-until-killed";

FlightCount CountHere(const std::string& name) {
  for (FlightCount& count : InFlightCounts()) {
    if (count.name == name) return std::move(count);
  }
  return {};
}

void Fly() { DEUT_IN_FLIGHT("test.flight"); }

TEST(FlightBoardTest, AMarkIsInFlightToTheEndOfItsScope) {
  EXPECT_EQ(CountInFlight("test.scope"), 0u);
  for (uint64_t pass = 1; pass <= 3; ++pass) {
    DEUT_IN_FLIGHT("test.scope");
    DEUT_IN_FLIGHT_IF(pass == 2, "test.second");
    EXPECT_EQ(CountInFlight("test.scope"), 1u);
    EXPECT_EQ(CountInFlight("test.second"), pass == 2 ? 1u : 0u);
    EXPECT_EQ(CountHere("test.scope").begun, pass);
  }
  EXPECT_EQ(CountInFlight("test.scope"), 0u);
  EXPECT_EQ(CountHere("test.scope").ended, 3u);
  EXPECT_EQ(CountHere("test.second").begun, 1u);
}

TEST(FlightBoardTest, MarksOfOneNameAreCountedTogether) {
  DEUT_IN_FLIGHT("test.shared");
  DEUT_IN_FLIGHT("test.shared");
  EXPECT_EQ(CountInFlight("test.shared"), 2u);
}

TEST(FlightBoardTest, ThreadsLoseNoCount) {
  constexpr int kThreads = 4, kPasses = 10'000;
  const uint64_t before = CountHere("test.flight").begun;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(RealRuntime().StartThread("flyer", [] {
      for (int pass = 0; pass < kPasses; ++pass) Fly();
    }));
  }
  for (int i = 0; i < 1000; ++i) EXPECT_LE(CountInFlight("test.flight"), uint64_t{kPasses} * kThreads);
  threads.clear();
  EXPECT_EQ(CountHere("test.flight").begun, before + uint64_t{kThreads} * kPasses);
  EXPECT_EQ(CountInFlight("test.flight"), 0u);
}

TEST(FlightBoardTest, ActivitiesInFlightWhenAHoldBeginsStayInFlight) {
  for (const FlightHold where : {FlightHold::kAtBeginning, FlightHold::kAtEnd}) {
    Event inside, go_on;
    std::atomic<bool> ended{false};
    const auto flyer = RealRuntime().StartThread("flyer", [&] {
      {
        DEUT_IN_FLIGHT("test.held");
        inside.Signal(RealRuntime());
        go_on.Wait(RealRuntime(), kNoDeadline);
      }
      ended.store(true);
    });
    inside.Wait(RealRuntime(), kNoDeadline);
    FindOrAddFlightSlot("test.held").hold.store(where);
    go_on.Signal(RealRuntime());
    for (int i = 0; i < 100; ++i) RealRuntime().Yield();  // time enough to end
    EXPECT_FALSE(ended.load());
    EXPECT_EQ(CountInFlight("test.held"), 1u);
    FindOrAddFlightSlot("test.held").hold.store(FlightHold::kNowhere);
    flyer->Join();
    EXPECT_EQ(CountInFlight("test.held"), 0u);
  }
}

[[noreturn]] void FlyUntilKilled() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  DEUT_IN_FLIGHT("test.always");
  for (;;) Fly();
}

class OtherProcessTest : public ::testing::Test {
 protected:
  void Start() {
    const std::string variable = Concat(FlightBoard::kVariable, "=", board_.path());
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ != 0) return;
    const char* const arguments[] = {"flight_board_test", kAsTheOther, nullptr};
    const char* const environment[] = {variable.c_str(), nullptr};
    ::execve("/proc/self/exe", const_cast<char**>(arguments), const_cast<char**>(environment));
    ::_exit(1);
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFSIGNALED(status)) << "has ended by itself: " << status;
    pid_ = 0;
  }
  void TearDown() override { Kill(); }

  // True if the other process lives, so that waiting makes sense.
  bool Lives() { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

  const TempDir directory_;
  FlightBoard board_{directory_.Sub("board")};
  pid_t pid_ = 0;
};

TEST_F(OtherProcessTest, ItsCountsOutliveIt) {
  EXPECT_TRUE(board_.Counts().empty());
  Start();
  while (board_.Count("test.flight").ended < 1000) ASSERT_TRUE(Lives());
  Kill();
  const FlightCount always = board_.Count("test.always");
  EXPECT_EQ(always.begun, 1u);
  EXPECT_EQ(always.in_flight(), 1u);
  EXPECT_LE(board_.Count("test.flight").in_flight(), 1u);
  EXPECT_EQ(board_.Count("test.never").begun, 0u);
  EXPECT_EQ(board_.Counts().size(), 2u);
  EXPECT_EQ(CountInFlight("test.always"), 0u) << "one board is not the other";

  board_.Clear();
  EXPECT_TRUE(board_.Counts().empty());
  Start();
  while (board_.Count("test.flight").ended < 1000) ASSERT_TRUE(Lives());
}

TEST_F(OtherProcessTest, ItCanBeHeldAtEitherEnd) {
  for (const FlightHold where : {FlightHold::kAtBeginning, FlightHold::kAtEnd}) {
    board_.Clear();
    // Set before the process begins, so also before it has named anything.
    board_.Hold("test.flight", where);
    Start();
    while (board_.Count("test.flight").in_flight() == 0) ASSERT_TRUE(Lives());
    EXPECT_EQ(board_.Count("test.flight").ended, 0u);
    Kill();
    EXPECT_EQ(board_.Count("test.flight").in_flight(), 1u) << "killed in flight";
  }
}

TEST_F(OtherProcessTest, AHeldActivityGoesOnWhenReleased) {
  board_.Hold("test.flight", FlightHold::kAtBeginning);
  Start();
  while (board_.Count("test.flight").in_flight() == 0) ASSERT_TRUE(Lives());
  board_.Hold("test.flight", FlightHold::kNowhere);
  while (board_.Count("test.flight").ended < 100) ASSERT_TRUE(Lives());
}

#else

TEST(FlightBoardTest, CostsNothingInAReleaseBuild) {
  DEUT_IN_FLIGHT("test.scope");
  EXPECT_TRUE(InFlightCounts().empty());
  EXPECT_FALSE(kFlightsAreCounted);
}

#endif

}  // namespace
}  // namespace deut::testing

int main(int argc, char** argv) {
#ifdef DEUT_TEST_POINTS
  if (argc == 2 && std::string_view(argv[1]) == deut::testing::kAsTheOther) deut::testing::FlyUntilKilled();
#endif
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
