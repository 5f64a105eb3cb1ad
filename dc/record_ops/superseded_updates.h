// SupersededUpdates: of updates that are about to be applied together, those that a later one of the same key makes superfluous.
//
// Rule S3 allows to leave them out: all that the DC gets is durable, committed and below low-water (S1). Why nothing can tell:
//   - the run is a part of one batch, and the applied position passes it as a whole, once the later update is in the tree; a batch that fails in
//     between is sent again. A checkpoint's position was read before or after that;
//   - whoever may read the DC has a timestamp above both, so it wants the later one; which of a batch's updates it finds meanwhile is open anyway, as
//     several threads apply them, and the TC has them all in its chains until the batch is acknowledged (S4, S5, S6);
//   - if the earlier one is sent again it loses to the later one, or to the flat timestamp that its tombstone has left (X1, X2).
// A run holds no low-water record (X1), no creation or drop of a table (T1).
// Thread-safety: all methods from any thread. Ownership: of nothing.
#ifndef DC_RECORD_OPS_SUPERSEDED_UPDATES_H_
#define DC_RECORD_OPS_SUPERSEDED_UPDATES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/log_batch.h"

namespace deut::dc {

class SupersededUpdates {
 public:
  // Of a larger run only so many at the end are looked at.
  static constexpr size_t kMost = 2048;

  // Brings those that are to be applied to the front, in their order, and answers how many they are. Not every one that is superfluous is found:
  // where few are, it is seldom looked for them.
  size_t MoveBack(std::span<LogEntryView> updates);

 private:
  std::atomic<uint32_t> unlooked_{0};  // runs to come that are left as they are
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_SUPERSEDED_UPDATES_H_
