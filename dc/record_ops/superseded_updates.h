// SupersededUpdates: finds, among updates that are about to be applied together, those that a later update of the
// same key supersedes.
//
// Rule S3 allows the DC to omit them: all updates that it receives are durable, committed and below low-water (S1).
// No other part can observe the omission:
// - The run belongs to one batch. The applied position passes the run as a whole, once the later update is in the
//   tree. A batch that fails in between is sent again. A checkpoint reads its position before or after that.
// - Every reader of the DC has a timestamp above both updates, so it wants the later one. It is open anyway which
//   updates of a batch a reader finds meanwhile, because several threads apply them. The TC has all of them in its
//   chains until the batch is acknowledged (S4, S5, S6).
// - If the earlier update is sent again, it loses to the later one, or to the flat timestamp that the later one's
//   tombstone has left (X1, X2).
// A run contains no low-water record (X1) and no creation or drop of a table (T1).
// Its hash table lies on the stack; a map of Abseil would allocate for every run.
// Thread-safety: all methods may be called from any thread. Ownership: none.
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
  // At most this many updates, at the end of a run, are examined.
  static constexpr size_t kMaxExamined = 2048;

  // Moves the updates that must be applied to the front, in their order, and returns their number. It does not find
  // every superseded update: if runs contain few of them, it examines only some of the runs.
  size_t MoveNeededToFront(std::span<LogEntryView> updates);

 private:
  std::atomic<uint32_t> runs_to_skip_{0};  // number of coming runs that are not examined
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_SUPERSEDED_UPDATES_H_
