// CommitQueue: finished transactions that have committed, ordered by the LSN of their commit record. They arrive in roughly that order.
//
// Each item has its LSN beside the pointer, so that sorting does not touch the records: these lie in the caches of other processors.
// Thread-safety: one thread. Ownership: none; the owner of the queue holds the reference of each record.
#ifndef TC_MVCC_COMMIT_QUEUE_H_
#define TC_MVCC_COMMIT_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {

class TransactionRecord;

class CommitQueue {
 public:
  struct Item {
    Lsn commit;
    TransactionRecord* record;
  };

  // Adds in any order. The item enters the queue at the next Settle.
  void Add(Lsn commit, TransactionRecord* record) { added_.push_back({commit, record}); }

  // Moves the added items to their places in the queue.
  void Settle() {
    if (added_.empty()) return;
    const auto before = [](const Item& a, const Item& b) { return a.commit < b.commit; };
    // They came from a stack, the latest first.
    std::reverse(added_.begin(), added_.end());
    if (!std::is_sorted(added_.begin(), added_.end(), before)) std::sort(added_.begin(), added_.end(), before);
    const auto behind = std::upper_bound(items_.begin(), items_.end(), added_.front(), before);
    if (behind == items_.end()) {
      items_.insert(items_.end(), added_.begin(), added_.end());
    } else {
      const std::vector<Item> later(behind, items_.end());
      items_.erase(behind, items_.end());
      std::merge(later.begin(), later.end(), added_.begin(), added_.end(), std::back_inserter(items_), before);
    }
    added_.clear();
  }

  // The methods below see settled items only.
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const Item& front() const { return items_.front(); }
  const Item& operator[](size_t i) const { return items_[i]; }
  TransactionRecord* Pop() {
    TransactionRecord* const record = items_.front().record;
    items_.pop_front();
    return record;
  }
  void Clear() { items_.clear(); }

 private:
  std::deque<Item> items_;
  std::vector<Item> added_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMIT_QUEUE_H_
