#include "integration/power/recorded_run.h"

#include <atomic>
#include <map>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/power/activity_holder.h"

namespace deut::power {
namespace {

// A wrong point is judged this many times again, to show how often the error recurs.
constexpr uint64_t kAgain = 5;

RunOptions OptionsOf(const RecordedRunOptions& options) {
  return {.seed = options.seed, .threads = options.threads, .sizes = options.sizes};
}

using Counts = std::map<std::string, testing::FlightCount>;

Counts ByName(const std::vector<testing::FlightCount>& flights) {
  Counts counts;
  for (const testing::FlightCount& flight : flights) counts[flight.name] = flight;
  return counts;
}

}  // namespace

RecordedRun::RecordedRun(const RecordedRunOptions& options) : options_(options), run_(OptionsOf(options)) {}

std::string RecordedRun::Record() {
  uint64_t operation = 0;
  FaultyDisk& disk = run_.disk();
  disk.WatchChanges([&](const FaultyDisk::Copier& copy_after_crash) {
    if (options_.moved) options_.moved();
    if (++operation % options_.every != 0) return;
    points_.push_back({.operation = operation,
                       .moment = RealRuntime().Now().time_since_epoch().count(),
                       .disk = copy_after_crash(Mix64(options_.seed * 1'000'003 + operation)),
                       .flights = testing::InFlightCounts()});
  });
  const Counts before = ByName(testing::InFlightCounts());
  uint32_t rounds = 0;
  const auto more = [&] {
    if (++rounds == kMaxRounds) return false;
    bool enough = disk.counts().changing / options_.every >= options_.min_points;
    const Counts now = ByName(testing::InFlightCounts());
    for (const auto& [name, times] : options_.min_times) {
      const auto then = before.find(name), at = now.find(name);
      const uint64_t begun = (at == now.end() ? 0 : at->second.begun) - (then == before.end() ? 0 : then->second.begun);
      enough &= begun >= times;
    }
    return !enough;
  };
  std::string wrong;
  {
    const ActivityHolder holder(disk, options_.seed);
    wrong = run_.RunLife({.steps = options_.steps, .continue_steps = more, .judge_first = false, .orderly_stop = true});
  }
  disk.WatchChanges({});
  return wrong;
}

std::vector<Activity> RecordedRun::Activities() const {
  std::map<std::string, Activity> activities;
  Counts last;
  for (const Point& point : points_) {
    const Counts now = ByName(point.flights);
    for (const auto& [name, flight] : now) {
      Activity& activity = activities[name];
      activity.name = name;
      if (&point != &points_.front()) {
        activity.times += flight.begun - last[name].begun;
        activity.before += flight.begun > last[name].begun ? 1 : 0;
        activity.after += flight.ended > last[name].ended ? 1 : 0;
      }
      activity.inside += flight.in_flight() > 0 ? 1 : 0;
    }
    last = now;
  }
  std::vector<Activity> sorted;
  for (auto& [name, activity] : activities) sorted.push_back(std::move(activity));
  return sorted;
}

RecordedRun::Verdict RecordedRun::JudgePoint(size_t index) {
  Point& point = points_[index];
  const uint64_t seed = Mix64(options_.seed * 7919 + point.operation);
  const std::unique_ptr<FaultyDisk> disk = std::move(point.disk);
  Verdict verdict;
  // All blocks of the copy are durable, so all copies of it are the same.
  verdict.wrong = JudgeCopy(disk->CopyAfterCrash(seed), point, seed, &verdict);
  if (verdict.wrong.empty()) return verdict;
  uint64_t again = 0;
  for (uint64_t i = 0; i < kAgain; ++i) {
    Verdict other;
    again += JudgeCopy(disk->CopyAfterCrash(seed), point, seed + i, &other).empty() ? 0 : 1;
  }
  std::string flights;
  for (const testing::FlightCount& flight : point.flights) {
    if (flight.in_flight() > 0) flights += Concat(" ", flight.name);
  }
  verdict.wrong =
      Concat("seed ", options_.seed, ", crash at operation ", point.operation, " of the recorded run, in", flights,
             ": ", verdict.wrong, "\nJudged ", kAgain, " times again, it was wrong ", again, " times");
  return verdict;
}

std::string RecordedRun::JudgeAll(int threads, const std::function<void(const Verdict&)>& seen) {
  Mutex mutex(RealRuntime());
  std::string wrong;
  std::atomic<size_t> next{0};
  const auto judge = [&] {
    for (size_t index = next++; index < points(); index = next++) {
      const Verdict verdict = JudgePoint(index);
      const MutexLock lock(mutex);
      seen(verdict);
      if (wrong.empty()) wrong = verdict.wrong;
      if (!wrong.empty()) next = points();
    }
  };
  std::vector<std::unique_ptr<Thread>> judges;
  for (int i = 0; i < threads; ++i) judges.push_back(RealRuntime().StartThread("judge", judge));
  judges.clear();
  return wrong;
}

std::string RecordedRun::JudgeCopy(std::unique_ptr<FaultyDisk> disk, const Point& point, uint64_t seed,
                                   Verdict* verdict) const {
  RunOptions options = OptionsOf(options_);
  options.seed = seed;
  verdict->run = std::make_unique<PowerRun>(options, std::move(disk), run_.oracle().AsOf(point.moment));
  PowerRun& run = *verdict->run;
  Random random(seed);
  std::string wrong;
  if (random.OneIn(2)) {
    // Loses power once more during the recovery, or soon after it.
    wrong = run.RunLife({.crash_after = 1 + random.Below(30), .steps = 4});
    verdict->crashed_again = run.crashed();
  }
  if (wrong.empty()) wrong = run.RunLife({.little_background = true});
  return wrong.empty() ? run.Finish() : wrong;
}

}  // namespace deut::power
