// ScanPath: one batch of a scan, which is a range read (paper, section 4; rules R2, R3, R10, S4, S5, D1).
//
// A scan goes through the table stretch by stretch. For each stretch:
// 1. Raise, look, gather keys (scan_gather.h).
// 2. Only then ask the DC (S4: TC first, DC second).
// 3. Merge up to the bound that the answer covers. Each gathered key's value comes from its chain, as for a point read
//    (scan_resolve.h). If the chain shows nothing visible any more, the scan asks the DC again, in one message for all
//    such keys of an answer. The merge itself asks nobody (tc/scan/scan_merge.h).
// The DC is asked in one of two ways. The first batch of a scan asks for a stretch in one message (scan_ask.h), because
//   short scans are one batch. A scan that goes on (tc/scan/resumable_scan.h) reads from a bulk scan of the DC, to which
//   it grants the stretches that are already gathered (scan_ahead.h).
// A batch delivers a prefix of the range in scan order; `resume` is where the next batch starts. No guard is held
//   across a wait. Memory is bounded by the batch and the window.
// The work of a batch is bounded, too. Where all records were deleted, an answer of the DC holds no record, so the
//   limits of records and bytes end nothing. So a batch also ends after kMaxStepsPerBatch answers. It may hold no
//   record then, and is not the end of the scan. The ranges that it has passed are raised like any others (R2). Between
//   two answers the batch checks its deadline.
// Thread-safety: one object per batch, used by one thread. Ownership: borrows everything but the state.
#ifndef TC_RECORD_MANAGER_SCAN_PATH_H_
#define TC_RECORD_MANAGER_SCAN_PATH_H_

#include <cstddef>
#include <memory>

#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/scan_ask.h"
#include "tc/record_manager/scan_gather.h"
#include "tc/record_manager/transaction.h"
#include "tc/scan/resumable_scan.h"

namespace deut::tc {

class ScanPath {
 public:
  ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);
  ScanPath(const ScanPath&) = delete;
  ScanPath& operator=(const ScanPath&) = delete;

  // Runs the batch. Unless `keep_state`, it keeps nothing for a next batch.
  Status Run(bool keep_state = true);

  // For a scan that is run later (prefetched_scan.h): step 1 of the first stretch, and the DC's request, kept in
  // Transaction::prefetched_scan_. Returns false if something is in the way or would have to be waited for. REQUIRES: a
  // new scan, which announces no updates.
  bool BeginForPrefetch();

 private:
  // Takes the transaction's resumable scan that this batch continues, or else a new one.
  void AcquireState();
  // Parts of AcquireState for a new scan: all but its bounds, and its bounds.
  void AcquireNewState();
  void CopyBounds();
  // Puts the scan among the transaction's resumable scans.
  void KeepState();
  // Most scans are one answer of the DC with nothing of the TC in it. Such a scan is over after steps 1 and 2, and
  // keeps no state. Any other continues with what those steps have found. REQUIRES for RunAsOneAnswer:
  // IsSingleAnswerCandidate.
  bool IsSingleAnswerCandidate() const;
  Status RunAsOneAnswer(const TableState& table, bool* over);

  // Returns whether the batch has come further than where it began.
  bool HasMoved() const;
  // DEADLINE_EXCEEDED: the call's deadline has passed.
  Status CheckDeadline() const;
  // Merges the next answer, or the rest of the present one.
  Status Step(const TableState& table);
  // Steps 1 and 2. Leaves no answer to be merged if all of it is in the batch already.
  Status Ask(const TableState& table);
  // Takes an answer that was checked. An answer for which nothing is gathered is handed on as it is.
  void AcceptAnswer(DataRequest* request);
  // Step 2, if it was done ahead.
  Status UsePrefetchedAnswer();
  // The scan has moved to the end of an answer: notes whether the batch is full.
  void NoteAdvanced() { full_ = call_.room.NearlyFull() || call_.room.Full(0, 0); }
  // The most keys whose values are fetched at once.
  size_t MaxResolvedKeys() const;

  Engine& engine_;
  Transaction& txn_;
  const Operation& scan_;
  OperationResult* const result_;
  const ScanCall call_;
  const ScanAsk ask_;
  ReaderView view_;
  ScanGather gather_;
  std::unique_ptr<ResumableScan> state_;
  bool resumed_ = false;  // the batch continues a resumable scan
  bool full_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_PATH_H_
