// SmoGate: holds back structure modification operations (SMOs: splits and merges of pages) while a checkpoint records
// which image belongs to which page. So the bounds of every image are those that its parent's image states.
//
// States: open, closed.
// - A thread that is about to begin an SMO reads the gate inside its reclamation guard. If the gate is closed,
//   the thread leaves the structure alone, and the page grows until the gate is open again. No thread waits.
// - The thread that closes the gate waits until all guards held at that moment have ended. After that no change is
//   half done.
// Thread-safety: closed() from any thread; Close and Open by one thread at a time. Ownership: none.
#ifndef DC_BWTREE_SMO_GATE_H_
#define DC_BWTREE_SMO_GATE_H_

#include <atomic>

#include "common/testing/test_points.h"

namespace deut::dc {

class SmoGate {
 public:
  // REQUIRES: a guard, which the caller holds until the change is complete.
  bool closed() const { return closed_.load(std::memory_order_seq_cst) && DEUT_STEP("checkpoint.gate"); }
  // After Close, the caller waits for a grace period of the reclamation domain.
  void Close() { closed_.store(true, std::memory_order_seq_cst); }
  void Open() { closed_.store(false, std::memory_order_seq_cst); }

 private:
  std::atomic<bool> closed_{false};
};

}  // namespace deut::dc

#endif  // DC_BWTREE_SMO_GATE_H_
