// The committed versions of one chain, as unlinking, folding, paging out and spilling see them: which version stands
// for a commit, and which bytes it counts for.
//
// A transaction that writes a key repeatedly leaves several versions of it. Only its newest one is logged, paged out and
//   spilled, and only that one is counted as pinned memory of a folded commit (S9). It is counted from the fold until
//   it is found applied, or until it leaves its chain.
// All is inline: a walk down a chain costs no call per version.
// Thread-safety: IsCommitted by any thread, the rest by the collector's; all under a guard.
#ifndef TC_MVCC_NEWEST_VERSIONS_H_
#define TC_MVCC_NEWEST_VERSIONS_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {

// R4: the status first. A version that is withdrawn between the two loads would else count as committed.
inline bool IsCommitted(const RecordVersion& version) {
  return version.transaction->status() == TransactionStatus::kCommitted &&
         !version.withdrawn.load(std::memory_order_seq_cst);
}

// Tells for each version of a chain whether it is its transaction's newest one.
class NewestOfTransaction {
 public:
  // REQUIRES: the caller passes the versions of one chain, or the committed ones among them, from the newest down.
  bool operator()(const RecordVersion& version) {
    return version.transaction != std::exchange(above_, version.transaction);
  }

 private:
  const TransactionRecord* above_ = nullptr;
};

// The bytes that a folded commit counts for its newest version of the key.
inline uint64_t CountedBytes(const RecordEntry& entry, const RecordVersion& newest) {
  return newest.applied ? 0 : PinnedBy(entry, newest);
}

// The newest live version at or below `latest`. Null: there is none.
inline RecordVersion* NewestThrough(const RecordEntry& entry, Timestamp latest) {
  RecordVersion* version = entry.word.Load().head;
  while (version != nullptr && (version->transaction->timestamp() > latest || version->dead())) {
    DEUT_POINT("collector.chain_step");
    version = version->older.load(std::memory_order_seq_cst);
  }
  return version;
}

// The bytes that folded commits count for `from` and the versions below it.
inline uint64_t CountedBytesFrom(const RecordEntry& entry, const RecordVersion* from) {
  uint64_t bytes = 0;
  NewestOfTransaction newest;
  for (const RecordVersion* v = from; v != nullptr; v = v->older.load(std::memory_order_seq_cst)) {
    DEUT_DCHECK(v->version() <= from->version());  // R4
    if (newest(*v)) bytes += CountedBytes(entry, *v);
  }
  return bytes;
}

}  // namespace deut::tc

#endif  // TC_MVCC_NEWEST_VERSIONS_H_
