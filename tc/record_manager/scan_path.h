// Range reads: one batch of a scan (paper, section 4; rules R2, R3, R10, S4, S5, D1).
//
// A scan goes through the table stretch by stretch. For each:
//   1. raise, look, gather keys (scan_gather.h);
//   2. only then ask the DC (S4: TC first, DC second);
//   3. merge up to the bound that the answer covers: each gathered key's value comes from its chain, as for a point read; if the chain shows
//      nothing visible any more, the key is asked of the DC again, all such keys of an answer in one message. The larger
//      (timestamp, sequence) wins, the DC on ties; a tombstone removes.
// The DC is asked in one of two ways. The first batch of a scan asks for a stretch in one message, as short scans are one batch. A scan that goes on
//   (standing_scan.h) reads from a bulk scan of the DC, to which it grants the stretches that are gathered already: where the DC reads ahead, those
//   that the scan will come to within the window of its flow control (scan_flow.h) are gathered and granted while those before are merged and
//   consumed. A writer who is in the way ahead (R8) only ends what is gathered, and is decided when the scan comes there.
//   For update (SIX) a scan gathers and posts nothing ahead.
// What is delivered is a prefix of the range in scan order; `resume` is where the next batch starts. No guard is held across a wait.
// Memory and time are bounded by the batch and the window.
// Thread-safety: one object per batch, used by one thread.
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
#include "tc/record_manager/scan_gather.h"
#include "tc/record_manager/standing_scan.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class ScanPath {
 public:
  ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);

  // Unless it `stands`, nothing is kept for a next batch.
  Status Run(bool stands = true);

  // Step 1 of the first stretch, and what the DC is to be asked then (Transaction::begun_scan_): for a scan that is run later (begun_scan.h). False:
  // not now, as something is in the way, or would have to be waited for. REQUIRES: a new scan, which announces no updates.
  bool BeginAhead();

 private:
  // What one message asks of the DC at most.
  static constexpr uint32_t kShortScanBytes = 256 << 10;

  bool ascending() const { return scan_.direction == Direction::kAscending; }
  bool Before(std::string_view a, std::string_view b) const { return ComesBefore(scan_.direction, a, b); }
  // Where the scan stands.
  std::string& position() { return ascending() ? state_->low : state_->high; }
  // The far end of its range; empty = of all keys.
  const std::string& far_end() const { return ascending() ? state_->high : state_->low; }
  // Nothing of the requested range is left.
  bool AtEnd() const;
  // Nothing is gathered of what comes next.
  bool AtBound();
  bool GatheredToTheEnd() const;
  size_t KeysAhead() const { return state_->keys.size() - state_->next_key; }

  // The transaction's standing scan that this is a batch of, or a new one; and where it is put afterwards.
  void TakeState();
  // The new one's: without its bounds, and with them.
  void TakeNewState();
  void TakeBounds();
  void KeepState();
  // Most scans are one answer of the DC with nothing of the TC in it. Such a one is over after steps 1 and 2, and keeps no state; any other
  // goes on with what they have found. REQUIRES of the second: the first.
  bool MayBeOneAnswer() const;
  Status RunAsOneAnswer(const TableState& table, bool* over);
  // Its limit of records is not reached.
  bool MayGoOn() const;

  // Merges the next answer, or what is left of it.
  Status Step(const TableState& table);
  // The answer has been merged to its end.
  void PassAnswer();
  // The scan stands where an answer ends: at the bound, or at *covered, which is taken.
  void Advance(bool to_the_bound, std::string* covered);
  // Step 1, for the stretch at the bound. `ahead`: one that the scan has not come to; *blocked: nothing can be gathered there now.
  Status GatherNext(const TableState& table, bool ahead, bool* blocked);
  // True: a permit is taken.
  bool MayOpenStream();
  // Gathered keys that a stretch may have.
  size_t MostKept() const;
  // Keys whose values are fetched at once.
  size_t MostResolved() const;

  // Steps 1 and 2. Without an answer to be merged, if all of it is in the batch already.
  Status Ask(const TableState& table);
  // Step 2, in one message. What nothing is gathered for goes on as it is.
  Status AskOnce(const TableState& table);
  // For what is left of [low, high) as far as it is gathered.
  void MakeRequest(std::string_view low, std::string_view high, DataRequest* request) const;
  Status AskDc(const TableState& table, DataRequest* request);
  // That the DC has answered what it was asked.
  Status CheckAnswer(const DataRequest& request, std::string_view low, std::string_view high) const;
  // What its answer holds at most, if its records are like those before. REQUIRES: some are in the batch.
  uint64_t ExpectedBytes(const DataRequest& request) const;
  Status TakeAnswer(DataRequest* request);
  // Step 2, which was done ahead.
  Status TakeFirst();
  // Step 2, from the bulk scan.
  Status AskStream(const TableState& table);
  // Gathers and grants what is needed now, or, `ahead`, what will be.
  Status Extend(const TableState& table, bool ahead);
  // *moved: the bound has.
  Status GatherAhead(const TableState& table, uint64_t window, bool* moved);
  Status GrantTo(std::string_view bound, uint64_t window, bool moved);
  uint64_t Window(bool ahead);
  // About so many bytes are gathered and not taken.
  uint64_t AheadBytes() const;
  void PassEnds();

  // Step 3.
  // Fetches what the chains show of keys [begin, *piece), or of fewer if they fill the batch: then *piece is where it stopped.
  Status Resolve(const TableState& table, size_t begin, size_t* piece);
  // Where their chains begin; what a look at each will need is on its way into the processor's cache. REQUIRES: a guard.
  static constexpr size_t kFetchedAtOnce = 16;
  using Entries = std::array<RecordEntry*, kFetchedAtOnce>;
  void FetchChains(const TableState& table, absl::Span<GatheredKey> keys, Entries* entries);
  // What the look at the chain shows of the key. Answers the bytes it adds to the batch.
  size_t ResolveOne(const RecordEntry* entry, GatheredKey* gathered);
  // S9: what the chains of [begin, *piece) do not show; of large values fewer keys.
  Status FindSpilled(const TableState& table, size_t begin, size_t* piece);
  // S9: of these keys those that are paged out, each file from its beginning to its end.
  Status ReadBack(const TableState& table, absl::Span<GatheredKey> keys);
  Status AskAgain(const TableState& table, absl::Span<GatheredKey> keys);
  // Hands on what is left of the answer as it is, if it fits; it is not looked into. REQUIRES: no gathered key is left within what it covers.
  bool TakeWhole();
  // So many more records, of so many bytes, fit all.
  bool FitsWhole(size_t records, size_t bytes) const;
  // Merges the answer with the keys before `end`; unless that is `last`, only up to the key there, which is not resolved yet.
  void Merge(size_t end, bool last);
  void Emit(std::string_view key, std::string_view value, Version version);
  // With so many more records, of so many bytes in all.
  bool Full(size_t more_records, size_t more_bytes) const;
  // It is not worth asking for what would still fit.
  bool NearlyFull() const;
  // Where the scan goes on if the batch ends after `key`.
  void StopAfter(std::string_view key);

  Engine& engine_;
  Transaction& txn_;
  const Operation& scan_;
  OperationResult* const result_;
  const Deadline deadline_;
  ReaderView view_;
  ScanGather gather_;
  std::unique_ptr<StandingScan> state_;
  bool goes_on_ = false;  // it stood before this batch
  bool end_ = false;      // of all keys in this direction
  bool full_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_PATH_H_
