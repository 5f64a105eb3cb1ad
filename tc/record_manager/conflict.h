// What every path of the record manager does first and last: check arguments, and turn a lost conflict into a Status that names rule, key
// and other transaction (and count it).
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

// For who decides where ranges are cut.
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

// S1: what the DC returns is below every registered timestamp. Anything else is a broken invariant and is said, never dropped.
inline Status CheckVisible(const RecordView& record, Timestamp reader) {
  if (record.version.timestamp < reader) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kInternal, "the data component returned a record of timestamp ", record.version.timestamp.value,
                    " to a transaction of timestamp ", reader.value, ": rule S1 does not hold");
}

// The same of a whole answer. One comparison if the rule holds: else each record is looked at, as what a batch knows is a bound.
inline Status CheckAllVisible(const RecordBatch& records, Timestamp reader) {
  if (records.newest() < reader) [[likely]]
    return Status::Ok();
  for (RecordBatch::Iterator it(records); it.Valid(); it.Next())
    DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), reader));
  return Status::Ok();
}

// The DC knows nothing of a table whose creation it has not applied: all that exists of it is in the TC. Once something of the table has been
// collected the DC must be asked, also when it has restarted and its applied position is back at the beginning (X3's gate is there).
// Called after the look into the chain.
inline bool DcKnows(const Engine& engine, const TableState& table) {
  return table.created_at() == Position{} || engine.collector.collected_through() > table.created_at().commit ||
         engine.dc.applied() >= table.created_at();
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_CONFLICT_H_
