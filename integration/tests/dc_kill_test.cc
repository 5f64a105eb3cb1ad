// A dcd is killed (-9) under a load that makes it do everything it can do, with small pages, little memory and
// frequent checkpoints. Acknowledged writes must stay, and its directory must be whole after each kill. A histogram
// shows the activities that the kills have hit.
// Every second kill comes at a random time within twice the checkpoint interval. Each of the others aims at one
// activity in turn: it waits for the activity and holds it (common/testing/flight_board.h). A split between its two
// steps, for example, lasts microseconds and would not be hit by chance. DEUT_KILLS=200 makes the test long; then
// each activity must have been hit. A short run must hit each activity at which it aims.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/flight_board.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/tests/kill_fixture.h"
#include "tc/client/client.h"

namespace deut {
namespace {

using testing::CounterOf;
using testing::FlightBoard;
using testing::FlightCount;
using testing::FlightHold;
using testing::Pause;

constexpr int kKillsInShort = 20;
constexpr Duration kCheckpointInterval = milliseconds(250);

struct Activity {
  const char* name;
  bool at_start;  // happens only while the DC starts
  int random_hits = 0;
  int aimed_hits = 0;
};

testing::ClusterOptions SmallDc(const std::string& board) {
  testing::ClusterOptions options;
  options.dc.prefix = {"env", Concat(FlightBoard::kVariable, "=", board)};
  options.dc.flags = {
      "--dc_memory=512KiB",         "--dc_leaf_page=1024",
      "--dc_inner_page=1024",       "--dc_segment=64KiB",
      "--dc_checkpoint_log=512KiB", Concat("--dc_checkpoint_interval=", kCheckpointInterval.count() / 1'000'000, "ms"),
      "--dc_merge_interval=1ms",    "--dc_clean_interval=5ms"};
  return options;
}

// A base class, so that it is constructed before the cluster that uses it.
struct OwnBoard {
  const testing::TempDir directory;
  FlightBoard board{directory.Sub("board")};
};

class DcKillTest : private OwnBoard, public testing::KillFixture {
 protected:
  DcKillTest() : KillFixture(SmallDc(board.path()), {.pair_threads = 2, .run_threads = 1, .tables = true}) {}

  // Counts the activities in flight when the DC was killed, and clears the board for the next incarnation.
  void Count(const Activity* aim) {
    bool any = false;
    for (const FlightCount& count : board.Counts()) {
      const auto activity = std::find_if(activities_.begin(), activities_.end(),
                                         [&](const Activity& each) { return each.name == count.name; });
      ASSERT_NE(activity, activities_.end()) << "an activity of which this test does not know: " << count.name;
      if (count.in_flight() == 0) continue;
      any = true;
      ++(&*activity == aim ? activity->aimed_hits : activity->random_hits);
    }
    if (!any) ++hit_nothing_;
    if (aim != nullptr) EXPECT_GT(board.Count(aim->name).in_flight(), 0u) << aim->name;
    board.Clear();
  }

  // Waits until a thread of the DC is held in the activity.
  void AwaitInFlight(const Activity& activity) {
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (board.Count(activity.name).in_flight() == 0) {
      ASSERT_LT(RealRuntime().Now(), deadline) << activity.name << " does not happen";
      ASSERT_TRUE(cluster_.dc()->Running()) << "the DC has ended by itself";
      Pause(microseconds(50));
    }
  }
  void Hold(const Activity& activity) {
    board.Hold(activity.name, random_.OneIn(2) ? FlightHold::kAtBeginning : FlightHold::kAtEnd);
  }
  void KillAndLook(const Activity* aim) {
    cluster_.KillDc();
    ++kills_;
    ASSERT_NO_FATAL_FAILURE(CheckDirectory());
    Count(aim);
  }

