// LogSpace: keeps account of the free room in the log's allocated segments, and of the commits that have claimed it.
//
// Rule D5, space before bytes. A transaction's records are appended only after room for all of them was claimed, in
// allocated segments.
//   1 Claim: one compare-and-swap adds the commit's bytes to the ring's `claimed`. It is tried only if the allocated
//     room suffices for all claimed and unwritten bytes, for this commit, and for the reserve. The loser of the swap
//     looks again.
//   2 Append (log_ring.h). The log's own records, which let space be freed, are appended without a claim. They move
//     `claimed` themselves and are never refused.
//   3 A commit that fails between 1 and 2 gives its claim back.
// Counter-example without 1 (look, then append): 64 MiB are free. Two commits of 40 MiB look, both see room, and both
// append. Both are visible (D4).
//   The second one's blocks find no segment. On a full disk they never will: the REDO_START that would let segments
//   be freed stands behind them in the log.
// A commit of several records (chunks) claims a surplus beyond its bytes. Each record may get a block of its own,
// with header and padding. And the rest of a segment may be too short for the next record.
//   The surplus is kept until the log thread has taken the commit's last record. If the claim does not fit, the
//   commit waits while the helper allocates segments for it (Demand). The disk must have the room.
// Demand: segments are kept allocated for all claimed bytes and the reserve until the log thread has taken these
// bytes. Bytes in the ring count as well. A ring of several segments may hold a whole large commit, and the segments
// of that commit are promised all the same.
//   A spare is removed only after its bytes were claimed as by a commit (segment_demand.h).
// Counter-example without that claim: the helper finds five spares where four are wanted; a commit claims all five;
// the helper removes one. On a full disk the commit's last blocks never find a segment, and the records that would
// let segments be freed stand behind them.
// Order of looks: the log thread's consumed position, the open segment's room, the number of spares. Each step of the
// log thread moves bytes from a later one of these to an earlier one. So bytes that move between two looks are
// missing and never counted twice, and the answer errs to "no".
// For good: a commit that needs more than the whole file system gets INVALID_ARGUMENT, because no retry can help it.
// Thread-safety: all methods from any thread. A claim of one record that fits at once takes no lock. The mutex is not
// held over input or output.
// Ownership: all constructor arguments outlive it.
#ifndef TC_REDO_LOG_LOG_SPACE_H_
#define TC_REDO_LOG_LOG_SPACE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/testing/test_points.h"
#include "tc/log_format/transaction_records.h"
#include "tc/redo_log/log_failure.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_writer.h"
#include "tc/redo_log/segment_demand.h"
#include "tc/redo_log/segment_set.h"
#include "tc/redo_log/space_claim.h"

namespace deut::tc {

struct LogSpaceOptions {
  std::string directory;
  uint64_t segment_bytes = 0;
  uint64_t reserve_bytes = 0;  // RedoLogOptions::space_reserve_bytes
  uint64_t chunk_bytes = 0;
};

class LogSpace final : public SegmentDemand {
 public:
  LogSpace(LogSpaceOptions options, Runtime& runtime, Storage& storage, LogRing& ring, const LogWriter& writer,
           SegmentSet& segments, const LogFailure& failure);

  // As RedoLog::ReserveSpace.
  Result<SpaceClaim> Claim(const Footprint& footprint, Deadline deadline);
  // As RedoLog::CheckSpace.
  Status Check(uint64_t bytes);

  // Allocated and unwritten bytes: the open segment's room and the spares.
  uint64_t free_bytes() const;

  // Called by SegmentSet. Demand counts the commits that are being appended or wait for room.
  uint64_t Demand() override;
  bool ClaimSpare() override { return TryClaim(usable_bytes_); }
  void GiveBackSpare() override { GiveBack(usable_bytes_); }
  // Called after segments were added, or could not be.
  void Changed();

 private:
  friend class SpaceClaim;
  struct Surplus {
    Lsn end;
    uint64_t bytes;
  };
  struct Figures {
    uint64_t free = 0, pending = 0, reserve = 0;
    bool full = false;
  };

  Status CheckRunning() const;
  // True if `bytes` more than `claimed` have room.
  bool Fits(uint64_t claimed, uint64_t bytes, Figures* figures) const;
  bool TryClaim(uint64_t bytes);
  Status Refusal(uint64_t bytes) const;
  // Returns the surplus of a commit with chunks.
  uint64_t SurplusOf(const Footprint& footprint) const;
  Status WaitAndClaim(uint64_t bytes, Deadline deadline);
  Status WaitForSegments(uint64_t bytes, Deadline deadline);
  uint64_t DemandNow() const;
  // Checks that the disk has room for the segments that are wanted. RESOURCE_EXHAUSTED, with the figures, if it has
  // not; INVALID_ARGUMENT if it never will.
  Status CheckDisk(uint64_t bytes) const DEUT_EXCLUDES(mutex_);
  void GiveBack(uint64_t bytes) {
    if (DEUT_STEP("D5.claim")) ring_.GiveBackClaim(bytes);
  }
  void KeepSurplus(Lsn end, uint64_t bytes);
  // Gives back the surplus of the commits that the log thread has taken.
  void GiveBackTakenSurplus();
  void GiveBackTakenSurplusLocked() DEUT_REQUIRES(mutex_);

  const LogSpaceOptions options_;
  const uint64_t usable_bytes_;  // usable bytes of a segment
  Runtime& runtime_;
  Storage& storage_;
  LogRing& ring_;
  const LogWriter& writer_;
  SegmentSet& segments_;
  const LogFailure& failure_;

  std::atomic<uint64_t> waiting_bytes_{0};  // bytes of the claims that wait for segments
  Mutex mutex_;
  CondVar changed_;
  std::deque<Surplus> surplus_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_SPACE_H_
