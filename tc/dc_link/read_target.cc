#include "tc/dc_link/read_target.h"

#include <algorithm>

#include "common/testing/test_points.h"

namespace deut::tc {

void ReadTarget::RequireAllSent(Position acknowledged) {
  // At the first Hello this process has sent nothing; SetStartTarget covers what earlier ones sent.
  required_ = DEUT_OMITTED("X3.gate_on_sent") ? acknowledged : ever_sent_;
}

void ReadTarget::SetStartTarget(Position target) {
  start_target_known_ = true;
  if (DEUT_STEP("X4.wait_applied")) required_ = std::max(required_, target);
  ever_sent_ = std::max(ever_sent_, target);
}

void ReadTarget::RaiseEverSent(Position to) { ever_sent_ = std::max(ever_sent_, to); }

bool ReadTarget::ReachedBy(Position applied) const {
  const bool known = start_target_known_ || DEUT_OMITTED("X4.wait_applied");
  return known && applied >= required_;
}

}  // namespace deut::tc
