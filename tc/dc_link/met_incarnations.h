// MetIncarnations: the incarnations of the DC that have answered Hello since this process began. The last one is the
// present one (rule X3). An incarnation that comes back after another one counts as a new one.
//
// It keeps the direct reads of all of them: a reader that has loaded a pointer may be about to use it. Those of an
// incarnation that has ended answer nothing.
// Thread-safety: none; the gate's mutex guards it. Ownership: shares the direct reads, until it ends.
#ifndef TC_DC_LINK_MET_INCARNATIONS_H_
#define TC_DC_LINK_MET_INCARNATIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/data_component.h"
#include "tc/dc_link/dc_identity.h"

namespace deut::tc {

class MetIncarnations {
 public:
  // A Hello was answered. Returns true if another incarnation has answered than the last time; then `reads` are its
  // direct reads, if it has any. The same incarnation keeps those that it has. REQUIRES: the answer names its
  // incarnation (CheckPeer).
  bool Meet(const HelloAnswer& hello, std::shared_ptr<DirectReads> reads);

  const DcIdentity& present() const { return present_; }
  // The direct reads of the present one; null: it has none.
  DirectReads* reads() const { return reads_.get(); }
  uint64_t count() const { return count_; }

 private:
  DcIdentity present_;
  std::shared_ptr<DirectReads> reads_;
  std::vector<std::shared_ptr<DirectReads>> earlier_reads_;
  uint64_t count_ = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_MET_INCARNATIONS_H_
