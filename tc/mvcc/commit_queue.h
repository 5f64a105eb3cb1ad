// CommitQueue: finished transactions that have committed, in the order of their commit records, which is about the order in which they come.
//
// Positions lie beside the records, so what is put in order is not looked at: the records lie in the caches of who committed them.
// Thread-safety: one thread. Ownership: none; the owner's reference of each record is whose the queue is.
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

  // In any order. They come into the queue with Settle.
  void Add(Lsn commit, TransactionRecord* record) { added_.push_back({commit, record}); }

  // What was added takes its places.
  void Settle() {
    if (added_.empty()) return;
    const auto before = [](const Item& a, const Item& b) { return a.commit < b.commit; };
    // They came from a stack: the last one first.
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

  // Of what has its place.
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
