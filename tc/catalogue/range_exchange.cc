#include "tc/catalogue/range_exchange.h"

#include "absl/container/flat_hash_set.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/range_table.h"

namespace deut::tc {

void ExchangeRanges(TableState& table, const std::vector<std::string>& cuts,
                    const std::vector<TransactionRecord*>& uncollected, ReclamationDomain& domain) {
  ReclamationDomain::Guard guard(domain);
  const RangeMap& old_map = table.map();
  auto* const new_map = new RangeMap(cuts, Timestamp{0});
  for (size_t i = 0; i < new_map->size(); ++i) {
    Range& range = new_map->at(i);
    const size_t last = old_map.IndexBelow(range.high());
    for (size_t old = old_map.IndexOf(range.low()); old <= last; ++old)
      if (!DEUT_OMITTED("P.last_read")) range.RaiseLastRead(old_map.at(old).last_read());
  }
  absl::flat_hash_set<const Range*> old_ranges;
  for (size_t i = 0; i < old_map.size(); ++i) old_ranges.insert(&old_map.at(i));
  for (TransactionRecord* record : uncollected) {
    std::erase_if(record->posted, [&](const Range* range) { return old_ranges.contains(range); });
    absl::flat_hash_set<Range*> posted;
    record->write_set().ForEach([&](const WriteItem& item) {
      if (item.table != table.id()) return;
      Range& range = new_map->at(new_map->IndexOf(item.key));
      if (!posted.insert(&range).second) return;
      if (!DEUT_OMITTED("P.postings")) range.Post(record);
      record->posted.push_back(&range);
    });
  }
  const RangeMap* const retired = table.ExchangeMap(new_map);
  retired->RemoveAllPostings(domain);
  domain.RetireObject(const_cast<RangeMap*>(retired), sizeof(RangeMap) + retired->size() * sizeof(Range));
}

}  // namespace deut::tc
