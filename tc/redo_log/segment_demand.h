// SegmentDemand: what the users of the redo log's segments say of them to the helper that allocates them (rule D5; implemented by LogSpace).
// Thread-safety: called on the helper's thread. Ownership: outlives the SegmentSet.
#ifndef TC_REDO_LOG_SEGMENT_DEMAND_H_
#define TC_REDO_LOG_SEGMENT_DEMAND_H_

#include <cstdint>

namespace deut::tc {

class SegmentDemand {
 public:
  virtual ~SegmentDemand() = default;
  // How many segments are wanted beyond the spares.
  virtual uint64_t Demand() = 0;
  // A spare is about to be removed. Its bytes are claimed first, as a commit claims them, so that no commit is granted them meanwhile.
  // False: they are promised, and the spare stays. After true, GiveBackSpare follows once the spare is counted no more.
  virtual bool ClaimSpare() = 0;
  virtual void GiveBackSpare() = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_SEGMENT_DEMAND_H_
