// TableState: the TC's state of one table: its ranges, and the words by which a drop excludes writers (rule T1).
//
// States of `open`: true -> false (drop begun, by the winner of the exchange) -> true (drop failed) or dropped for good. A writer publishes its key
//   and then checks `open` and `last_read`. A dropping transaction closes, raises last_read, then examines every range's postings: one finds
//   the other, as in R1/R2.
// `dropper`: the transaction that drops, set once it has begun; its status decides, as a version's does. A table is closed before its dropper's
//   timestamp is drawn, so a transaction that has found it open is earlier than the drop. A transaction that finds it closed and is earlier than
//   the drop reads on (tc/record_manager/table_path.cc). One later than a committed drop finds no table; one later than an undecided drop loses a
//   conflict.
// `created_at`: the commit position of the table's creation. While the DC has not applied it, the DC does not know the table, and all its records
//   are in the TC.
// Thread-safety: any thread. Ownership: shared by the catalogue and others (catalogue.h). A state owns its ranges.
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
  // `copied_postings`: see RangePartition. REQUIRES at destruction: no dropper.
  TableState(TableId id, std::string name, Position created_at, std::shared_ptr<std::atomic<uint64_t>> copied_postings)
      : id_(id), name_(std::move(name)), created_at_(created_at), ranges_(std::move(copied_postings)) {}
  TableState(const TableState&) = delete;
  TableState& operator=(const TableState&) = delete;

  TableId id() const { return id_; }
  const std::string& name() const { return name_; }
  Position created_at() const { return created_at_; }

  bool open() const { return open_.load(std::memory_order_seq_cst); }
  // Called by a thread that begins a drop. False: another drop is in progress or done.
  bool TryClose() { return open_.exchange(false, std::memory_order_seq_cst); }
  // REQUIRES: this thread closed it. The table keeps a reference to the record from here on.
  void SetDropper(TransactionRecord* record) {
    record->AddReference();
    dropper_.store(record, std::memory_order_seq_cst);
  }
  // Null: no drop has begun. Valid under the guard that was held at the call.
  const TransactionRecord* dropper() const { return dropper_.load(std::memory_order_seq_cst); }
  // REQUIRES: a guard; this thread closed the table, or no thread uses it any more.
  void ForgetDropper(ReclamationDomain& domain) {
    TransactionRecord* const record = dropper_.exchange(nullptr, std::memory_order_seq_cst);
    if (record != nullptr) record->DropReference(domain);
  }
  // For a drop that failed. REQUIRES: a guard; this thread closed the table. The store to `open` comes last: afterwards the dropper may be another's.
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

  // REQUIRES: a guard, held while the map is used. P: a caller that meets a sealed range there calls FinishRangeChange, then loads the map again.
  const RangeMap& map() const { return ranges_.map(); }
  void FinishRangeChange() const { ranges_.FinishChange(); }
  RangePartition& ranges() { return ranges_; }
  const RangePartition& ranges() const { return ranges_; }

  // S8: the runs belong to the whole table, so changes of ranges do not affect them.
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
