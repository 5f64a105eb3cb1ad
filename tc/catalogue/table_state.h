// TableState: what the TC knows of one table: its ranges, and the words by which dropping it excludes writers (rule T1).
//
// States of `open`: true -> false (drop begun, by the winner of the exchange) -> true (drop failed) or dropped for good. A writer
//   publishes its key and then checks
//   `open` and `last_read`; who drops closes, raises last_read, then examines every range's postings: one finds the other, as in R1/R2.
// `dropper`: the transaction that drops, from when it has begun; its status decides, as a version's does. A table is closed before its dropper's
//   timestamp is drawn, so whoever has found it open is earlier than the drop. Who finds it closed (tc/record_manager/table_path.cc): earlier than
//   the drop, reads on; later than a committed one, finds no table; later than an undecided one, loses a conflict.
// `created_at`: the commit position of the table's creation. While the DC has not applied it, the DC knows nothing of the table and all that
//   exists of it is in the TC.
// Thread-safety: any thread. Ownership: the catalogue's and others' (catalogue.h). A state owns its ranges.
#ifndef TC_CATALOGUE_TABLE_STATE_H_
#define TC_CATALOGUE_TABLE_STATE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/committed_runs.h"
#include "tc/mvcc/range_partition.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class TableState {
 public:
  // `copied_postings`: see RangePartition. At its end: REQUIRES no dropper.
  TableState(TableId id, std::string name, Position created_at, std::shared_ptr<std::atomic<uint64_t>> copied_postings)
      : id_(id), name_(std::move(name)), created_at_(created_at), ranges_(std::move(copied_postings)) {}
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;

  TableId id() const { return id_; }
  const std::string& name() const { return name_; }
  Position created_at() const { return created_at_; }

  bool open() const { return open_.load(std::memory_order_seq_cst); }
  // Whoever drops the table. False: somebody else is dropping it, or has.
  bool TryClose() { return open_.exchange(false, std::memory_order_seq_cst); }
  // REQUIRES: this thread closed it. The table keeps a reference to the record from here on.
  void SetDropper(TransactionRecord* record) {
    record->AddReference();
    dropper_.store(record, std::memory_order_seq_cst);
  }
  // Null: none has begun. Good under the guard that was held at the call.
  const TransactionRecord* dropper() const { return dropper_.load(std::memory_order_seq_cst); }
  // REQUIRES: a guard; this thread closed the table, or nobody uses it any more.
  void ForgetDropper(ReclamationDomain& domain) {
    TransactionRecord* const record = dropper_.exchange(nullptr, std::memory_order_seq_cst);
    if (record != nullptr) record->DropReference(domain);
  }
  // The drop failed. REQUIRES: a guard; this thread closed it. Opening comes last: from then on the dropper may be the next one's.
  void Reopen(ReclamationDomain& domain) {
    ForgetDropper(domain);
    DEUT_POINT("table.reopening");
    open_.store(true, std::memory_order_seq_cst);
  }
  Timestamp last_read() const { return Timestamp{last_read_.load(std::memory_order_seq_cst)}; }
  void RaiseLastRead(Timestamp timestamp) {
    uint64_t seen = last_read_.load(std::memory_order_seq_cst);
    while (seen < timestamp.value &&
           !last_read_.compare_exchange_weak(seen, timestamp.value, std::memory_order_seq_cst)) {
    }
  }

  // REQUIRES: a guard, for as long as the map is used. P: whoever meets a sealed range there helps, then looks at the map again.
  const RangeMap& map() const { return ranges_.map(); }
  void HelpRanges() const { ranges_.Help(); }
  RangePartition& ranges() { return ranges_; }
  const RangePartition& ranges() const { return ranges_; }

  // S8: of the whole table, so new ranges are nothing to them.
  CommittedRuns& runs() { return runs_; }
  const CommittedRuns& runs() const { return runs_; }

 private:
  const TableId id_;
  const std::string name_;
  const Position created_at_;
  std::atomic<bool> open_{true};
  std::atomic<uint64_t> last_read_{0};
  std::atomic<TransactionRecord*> dropper_{nullptr};
  RangePartition ranges_;
  CommittedRuns runs_;
};

}  // namespace deut::tc

#endif  // TC_CATALOGUE_TABLE_STATE_H_
