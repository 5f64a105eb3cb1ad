// Transaction: the owner's side of an open transaction.
// Its record, which other transactions see, is made when it first posts or publishes something. Until then nothing
//   leads to the transaction, and all that others know of it is the timestamp in its slot (L1). Most transactions
//   that only read, scans included, never have a record.
// Thread-safety: one thread at a time, through the record manager. Ownership: the session owns it. Its record goes to
//   the collector when it ends.
#ifndef TC_RECORD_MANAGER_TRANSACTION_H_
#define TC_RECORD_MANAGER_TRANSACTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/range_table.h"
#include "tc/txn/active_transactions.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

struct Engine;
struct ResumableScan;
class TableState;

class Transaction {
 public:
  enum class State : uint8_t { kOpen, kCommitted, kAborted };

  Transaction();
  ~Transaction();

  Timestamp timestamp() const { return timestamp_; }
  State state() const { return state_; }
  bool snapshot() const { return snapshot_; }
  bool wrote() const { return next_sequence_ > 1; }
  // LSN of its commit record once that has been appended, even if it is not known to be durable; else 0.
  Lsn commit_lsn() const { return commit_lsn_; }

 private:
  friend class RecordManager;
  friend class WritePath;
  friend class ReadPath;
  friend class ScanGather;
  friend class ScanPath;
  friend class ScanResolve;
  friend class CommitPath;
  friend class PrefetchedScan;
  friend Status BecomeWriter(Engine& engine, Transaction& txn, TableId table, std::string_view key);
  friend Result<TableState*> FindTable(Engine& engine, Transaction& txn, TableId id, bool for_write);

  // Says that the transaction has shown, or will show, an effect of this commit to its client (D1).
  void DependOn(Lsn commit_lsn) {
    if (commit_lsn > depends_on_) depends_on_ = commit_lsn;
  }
  // Resets it as if just constructed, but keeps its memory. REQUIRES: it has ended.
  void Reset();
  // Frees the memory that grows with its writes. REQUIRES: it has ended.
  void FreeKeys() {
    if (!declared_.empty()) decltype(declared_)().swap(declared_);
    if (!many_posted_.empty()) decltype(many_posted_)().swap(many_posted_);
  }
  // Returns the record; the first call makes it. REQUIRES: it has become a writer (become_writer.h).
  TransactionRecord& Record() {
    DEUT_DCHECK(writer_);
    if (record_ == nullptr) record_ = new TransactionRecord(timestamp_);
    return *record_;
  }
  // Most transactions post in few ranges, so a walk over the list is enough at first.
  bool HasPosted(const Range& range) const {
    if (record_ == nullptr) return false;
    if (!many_posted_.empty()) return many_posted_.contains(&range);
    for (const Range* posted : record_->posted) {
      if (posted == &range) return true;
    }
    return false;
  }
  // R1 step 1, R3. Returns false if the range is sealed (P). REQUIRES: the guard under which the range was found in
  // the map.
  [[nodiscard]] bool Post(Range& range, bool omitted) {
    if (HasPosted(range)) return true;
    TransactionRecord& record = Record();
    if (!omitted && !range.Post(&record)) return false;
    range.AddReference();
    record.posted.push_back(&range);
    if (!many_posted_.empty()) {
      many_posted_.insert(&range);
    } else if (record.posted.size() > kManyPosted) {
      many_posted_.insert(record.posted.begin(), record.posted.end());
    }
    return true;
  }

  TransactionName name_;
  Durability durability_ = Durability::kDurable;
  State state_ = State::kOpen;
  bool snapshot_ = false;
  bool writer_ = false;  // L2, ahead: it may post, publish and install
  SlotId slot_;
  Timestamp timestamp_;
  TransactionRecord* record_ = nullptr;  // null for a snapshot, and until it posts or publishes
  Lsn depends_on_;
  Lsn commit_lsn_;
  uint32_t next_sequence_ = 1;
  uint64_t written_bytes_ = 0;       // all its writes, as they would be logged (--max_transaction_bytes)
  uint64_t counted_list_bytes_ = 0;  // S9: bytes counted so far for its record, write set and postings
  // R11: keys declared at begin, by table and key.
  absl::flat_hash_map<std::pair<uint32_t, std::string>, WriteItem*> declared_;
  static constexpr size_t kManyPosted = 16;
  absl::flat_hash_set<const Range*> many_posted_;  // the same ranges as record_->posted, once there are more than
                                                   // kManyPosted
  // Scans that may go on; the least recently used one comes first.
  std::vector<std::unique_ptr<ResumableScan>> scans_;
  std::unique_ptr<ResumableScan> prefetched_scan_;  // begun ahead, for its first operation (prefetched_scan.h)
  std::unique_ptr<ResumableScan> spare_scan_;       // an ended scan, kept for its memory, also for the next transaction
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_TRANSACTION_H_
