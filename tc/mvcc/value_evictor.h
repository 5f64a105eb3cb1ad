// ValueEvictor: pages out values of folded commits when pinned memory exceeds its share of the budget (rule S9), in the order of the commits.
//
// Add queues a folded commit's entry once for each value worth it. The entry exists while the commit is not collected (folded_commit.h). Run drops
//   collected commits from the front of the queue without touching their entries. Commits arrive in ascending order within a fold, and nearly so
//   from fold to fold. A version that cannot be paged out now (page_out.h) is queued again, at the end.
// Thread-safety: Add and Run by the collector's thread, Run with guards of its own; pressed and the figures by any. Ownership: none of the entries.
#ifndef TC_MVCC_VALUE_EVICTOR_H_
#define TC_MVCC_VALUE_EVICTOR_H_

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

class ValueEvictor {
 public:
  struct Options {
    // Pinned bytes that should leave memory now. Empty: nothing is paged out.
    std::function<uint64_t()> excess;
    // Commits before it are durable.
    std::function<Lsn()> durable;
  };

  ValueEvictor(const Options& options, ReclamationDomain& domain) : options_(options), domain_(domain) {}

  // True if pinned memory exceeds its share.
  bool pressed() const { return options_.excess && options_.excess() != 0; }
  // A version of `commit` with a value of `value_bytes` is in the entry's chain. Ignores values that are too small.
  void Add(Lsn commit, RecordEntry* entry, uint32_t value_bytes);
  // Pages out while there is an excess, at most kPerRound (value_evictor.cc) entries. Returns the bytes freed. REQUIRES: all commits up to
  // `collected` are collected.
  uint64_t Run(Lsn collected);

  // Memory of the queue itself.
  uint64_t bytes() const { return queued_.load(std::memory_order_relaxed) * sizeof(Queued); }
  // Versions paged out since the start, and the bytes freed.
  uint64_t versions() const { return versions_.load(std::memory_order_relaxed); }
  uint64_t paged_bytes() const { return paged_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Queued {
    Lsn commit;
    RecordEntry* entry;
  };

  // Moves at most `max_commits` durable commits from the queue into batch_, sorted by entry. False: there are none.
  bool FillBatch(Lsn collected, Lsn durable, size_t max_commits);

  const Options options_;
  ReclamationDomain& domain_;
  std::deque<Queued> queue_;
  std::vector<Queued> batch_;
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> versions_{0};
  std::atomic<uint64_t> paged_bytes_{0};
};

}  // namespace deut::tc

#endif  // TC_MVCC_VALUE_EVICTOR_H_
