// Checks that the paths of the record manager share. Conflict counts a lost conflict and turns it into a Status that
// names rule, key and other transaction. Thread-safety: any thread.
#ifndef TC_RECORD_MANAGER_CONFLICT_H_
#define TC_RECORD_MANAGER_CONFLICT_H_

#include <string_view>

#include "common/base/abort_reason.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/mvcc/range_table.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

// Counts the conflict in its range, for the repartitioner, which decides where ranges are cut.
inline void CountRangeConflict(Engine& engine, TableId table, std::string_view key) {
  ReclamationDomain::Guard guard(engine.domain);
  const TableState* const state = engine.catalogue.FindAlsoDropped(table);
  if (state == nullptr) return;
  const RangeMap& map = state->map();
  map.at(map.IndexOf(key)).CountConflict();
}

inline Status Conflict(Engine& engine, AbortReason reason, Timestamp self, TableId table, std::string_view key,
                       Timestamp other) {
  engine.counters.aborts[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  if (reason == AbortReason::kRangeReadLater || reason == AbortReason::kRangeWriter) {
    CountRangeConflict(engine, table, key);
  }
  return Status::Aborted(
      AbortInfo{.reason = reason, .table = table.value, .key = std::string(key), .other_timestamp = other.value},
      Concat("transaction ", self.value, " lost a conflict (", AbortReasonName(reason), ")"));
}

inline Status CheckKey(std::string_view key) {
  if (!key.empty() && key.size() <= kMaxKeyBytes) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kInvalidArgument, "a key has 1 to ", kMaxKeyBytes, " bytes; this one has ", key.size());
}

inline Status CheckValue(std::string_view value) {
  if (value.size() <= kMaxValueBytes) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kInvalidArgument, "a value has at most ", kMaxValueBytes, " bytes; this one has ", value.size());
}

// S1: every record that the DC returns is older than every registered timestamp. A newer one is a broken invariant,
// and is reported, never dropped.
inline Status CheckVisible(const RecordView& record, Timestamp reader) {
  if (record.version.timestamp < reader) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kInternal, "the data component returned a record of timestamp ", record.version.timestamp.value,
                    " to a transaction of timestamp ", reader.value, ": rule S1 does not hold");
}

// The same for a whole answer. If the rule holds this is one comparison. Otherwise it checks each record, because the
// timestamp that a batch knows is only a bound.
inline Status CheckAllVisible(const RecordBatch& records, Timestamp reader) {
  if (records.newest() < reader) [[likely]]
    return Status::Ok();
  for (RecordBatch::Iterator it(records); it.Valid(); it.Next())
    DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), reader));
  return Status::Ok();
}

// Returns whether the DC can have records of the table. Until the DC has applied the table's creation, everything in
// the table is in the TC. Once any update of the table has been collected the DC must be asked. That holds even if it
// has restarted and its applied position is back at the beginning; then X3's gate holds the read back. REQUIRES: the
// caller has looked into the chain.
inline bool DcKnows(const Engine& engine, const TableState& table) {
  return table.created_at() == Position{} || engine.collector.collected_through() > table.created_at().commit ||
         engine.dc.applied() >= table.created_at();
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_CONFLICT_H_
