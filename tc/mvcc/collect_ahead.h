// Prefetches the records, write sets, versions and entries of the next transactions while the collector handles the current one.
//
// Other processors wrote this memory, and each address is known only from the object before it (record, write set, version and entry). A pass
// without prefetching would wait for memory once per step and transaction.
// Nothing is decided here: a prefetch of an address that is no longer valid does no harm.
// Thread-safety: as the objects that are prefetched. REQUIRES: a guard; the caller owns the records.
#ifndef TC_MVCC_COLLECT_AHEAD_H_
#define TC_MVCC_COLLECT_AHEAD_H_

#include <array>
#include <cstddef>

#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

// Prefetches what the collector touches first when it collects an applied version: the version, its entry and its hash bucket.
inline void PrefetchItem(const WriteItem& item, const RecordTable& records) {
  if (item.version == nullptr) return;
  __builtin_prefetch(item.version);
  __builtin_prefetch(item.entry);
  records.Prefetch(item.hash);
}

// The caller calls it with each `i` below `count` in turn, before it handles the i-th record. `at(n)` returns the n-th record, or null.
template <typename At>
void CollectAhead(size_t i, size_t count, const RecordTable& records, At&& at) {
  constexpr size_t kStep = 6;
  const auto record = [&](size_t steps) -> const TransactionRecord* {
    const size_t n = i + steps * kStep;
    return n < count ? at(n) : nullptr;
  };
  if (const TransactionRecord* const r = record(3)) {
    __builtin_prefetch(r);
    __builtin_prefetch(reinterpret_cast<const char*>(r) + 64);
  }
  if (const TransactionRecord* const r = record(2)) {
    if (const WriteSet* const writes = r->write_set()) writes->Prefetch();
  }
  if (const TransactionRecord* const r = record(1)) {
    const WriteSet* const writes = r->write_set();
    if (writes != nullptr && writes->size() != 0) PrefetchItem(writes->first(), records);
  }
}

// As TransactionRecord::ForEachWrite, but prefetches a group of items before it visits them.
template <typename Visit>
void ForEachWriteAhead(const TransactionRecord& record, const RecordTable& records, Visit&& visit) {
  std::array<const WriteItem*, 8> asked;
  size_t count = 0;
  const auto visit_all = [&] {
    for (size_t i = 0; i < count; ++i) visit(*asked[i]);
    count = 0;
  };
  record.ForEachWrite([&](const WriteItem& item) {
    PrefetchItem(item, records);
    asked[count++] = &item;
    if (count == asked.size()) visit_all();
  });
  visit_all();
}

}  // namespace deut::tc

#endif  // TC_MVCC_COLLECT_AHEAD_H_
