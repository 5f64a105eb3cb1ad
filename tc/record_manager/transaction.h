// Transaction: the owner's side of an open transaction. One thread at a time uses it, through the record manager.
// Ownership: the session owns it; its record is handed to the collector when it ends.
#ifndef TC_RECORD_MANAGER_TRANSACTION_H_
#define TC_RECORD_MANAGER_TRANSACTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/range_table.h"
#include "tc/txn/active_transactions.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

struct Engine;
struct StandingScan;
class TableState;

class Transaction {
 public:
  enum class State : uint8_t { kOpen, kCommitted, kAborted };

  Transaction();
  ~Transaction();

  Timestamp timestamp() const { return timestamp_; }
  State state() const { return state_; }
  bool snapshot() const { return record_ == nullptr; }
  bool wrote() const { return next_sequence_ > 1; }
  // Its place in commit-record order once it has been appended, also where its outcome is not known to be durable; else 0.
  Lsn commit_lsn() const { return commit_lsn_; }

 private:
  friend class RecordManager;
  friend class WritePath;
  friend class ReadPath;
  friend class ScanGather;
  friend class ScanPath;
  friend class CommitPath;
  friend Result<TableState*> FindTable(Engine& engine, Transaction& txn, TableId id, bool for_write);

  // The transaction has shown, or will show, something of this commit to its client (D1).
  void DependOn(Lsn commit_lsn) {
    if (commit_lsn > depends_on_) depends_on_ = commit_lsn;
  }
  // Most transactions post in few ranges.
  bool HasPosted(const Range& range) const {
    if (!many_posted_.empty()) return many_posted_.contains(&range);
    for (const Range* posted : record_->posted) {
      if (posted == &range) return true;
    }
    return false;
  }
  // R1 step 1, R3. False: the range is sealed (P). REQUIRES: the guard under which the range was found in the map.
  [[nodiscard]] bool Post(Range& range, bool omitted) {
    if (HasPosted(range)) return true;
    if (!omitted && !range.Post(record_)) return false;
    range.AddReference();
    record_->posted.push_back(&range);
    if (!many_posted_.empty()) {
      many_posted_.insert(&range);
    } else if (record_->posted.size() > kManyPosted) {
      many_posted_.insert(record_->posted.begin(), record_->posted.end());
    }
    return true;
  }

  TransactionOptions options_;
  State state_ = State::kOpen;
  SlotId slot_;
  Timestamp timestamp_;
  TransactionRecord* record_ = nullptr;  // null for a snapshot
  Lsn depends_on_;
  Lsn commit_lsn_;
  uint32_t next_sequence_ = 1;
  uint64_t counted_list_bytes_ = 0;  // S9: of its record, write set, postings
  // R11: keys declared at begin and not written yet, by table and key.
  absl::flat_hash_map<std::pair<uint32_t, std::string>, WriteItem*> declared_;
  static constexpr size_t kManyPosted = 16;
  absl::flat_hash_set<const Range*> many_posted_;  // the same as posted, once they are more than that
  // Scans that may go on, the one that was not used for longest first.
  std::vector<std::unique_ptr<StandingScan>> scans_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_TRANSACTION_H_
