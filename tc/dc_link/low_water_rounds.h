// LowWaterRounds: requests rounds of low-water while a commit waits for it (rule S1). The pause between two of them
// doubles while low-water stands still, up to a limit.
// Thread-safety: one thread. Ownership: the source outlives it.
#ifndef TC_DC_LINK_LOW_WATER_ROUNDS_H_
#define TC_DC_LINK_LOW_WATER_ROUNDS_H_

#include "common/runtime/time.h"
#include "tc/dc_link/low_water_source.h"

namespace deut::tc {

class LowWaterRounds {
 public:
  LowWaterRounds(LowWaterSource& low_water, Duration first_pause, Duration longest_pause)
      : low_water_(low_water), first_pause_(first_pause), longest_pause_(longest_pause), pause_(first_pause) {}

  // No commit is held back: the next pauses are short again.
  void Reset() { pause_ = first_pause_; }

  // A commit is held back: true if a round is to be run.
  bool Due(MonotonicTime now) const { return now >= next_; }
  // Runs a round. Returns true if low-water has moved.
  bool Run(MonotonicTime now);
  // When the next round is due.
  MonotonicTime next() const { return next_; }

 private:
  LowWaterSource& low_water_;
  const Duration first_pause_;
  const Duration longest_pause_;
  Duration pause_;
  MonotonicTime next_{};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LOW_WATER_ROUNDS_H_
