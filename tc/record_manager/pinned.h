// What the TC must keep of updates that the DC has not applied, against its budget (rule S9): versions with their entries, transaction records, write
// sets, postings, and the copies of these in ranges that were made since (P); of folded commits versions with their
// entries, positions, runs. Estimates: memory that lists keep for growth is not in it.
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

// How much of that is beyond half of the budget: then values leave memory (tc/mvcc/pager.h), before anybody is refused.
inline uint64_t PinnedExcess(const Engine& engine) {
  const uint64_t pinned = PinnedBytes(engine), share = engine.version_budget_bytes / 2;
  return pinned > share ? pinned - share : 0;
}

// Beyond five eighths of it commits leave memory as a whole (tc/mvcc/spiller.h).
inline uint64_t SpillExcess(const Engine& engine) {
  const uint64_t pinned = PinnedBytes(engine), share = engine.version_budget_bytes / 8 * 5;
  return pinned > share ? pinned - share : 0;
}

// What is pinned because the oldest open transaction or snapshot is open, if the DC is there: of folded commits, which all are when they take much. 0
// where some were committed before it.
inline uint64_t PinnedByOldest(const Engine& engine) {
  const Timestamp first = engine.collector.first_waiting();
  const bool held = first != Timestamp{0} && first >= engine.active.held_back_by().timestamp;
  return held ? engine.collector.folded_bytes() : 0;
}

// RESOURCE_EXHAUSTED, naming who holds back what is pinned, with a retry hint.
Status OverBudget(const Engine& engine);
// Whether a transaction may pin more. `record`: its own, null before its first write.
inline bool MayPin(const Engine& engine, TransactionRecord* record) {
  const uint64_t own = record == nullptr ? 0 : record->pinned_bytes;
  const bool bulk = own >= BulkBytes::kBulkFrom && !DEUT_OMITTED("S9.bulk");
  if (bulk) [[unlikely]] {
    if (record->bulk_hold == nullptr) record->bulk_hold = std::make_unique<BulkBytes::Hold>(engine.bulk);
    if (record->bulk_hold->Charge(own, engine.version_budget_bytes)) return true;
  }
  // A smaller transaction is not refused for what it holds itself.
  return PinnedBytes(engine) <= engine.version_budget_bytes + engine.bulk->held() + (bulk ? 0 : own);
}

// INVALID_ARGUMENT: a transaction that has written so much may not write so much more (--max_transaction_bytes).
Status OverTransactionLimit(const Engine& engine, uint64_t written_bytes, uint64_t more_bytes);
// RESOURCE_EXHAUSTED, for puts (rule X7, DcReader::HasSpace), with a retry hint.
Status NoSpaceAtDc();
// ABORTED, for the transaction that held back what is pinned (OverBudgetPolicy::kAbortReader).
Status AbortedOverBudget(const Engine& engine, Timestamp reader);

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_PINNED_H_
