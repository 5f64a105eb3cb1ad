// What a pass over finished transactions will look at of those to come is asked for ahead: it was written by other processors, and each step is known
// only from the one before (record, write set, version and entry), so a pass that looks at one transaction after the other would wait for each.
// Nothing is decided here: an address that is not good any more is no harm to a prefetch.
// Thread-safety: as what is looked at. REQUIRES: a guard; the records are the caller's.
#ifndef TC_MVCC_COLLECT_AHEAD_H_
#define TC_MVCC_COLLECT_AHEAD_H_

#include <array>
#include <cstddef>

#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

// What is done to a chain whose version has been applied begins here.
inline void PrefetchItem(const WriteItem& item, const RecordTable& records) {
  if (item.version == nullptr) return;
  __builtin_prefetch(item.version);
  __builtin_prefetch(item.entry);
  records.Prefetch(item.hash);
}

// Called with each `i` below `count` in turn, before the i-th record is looked at. `at(n)`: the n-th record, or null.
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

// As ForEachWrite, some items ahead.
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
