// LowWaterSource: what the dc link asks of the transaction table about the low-water (rules L1, L2, S1).
// Thread-safety: all methods from any thread; none blocks on a transaction, on the log or on a DC.
#ifndef TC_DC_LINK_LOW_WATER_SOURCE_H_
#define TC_DC_LINK_LOW_WATER_SOURCE_H_

#include "common/base/ids.h"

namespace deut::tc {

class LowWaterSource {
 public:
  virtual ~LowWaterSource() = default;

  // The published low-water: no active transaction or snapshot is older, none can begin older, and every commit with a smaller
  // timestamp has its commit LSN reserved (L1). Never goes back.
  virtual Timestamp low_water() const = 0;

  // Runs a round on demand (or waits for the one that is running) and returns the low-water afterwards.
  virtual Timestamp AdvanceNow() = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LOW_WATER_SOURCE_H_
