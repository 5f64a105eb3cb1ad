#include "integration/power/activity_holder.h"

#include <vector>

#include "common/runtime/random.h"
#include "common/testing/flight_board.h"

namespace deut::power {
namespace {

using testing::FlightHold;
using testing::FlightSlot;

constexpr Duration kLook = microseconds(50);
constexpr Duration kMaxHold = milliseconds(3);
// An activity that is not held passes freely for at most this long.
constexpr Duration kOpen = milliseconds(1);

// The hold of one activity. It draws whether and where to wait for a passer, holds the passer, releases it, and draws
// again.
class Held {
 public:
  Held(const char* name, bool always) : slot_(testing::FindOrAddFlightSlot(name)), always_(always) {}
  ~Held() { slot_.hold.store(FlightHold::kNowhere); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void Look(const FaultyDisk& disk, MonotonicTime now, Random& random) {
    const bool in_flight = slot_.begun.load() != slot_.ended.load();
    switch (state_) {
      case State::kOpen:
        if (in_flight || now < until_) return;
        if (!always_ && random.OneIn(3)) {
          until_ = now + kOpen;
          return;
        }
        slot_.hold.store(random.OneIn(2) ? FlightHold::kAtBeginning : FlightHold::kAtEnd);
        state_ = State::kArmed;
        return;
      case State::kArmed:
        if (!in_flight) return;
        until_ = now + kMaxHold;
        until_changes_ = disk.counts().changing + 1 + random.Below(4);
        state_ = State::kHolding;
        return;
      case State::kHolding:
        if (now < until_ && disk.counts().changing < until_changes_) return;
        slot_.hold.store(FlightHold::kNowhere);
        state_ = State::kOpen;
        return;
    }
  }

 private:
  enum class State { kOpen, kArmed, kHolding };

  FlightSlot& slot_;
  const bool always_;  // a rare activity: every occurrence is held
  State state_ = State::kOpen;
  MonotonicTime until_{};
  uint64_t until_changes_ = 0;
};

}  // namespace

ActivityHolder::ActivityHolder(const FaultyDisk& disk, uint64_t seed) : disk_(disk) {
  if (!testing::kFlightsAreCounted) return;
  thread_ = RealRuntime().StartThread("holder", [this, seed] { Run(seed); });
}

ActivityHolder::~ActivityHolder() {
  stop_.store(true);
  thread_.reset();
}

void ActivityHolder::Run(uint64_t seed) {
  std::vector<std::unique_ptr<Held>> all;
  for (const char* const often : {"dc.split", "dc.merge", "dc.page_load", "dc.swap_out", "dc.redo"})
    all.push_back(std::make_unique<Held>(often, /*always=*/false));
  for (const char* const rare : {"dc.root_change", "dc.table_create", "dc.table_drop", "dc.table_free"})
    all.push_back(std::make_unique<Held>(rare, /*always=*/true));
  Random random(seed);
  Runtime& runtime = RealRuntime();
  while (!stop_.load()) {
    for (const auto& held : all) held->Look(disk_, runtime.Now(), random);
    runtime.SleepUntil(runtime.Now() + kLook);
  }
}

}  // namespace deut::power
