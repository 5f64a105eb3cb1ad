// ReadTarget: the position that an incarnation of the DC must have applied before it is read (rules X3, X4).
//
// The required position is fixed when a new incarnation is found. It is the highest position ever sent to earlier ones:
// sent, not acknowledged, because the DC may have applied a batch, and a reader may have seen it there, whether or not
// the acknowledgement arrives. At TC start it is the end of the recovered log, because an earlier TC process may have
// sent all of that. So required <= ever sent.
// Thread-safety: none; the gate's mutex guards it.
#ifndef TC_DC_LINK_READ_TARGET_H_
#define TC_DC_LINK_READ_TARGET_H_

#include "common/base/ids.h"

namespace deut::tc {

class ReadTarget {
 public:
  // X3: another incarnation was found. From now on everything that was ever sent is required. `acknowledged`: the last
  // position that the one before has acknowledged, which is too low. REQUIRES: it was sent.
  void RequireAllSent(Position acknowledged);
  // X4: `target` is the last position of the recovered log. Nothing is enough before this is known. Called once.
  void SetStartTarget(Position target);
  // The DC may have applied everything up to `to`, now or later.
  void RaiseEverSent(Position to);

  // True if an incarnation that has applied this may be read. REQUIRES: no more than was ever sent.
  bool ReachedBy(Position applied) const;

  bool start_target_known() const { return start_target_known_; }
  Position required() const { return required_; }
  Position ever_sent() const { return ever_sent_; }

 private:
  Position required_;
  Position ever_sent_;
  bool start_target_known_ = false;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_READ_TARGET_H_
