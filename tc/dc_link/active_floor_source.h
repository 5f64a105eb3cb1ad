// ActiveFloorSource: what the computation of redo start asks of the transaction table (rule S2).
// Thread-safety: any thread.
#ifndef TC_DC_LINK_ACTIVE_FLOOR_SOURCE_H_
#define TC_DC_LINK_ACTIVE_FLOOR_SOURCE_H_

#include "common/base/ids.h"

namespace deut::tc {

class ActiveFloorSource {
 public:
  virtual ~ActiveFloorSource() = default;

  // A lower bound of the first-record LSN of every transaction that is active now or begins later. Reads the log's tail first, then
  // the transactions' published bounds: a transaction publishes a bound (the tail it saw) before its first reservation, and
  // takes it back only when its commit LSN is reserved or it is aborted.
  virtual Lsn OldestFirstRecord() const = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_ACTIVE_FLOOR_SOURCE_H_
