// RecordedRun: one long life of a store whose DC has its pages on the disk, and what a loss of power would have left of it at every changing
// operation of that disk. The life itself is not disturbed: in the middle of each operation a copy is taken of what a crash leaves then
// (FaultyDisk::WatchChanges), with the time and with what was under way in the DC (flight_board.h). Each copy is a crash point: judged by
// what its clients had been told by that time (Oracle::AsOf), half of them after a second crash in the recovery.
// Against a run for each crash point (PowerRun, which sees besides how a store behaves whose disk is gone): thousands of points cost as many short
// recoveries, and all are of the same run.
// Thread-safety: Record by one thread, one at a time in a process (the board is the process's); then JudgePoint from any thread, each point once.
#ifndef INTEGRATION_POWER_RECORDED_RUN_H_
#define INTEGRATION_POWER_RECORDED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/testing/flight_board.h"
#include "integration/power/power_run.h"

namespace deut::power {

struct RecordedRunOptions {
  uint64_t seed = 1;
  uint32_t threads = 1;
  uint32_t steps = 0;  // and as many again, up to kMostRounds times, until the run has
  StoreSizes sizes = {};
  uint64_t least_points = 0;
  std::vector<std::pair<const char*, uint64_t>> least_times =
      {};                            // of activities in the DC, by the names of their marks
  uint64_t every = 1;                // a crash point at each so-many-th changing operation
  std::function<void()> moved = {};  // called now and then by Record, by any thread
};

// How often an activity of the DC was met.
struct Activity {
  std::string name;
  uint64_t times = 0;   // in the run
  uint64_t before = 0;  // crash points after which it begins before the next one
  uint64_t inside = 0;  // at which it is under way
  uint64_t after = 0;   // before which it has ended since the one before

  void Add(const Activity& other) {
    times += other.times;
    before += other.before;
    inside += other.inside;
    after += other.after;
  }
};

class RecordedRun {
 public:
  static constexpr uint32_t kMostRounds = 20;

  explicit RecordedRun(const RecordedRunOptions& options);

  // Empty, or what was wrong with the life itself.
  std::string Record();

  size_t points() const { return points_.size(); }
  const PowerRun& run() const { return run_; }
  // Of all marks of flight_board.h that were passed, by name.
  std::vector<Activity> Activities() const;

  struct Verdict {
    std::string wrong;  // or empty
    bool crashed_again = false;
    std::unique_ptr<PowerRun> run;  // what was done to find it out
  };
  Verdict JudgePoint(size_t index);
  // All of them, by so many threads, until one is wrong: what is. `seen` is called with each verdict, by one thread at a time.
  std::string JudgeAll(int threads, const std::function<void(const Verdict&)>& seen);

 private:
  struct Point {
    uint64_t operation = 0;
    int64_t moment = 0;
    std::unique_ptr<FaultyDisk> disk;
    std::vector<testing::FlightCount> flights;
  };

  std::string JudgeCopy(std::unique_ptr<FaultyDisk> disk, const Point& point, uint64_t seed, Verdict* verdict) const;

  const RecordedRunOptions options_;
  PowerRun run_;
  std::vector<Point> points_;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_RECORDED_RUN_H_
