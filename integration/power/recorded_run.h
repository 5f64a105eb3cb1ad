// RecordedRun: one long life of a store whose DC has its pages on the disk. It records the state that a loss of power
// would have left at every changing operation of that disk. The life itself is not disturbed. In the middle of each
// operation, the disk copies the state that a crash would leave (FaultyDisk::WatchChanges). The time and the
// activities in flight in the DC (flight_board.h) are noted with it. Each copy is a crash point. It is judged by the
// answers that the clients had got by that time (Oracle::AsOf), half of the points after a second crash in the
// recovery. The alternative is one PowerRun for each crash point, which also shows how a store behaves while its disk
// is gone. Here, thousands of crash points cost only thousands of short recoveries, and all belong to one run.
// Thread-safety: one thread calls Record, one at a time in a process, because the board is the process's. Then any
// thread may call JudgePoint, once for each point.
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
  uint32_t steps = 0;  // repeated, up to kMaxRounds times, until the run has min_points and min_times
  StoreSizes sizes = {};
  uint64_t min_points = 0;
  std::vector<std::pair<const char*, uint64_t>> min_times = {};  // of activities in the DC, by the names of their marks
  uint64_t every = 1;                                            // one crash point for this many changing operations
  std::function<void()> moved =
      {};  // Record calls it at each changing operation, on any thread, to show that the run moves
};

// How often an activity of the DC was found at crash points.
struct Activity {
  std::string name;
  uint64_t times = 0;   // in the run
  uint64_t before = 0;  // crash points such that it begins before the next one
  uint64_t inside = 0;  // crash points at which it is in flight
  uint64_t after = 0;   // crash points such that it has ended since the previous one

  void Add(const Activity& other) {
    times += other.times;
    before += other.before;
    inside += other.inside;
    after += other.after;
  }
};

class RecordedRun {
 public:
  static constexpr uint32_t kMaxRounds = 20;

  explicit RecordedRun(const RecordedRunOptions& options);

  // Returns "", or the error in the life itself.
  std::string Record();

  size_t points() const { return points_.size(); }
  const PowerRun& run() const { return run_; }
  // Returns the activities of all marks of flight_board.h that the run passed, by name.
  std::vector<Activity> Activities() const;

  struct Verdict {
    std::string wrong;  // the error; "" if none
    bool crashed_again = false;
    std::unique_ptr<PowerRun> run;  // the lives that led to the verdict
  };
  Verdict JudgePoint(size_t index);
  // Judges all points on `threads` threads until one is wrong, and returns its error. Calls `seen` with each verdict,
  // one thread at a time.
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
