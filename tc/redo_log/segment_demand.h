// SegmentDemand: tells the helper that allocates the redo log's segments how many the commits need (rule D5).
// LogSpace implements it.
// Thread-safety: called on the helper's thread. Ownership: outlives the SegmentSet.
#ifndef TC_REDO_LOG_SEGMENT_DEMAND_H_
#define TC_REDO_LOG_SEGMENT_DEMAND_H_

#include <cstdint>

namespace deut::tc {

class SegmentDemand {
 public:
  virtual ~SegmentDemand() = default;
  // The number of segments that are wanted beyond the spares.
  virtual uint64_t Demand() = 0;
  // The helper calls it before it removes a spare. It claims the spare's bytes as a commit does, so that no commit is
  // granted them meanwhile. False: the bytes are promised, and the spare stays. After true, the helper calls
  // GiveBackSpare once the spare is no longer counted.
  virtual bool ClaimSpare() = 0;
  virtual void GiveBackSpare() = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_SEGMENT_DEMAND_H_
