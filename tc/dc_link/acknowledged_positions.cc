#include "tc/dc_link/acknowledged_positions.h"

#include <algorithm>

#include "common/base/check.h"

namespace deut::tc {

void AcknowledgedPositions::Replace(Position applied, Position stable) {
  DEUT_CHECK(stable <= applied);
  applied_.store(applied, std::memory_order_seq_cst);
  stable_.store(stable, std::memory_order_seq_cst);
}

void AcknowledgedPositions::Raise(Position applied, Position stable) {
  DEUT_CHECK(stable <= applied);
  // In this order, so that a thread that loads `stable` and then `applied` finds no stable update unapplied.
  applied_.store(std::max(this->applied(), applied), std::memory_order_seq_cst);
  stable_.store(std::max(this->stable(), stable), std::memory_order_seq_cst);
  DEUT_CHECK(this->stable() <= this->applied());
}

}  // namespace deut::tc
