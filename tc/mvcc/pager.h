// Pager: decides which values of folded commits leave memory when what is pinned has passed its share of the budget (rule S9): those that were
// committed first.
//
// A commit that is folded is queued once for each value worth it, by its entry. The entry is there for as long as the commit is not collected
//   (folded_commit.h); what is collected is dropped from the front of the queue, unlooked at. Commits arrive in ascending order within a fold,
//   nearly so from fold to fold. What cannot go just now (page_out.h) comes again, at the end.
// Thread-safety: the collector's thread, under a guard; the figures from any.
#ifndef TC_MVCC_PAGER_H_
#define TC_MVCC_PAGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"

namespace deut::tc {

class Pager {
 public:
  struct Options {
    // Bytes that are to leave memory, of what is pinned. None: nothing is paged out.
    std::function<uint64_t()> excess;
    // Commits before it are durable.
    std::function<Lsn()> durable;
  };

  Pager(const Options& options, ReclamationDomain& domain) : options_(options), domain_(domain) {}

  // More is pinned than its share.
  bool pressed() const { return options_.excess && options_.excess() != 0; }
  // A version of `commit`, with so large a value, is in the entry's chain.
  void Add(Lsn commit, RecordEntry* entry, uint32_t value_bytes);
  // Pages out while there is an excess, at most some thousand entries. All commits up to `collected` are collected. Answers the bytes that have left.
  uint64_t Run(Lsn collected);

  // What the queue itself takes.
  uint64_t bytes() const { return queued_.load(std::memory_order_relaxed) * sizeof(Queued); }
  // Ever.
  uint64_t versions() const { return versions_.load(std::memory_order_relaxed); }
  uint64_t paged_bytes() const { return paged_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Queued {
    Lsn commit;
    RecordEntry* entry;
  };

  // Moves the next few that are durable into batch_. False: there are none.
  bool TakeBatch(Lsn collected, Lsn durable, size_t most);

  const Options options_;
  ReclamationDomain& domain_;
  std::deque<Queued> queue_;
  std::vector<Queued> batch_;
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> versions_{0};
  std::atomic<uint64_t> paged_bytes_{0};
};

}  // namespace deut::tc

#endif  // TC_MVCC_PAGER_H_
