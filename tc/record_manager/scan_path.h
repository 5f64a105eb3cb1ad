// ScanPath: one batch of a scan, which is a range read (paper, section 4; rules R2, R3, R10, S4, S5, D1).
//
// A scan goes through the table stretch by stretch. For each stretch:
// 1. Raise, look, gather keys (scan_gather.h).
// 2. Only then ask the DC (S4: TC first, DC second).
// 3. Merge up to the bound that the answer covers. Each gathered key's value comes from its chain, as for a point
//    read. If the chain shows nothing visible any more, the scan asks the DC again, in one message for all such keys
//    of an answer. The larger (timestamp, sequence) wins, the DC on ties; a tombstone removes.
// The DC is asked in one of two ways. The first batch of a scan asks for a stretch in one message, because short
//   scans are one batch. A scan that goes on (resumable_scan.h) reads from a bulk scan of the DC, to which it grants
//   the stretches that are already gathered.
// Where the DC reads ahead, the scan gathers and grants ahead while earlier stretches are merged and consumed. The
//   window of its flow control (scan_flow.h) limits that. A writer in the way ahead (R8) only ends the gathering; it
//   is decided when the scan gets there. A scan for update (SIX) gathers and posts nothing ahead.
// A batch delivers a prefix of the range in scan order; `resume` is where the next batch starts. No guard is held
//   across a wait. Memory and time are bounded by the batch and the window.
// Thread-safety: one object per batch, used by one thread. Ownership: borrows everything but the state.
#ifndef TC_RECORD_MANAGER_SCAN_PATH_H_
#define TC_RECORD_MANAGER_SCAN_PATH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/resumable_scan.h"
#include "tc/record_manager/scan_gather.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class ScanPath {
 public:
  ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);

  // Runs the batch. Unless `keep_state`, it keeps nothing for a next batch.
  Status Run(bool keep_state = true);

  // For a scan that is run later (prefetched_scan.h): step 1 of the first stretch, and the DC's request, kept in
  // Transaction::prefetched_scan_. Returns false if something is in the way or would have to be waited for. REQUIRES: a
  // new scan, which announces no updates.
  bool BeginForPrefetch();

 private:
  // The most bytes that one message asks of the DC.
  static constexpr uint32_t kShortScanBytes = 256 << 10;

  bool ascending() const { return scan_.direction == Direction::kAscending; }
  bool Before(std::string_view a, std::string_view b) const { return ComesBefore(scan_.direction, a, b); }
  // The key that the scan has reached.
  std::string& position() { return ascending() ? state_->low : state_->high; }
  // The far end of its range; empty: the end of all keys.
  const std::string& far_end() const { return ascending() ? state_->high : state_->low; }
  // Returns whether nothing of the requested range is left.
  bool AtEnd() const;
  // Returns whether the scan has reached the end of the gathered keys.
  bool AtBound();
  bool GatheredToTheEnd() const;
  size_t KeysAhead() const { return state_->keys.size() - state_->next_key; }

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
  // Returns whether the limit of records is not reached yet.
  bool BelowRecordLimit() const;

  // Merges the next answer, or the rest of the present one.
  Status Step(const TableState& table);
  // Drops the answer, which has been merged to its end.
  void DropMergedAnswer();
  // Moves the scan to where an answer ends: the bound, or *covered, which is moved from.
  void Advance(bool to_the_bound, std::string* covered);
  // Step 1, for the stretch at the bound. `ahead`: the scan has not reached it. *blocked: nothing can be gathered
  // there now.
  Status GatherNext(const TableState& table, bool ahead, bool* blocked);
  // Returns whether it holds a permit.
  bool AcquireStreamPermit();
  // The most gathered keys that a stretch may have.
  size_t MaxGatheredKeys() const;
  // The most keys whose values are fetched at once.
  size_t MaxResolvedKeys() const;

  // Steps 1 and 2. Leaves no answer to be merged if all of it is in the batch already.
  Status Ask(const TableState& table);
  // Step 2, in one message. An answer for which nothing is gathered is handed on as it is.
  Status AskOnce(const TableState& table);
  // Makes the request for the gathered part of [low, high).
  void MakeRequest(std::string_view low, std::string_view high, DataRequest* request) const;
  Status AskDc(const TableState& table, DataRequest* request);
  // Checks that the DC has answered what it was asked.
  Status CheckAnswer(const DataRequest& request, std::string_view low, std::string_view high) const;
  // Returns about how many bytes the answer has at most, if its records are like those before. REQUIRES: the batch
  // has some.
  uint64_t ExpectedBytes(const DataRequest& request) const;
  Status AcceptAnswer(DataRequest* request);
  // Step 2, if it was done ahead.
  Status UsePrefetchedAnswer();
  // Step 2, from the bulk scan.
  Status AskStream(const TableState& table);
  // Gathers and grants for the present batch or, if `ahead`, for the next ones.
  Status GatherAndGrant(const TableState& table, bool ahead);
  // *moved: the bound has moved.
  Status GatherAhead(const TableState& table, uint64_t window, bool* moved);
  Status GrantTo(std::string_view bound, uint64_t window, bool moved);
  uint64_t Window(bool ahead);
  // Estimates the bytes that are gathered and not taken.
  uint64_t AheadBytes() const;
  // Drops the ends of the stretches that the answer has passed.
  void DropPassedStretchEnds();

  // Step 3.
  // Fetches what the chains show of keys [begin, *piece), or of fewer if they fill the batch: then *piece is where it
  // stopped.
  Status Resolve(const TableState& table, size_t begin, size_t* piece);
  // Finds where the keys' chains begin, and prefetches what a look at each will need. REQUIRES: a guard.
  static constexpr size_t kFetchedAtOnce = 16;
  using Entries = std::array<RecordEntry*, kFetchedAtOnce>;
  void FetchChains(const TableState& table, absl::Span<GatheredKey> keys, Entries* entries);
  // Notes what the chain shows of the key. Returns the bytes that it adds to the batch.
  size_t ResolveOne(const RecordEntry* entry, GatheredKey* gathered);
  // S9: looks in spilled runs for those of [begin, *piece) that the chains do not show. Large values make it stop
  // early and lower *piece.
  Status FindSpilled(const TableState& table, size_t begin, size_t* piece);
  // S9: reads back those keys' values that are paged out, each file from its beginning to its end.
  Status ReadBack(const TableState& table, absl::Span<GatheredKey> keys);
  // S5: asks the DC again for those keys that nothing in the TC shows.
  Status ReaskDc(const TableState& table, absl::Span<GatheredKey> keys);
  // Hands on the rest of the answer as it is, unseen, if it fits. REQUIRES: no gathered key is left within what it
  // covers.
  bool AppendRestOfAnswer();
  // Returns whether `records` more records of `bytes` bytes in all fit.
  bool AllFit(size_t records, size_t bytes) const;
  // Merges the answer with the keys before `end`. Unless `last`, it stops before the key at `end`, which is not
  // resolved yet.
  void Merge(size_t end, bool last);
  void Emit(std::string_view key, std::string_view value, Version version);
  // Returns whether the batch would be full with that many more records and bytes.
  bool Full(size_t more_records, size_t more_bytes) const;
  // Returns whether the room left is too small to be worth a request.
  bool NearlyFull() const;
  // Ends the batch after `key`, and sets where the scan goes on.
  void StopAfter(std::string_view key);

  Engine& engine_;
  Transaction& txn_;
  const Operation& scan_;
  OperationResult* const result_;
  const Deadline deadline_;
  ReaderView view_;
  ScanGather gather_;
  std::unique_ptr<ResumableScan> state_;
  bool resumed_ = false;           // the batch continues a resumable scan
  bool reached_last_key_ = false;  // the end of all keys in this direction is reached
  bool full_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_PATH_H_
