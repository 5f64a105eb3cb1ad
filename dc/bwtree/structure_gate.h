// StructureGate: keeps pages from being split (or merged) while a checkpoint takes down which image belongs to which page, so that the
// bounds of every image are those that its parent's image says.
//
// States: open, closed. Who is about to change the structure looks at the gate inside its reclamation guard; closed: it does not, and
//   the page grows until the gate is open again. Nobody waits. Who closes the gate waits until every guard held then was left: after
//   that no change is half done.
// Thread-safety: closed() from any thread; Close and Open by one thread at a time.
#ifndef DC_BWTREE_STRUCTURE_GATE_H_
#define DC_BWTREE_STRUCTURE_GATE_H_

#include <atomic>

#include "common/testing/test_points.h"

namespace deut::dc {

class StructureGate {
 public:
  // REQUIRES: a guard, which is held until the change is complete.
  bool closed() const { return closed_.load(std::memory_order_seq_cst) && !DEUT_OMITTED("checkpoint.gate"); }
  // The caller then waits for a grace period of the reclamation domain.
  void Close() { closed_.store(true, std::memory_order_seq_cst); }
  void Open() { closed_.store(false, std::memory_order_seq_cst); }

 private:
  std::atomic<bool> closed_{false};
};

}  // namespace deut::dc

#endif  // DC_BWTREE_STRUCTURE_GATE_H_
