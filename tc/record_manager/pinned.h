// Pinned memory: what the TC must keep because the DC has not applied the updates, and its budget (rule S9).
// - A commit that is not folded pins versions with their entries, its transaction record, write set and postings, and
//   the copies of postings in ranges that were made since (P).
// - A folded commit pins versions with their entries, positions, and its share of runs.
// All figures are estimates: memory that lists hold for growth is not counted. Thread-safety: any thread.
#ifndef TC_RECORD_MANAGER_PINNED_H_
#define TC_RECORD_MANAGER_PINNED_H_

#include <algorithm>
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

// Those of them that the version budget bounds: without what large transactions have charged apart from it.
inline uint64_t OrdinaryPinnedBytes(const Engine& engine) {
  const uint64_t pinned = PinnedBytes(engine);
  return pinned - std::min(pinned, engine.bulk->held());
}

// Bytes beyond half of the budget. If there are any, values leave memory (tc/mvcc/value_evictor.h), before any writer is
// refused.
inline uint64_t PinnedExcess(const Engine& engine) {
  const uint64_t pinned = PinnedBytes(engine), share = engine.version_budget() / 2;
  return pinned > share ? pinned - share : 0;
}

// Bytes beyond five eighths of the budget. If there are any, whole commits leave memory (tc/mvcc/spiller.h).
inline uint64_t SpillExcess(const Engine& engine) {
  const uint64_t pinned = PinnedBytes(engine), share = engine.version_budget() / 8 * 5;
  return pinned > share ? pinned - share : 0;
}

// Bytes pinned because the oldest transaction or snapshot is open, assuming that the DC keeps up. Only folded commits
// are counted, and commits that take much are all folded. Returns 0 if a waiting commit is older than that
// transaction.
inline uint64_t PinnedByOldest(const Engine& engine) {
  const Timestamp first = engine.collector.first_waiting();
  const bool held = first != Timestamp{0} && first >= engine.active.held_back_by().timestamp;
  return held ? engine.collector.folded_bytes() : 0;
}

// RESOURCE_EXHAUSTED with a retry hint; names the transaction because of which memory stays pinned.
Status OverBudget(const Engine& engine);
// Returns whether a transaction may pin more. `record`: its own, null before its first write.
inline bool MayPin(const Engine& engine, TransactionRecord* record) {
  const uint64_t own = record == nullptr ? 0 : record->pinned_bytes;
  const bool bulk = own >= BulkBytes::kMinBulkBytes && DEUT_STEP("S9.bulk");
  if (bulk) [[unlikely]] {
    if (record->bulk_hold == nullptr) record->bulk_hold = std::make_unique<BulkBytes::Hold>(engine.bulk);
    if (record->bulk_hold->Charge(own, engine.version_budget())) return true;
  }
  // A smaller transaction is not refused for the bytes that it holds itself.
  return PinnedBytes(engine) <= engine.version_budget() + engine.bulk->held() + (bulk ? 0 : own);
}

// INVALID_ARGUMENT: a transaction that has written `written_bytes` may not write `more_bytes` more
// (--max_transaction_bytes).
Status OverTransactionLimit(const Engine& engine, uint64_t written_bytes, uint64_t more_bytes);
// RESOURCE_EXHAUSTED with a retry hint, for puts (rule X7, DcReader::HasSpace).
Status NoSpaceAtDc();
// ABORTED, for the transaction because of which memory stayed pinned (OverBudgetPolicy::kAbortReader).
Status AbortedOverBudget(const Engine& engine, Timestamp reader);

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_PINNED_H_
