#include "tc/dc_link/low_water_rounds.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/ids.h"

namespace deut::tc {

bool LowWaterRounds::Run(MonotonicTime now) {
  const Timestamp before = low_water_.low_water();
  const Timestamp after = low_water_.AdvanceNow();
  DEUT_CHECK(after >= before);  // L1: shipped commits stay below it
  const bool moved = after > before;
  pause_ = moved ? first_pause_ : std::min(pause_ * 2, longest_pause_);
  next_ = now + pause_;
  return moved;
}

}  // namespace deut::tc
