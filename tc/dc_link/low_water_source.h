// LowWaterSource: the questions that the DC link asks the transaction table about low-water (rules L1, L2, S1).
// Thread-safety: all methods from any thread; none blocks on a transaction, on the log or on a DC. Ownership:
// outlives the link.
#ifndef TC_DC_LINK_LOW_WATER_SOURCE_H_
#define TC_DC_LINK_LOW_WATER_SOURCE_H_

#include "common/base/ids.h"

namespace deut::tc {

class LowWaterSource {
 public:
  virtual ~LowWaterSource() = default;

  // Returns the published low-water, which never goes back. No active transaction or snapshot is older, and none can
  // begin older. Every commit with a smaller timestamp has its commit LSN reserved (L1).
  virtual Timestamp low_water() const = 0;

  // Runs a round of low-water, or waits for the one that is running, and returns the low-water afterwards.
  virtual Timestamp AdvanceNow() = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LOW_WATER_SOURCE_H_
