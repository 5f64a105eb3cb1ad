// ActiveFloorSource: the question that the computation of the redo start asks the transaction table (rule S2).
// Thread-safety: any thread. Ownership: outlives the link.
#ifndef TC_DC_LINK_ACTIVE_FLOOR_SOURCE_H_
#define TC_DC_LINK_ACTIVE_FLOOR_SOURCE_H_

#include "common/base/ids.h"

namespace deut::tc {

class ActiveFloorSource {
 public:
  virtual ~ActiveFloorSource() = default;

  // Returns a lower bound of the first-record LSN of every transaction that is active now or begins later. It reads
  // the log's tail first, then the transactions' published bounds. A transaction publishes a bound (the tail it saw)
  // before its first reservation. It takes the bound back only when its commit LSN is reserved or it is aborted.
  virtual Lsn OldestFirstRecord() const = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_ACTIVE_FLOOR_SOURCE_H_