  // Runs the load, kills and restarts the DC, runs the load again, then checks everything.
  void Cycle(Activity* aim) {
    load_.Start();
    ASSERT_NO_FATAL_FAILURE(load_.AwaitProgress(5));
    Pause(microseconds(random_.Below(2 * duration_cast<microseconds>(kCheckpointInterval).count())));
    if (aim != nullptr && !aim->at_start) {
      Hold(*aim);
      ASSERT_NO_FATAL_FAILURE(AwaitInFlight(*aim));
    }
    ASSERT_NO_FATAL_FAILURE(KillAndLook(aim != nullptr && !aim->at_start ? aim : nullptr));
    if (aim != nullptr && aim->at_start) {
      Hold(*aim);
      cluster_.StartDc();
      ASSERT_NO_FATAL_FAILURE(AwaitInFlight(*aim));
      ASSERT_NO_FATAL_FAILURE(KillAndLook(aim));
    }
    Pause(microseconds(random_.Below(50'000)));
    cluster_.StartDc();
    ASSERT_NO_FATAL_FAILURE(load_.AwaitProgress(5));
    load_.Stop();
    CheckEverything();
  }

  void Print() const {
    std::cout << kills_ << " kills of the DC, of which in flight:\n                           by chance   aimed at\n";
    for (const Activity& activity : activities_) {
      std::cout << "  " << std::left << std::setw(24) << activity.name << std::right << std::setw(10)
                << activity.random_hits << std::setw(11) << activity.aimed_hits << "\n";
    }
    std::cout << "  " << std::left << std::setw(24) << "nothing" << std::right << std::setw(10) << hit_nothing_ << "\n";
  }

  std::array<Activity, 20> activities_{{{"dc.split", false},
                                        {"dc.merge", false},
                                        {"dc.root_change", false},
                                        {"dc.page_flush", false},
                                        {"dc.swap_out", false},
                                        {"dc.page_load", false},
                                        {"dc.checkpoint_pass", false},
                                        {"dc.checkpoint_structure", false},
                                        {"dc.checkpoint_capture", false},
                                        {"dc.checkpoint_file", false},
                                        {"dc.checkpoint_removal", false},
                                        {"dc.cleaning", false},
                                        {"dc.segment_open", false},
                                        {"dc.segment_close", false},
                                        {"dc.segment_removal", false},
                                        {"dc.table_create", false},
                                        {"dc.table_drop", false},
                                        {"dc.table_free", false},
                                        {"dc.recovery", true},
                                        {"dc.redo", true}}};
  int kills_ = 0;
  int hit_nothing_ = 0;
};

TEST_F(DcKillTest, RecoversFromKillsInEveryActivity) {
  const char* const given = std::getenv("DEUT_KILLS");
  const int wanted = given != nullptr ? std::atoi(given) : kKillsInShort;
  const bool is_long = wanted >= 4 * std::ssize(activities_);
  const auto first = static_cast<size_t>(random_.Below(activities_.size()));
  uint64_t cycles = 0;
  for (; kills_ < wanted && !HasFailure(); ++cycles) {
    Activity* const aim = !testing::kFlightsAreCounted || cycles % 2 == 0
                              ? nullptr
                              : &activities_[(first + cycles / 2) % activities_.size()];
    SCOPED_TRACE(Concat("cycle ", cycles, ", aimed at ", aim != nullptr ? aim->name : "nothing"));
    Cycle(aim);
  }
  Print();
  std::cout << load_.acknowledged() << " writes acknowledged, " << load_.unknown() << " unknown, " << load_.refused()
            << " refused; " << load_.tables_dropped() << " tables dropped; checkpoints " << newest_checkpoint_ << "\n";
  const Result<ServiceStatus> status = cluster_.client().GetStatus();
  ASSERT_TRUE(status.ok()) << status.status().ToString();
  EXPECT_GE(CounterOf(status->tc, "dc.incarnations_seen"), cycles + 1)
      << "the TC noticed each new life that has served";
  if (!testing::kFlightsAreCounted || !is_long || HasFailure()) return;
  for (const Activity& activity : activities_) {
    EXPECT_GT(activity.random_hits + activity.aimed_hits, 0) << activity.name << " was never hit";
  }
}

}  // namespace
}  // namespace deut
