// What the TC must keep of updates that the DC has not applied, against its budget (rule S9): versions with their entries, transaction records, write
// sets, postings, and the copies of these in ranges that were made since (P); of folded commits versions with their entries, positions, runs. Estimates: memory that lists keep for growth is not in it.
#ifndef TC_RECORD_MANAGER_PINNED_H_
#define TC_RECORD_MANAGER_PINNED_H_

#include <atomic>
#include <cstdint>

#include "common/base/status.h"
#include "tc/mvcc/range_table.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

inline uint64_t PinnedBytes(const Engine& engine) {
  return engine.counters.pinned_bytes.load(std::memory_order_relaxed) + engine.collector.folded_bytes() +
         engine.catalogue.copied_postings() * sizeof(Posting);
}

// RESOURCE_EXHAUSTED, naming who holds back what is pinned, with a retry hint.
Status OverBudget(const Engine& engine);

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_PINNED_H_
