// AcknowledgedPositions: how far the DC's present incarnation has applied the log, and how far that is stable, as it
// said last (rules X3, S2).
//
// stable <= applied. Both only rise while the incarnation lasts. When another one is found both are replaced, and may
// go back: what an earlier incarnation has acknowledged does not count for it.
// Thread-safety: applied and stable from any thread, latch-free. Each is loaded by itself, so a pair of loads may mix
// two acknowledgements. The rest by one thread at a time.
#ifndef TC_DC_LINK_ACKNOWLEDGED_POSITIONS_H_
#define TC_DC_LINK_ACKNOWLEDGED_POSITIONS_H_

#include <atomic>

#include "common/base/ids.h"

namespace deut::tc {

class AcknowledgedPositions {
 public:
  Position applied() const { return applied_.load(std::memory_order_seq_cst); }
  Position stable() const { return stable_.load(std::memory_order_seq_cst); }

  // Another incarnation was found, which has these. REQUIRES: stable <= applied.
  void Replace(Position applied, Position stable);

  // The same incarnation has these, or has told more before: acknowledgements overtake the answer to Hello, and arrive
  // twice. REQUIRES: stable <= applied.
  void Raise(Position applied, Position stable);

 private:
  std::atomic<Position> applied_{Position{}};
  std::atomic<Position> stable_{Position{}};
  static_assert(std::atomic<Position>::is_always_lock_free);
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_ACKNOWLEDGED_POSITIONS_H_
