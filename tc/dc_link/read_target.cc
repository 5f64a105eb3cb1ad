#include "tc/dc_link/read_target.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

void ReadTarget::RequireAllSent(Position acknowledged) {
  DEUT_CHECK(acknowledged <= ever_sent_);
  // At the first Hello this process has sent nothing; SetStartTarget covers what earlier ones sent.
  required_ = DEUT_OMITTED("X3.gate_on_sent") ? acknowledged : ever_sent_;
}

void ReadTarget::SetStartTarget(Position target) {
  DEUT_CHECK(!start_target_known_);  // a second one would close the gate to an incarnation that is read
  start_target_known_ = true;
  if (DEUT_STEP("X4.wait_applied")) required_ = std::max(required_, target);
  ever_sent_ = std::max(ever_sent_, target);
}

void ReadTarget::RaiseEverSent(Position to) { ever_sent_ = std::max(ever_sent_, to); }

bool ReadTarget::ReachedBy(Position applied) const {
  DEUT_CHECK(applied <= ever_sent_);
  DEUT_CHECK(required_ <= ever_sent_);  // otherwise no incarnation could ever reach it
  const bool known = start_target_known_ || DEUT_OMITTED("X4.wait_applied");
  return known && applied >= required_;
}

}  // namespace deut::tc
