#include "tc/catalogue/range_exchange.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/range_table.h"

namespace deut::tc {
namespace {

// How often the gate is closed for one exchange, and how often what finished meanwhile is posted before it is closed again.
// It takes more only if transactions finish faster than they can be posted.
constexpr int kCloses = 4;
constexpr int kCatchUps = 16;

}  // namespace

bool RangeExchange::Run(TableState& table, const std::vector<std::string>& cuts, Duration gate) {
  table_ = &table;
  new_map_ = std::make_unique<RangeMap>(cuts, Timestamp{0});
  posted_.clear();
  bool exchanged = false;
  collector_.RunExclusive([&](Collector::Access& access) { exchanged = RunOnCollector(access, gate); });
  new_map_.reset();
  posted_ = {};
  return exchanged;
}

bool RangeExchange::RunOnCollector(Collector::Access& access, Duration gate) {
  Records missing = access.Uncollected();
  for (int close = 0; close < kCloses; ++close) {
    if (!CloseGate(gate)) break;
    DEUT_POINT("exchange.gate_closed");
    const Records finished = access.TakeFinished();
    missing.insert(missing.end(), finished.begin(), finished.end());
    if (!Many(missing)) {
      Post(missing);
      RaiseLastReads();
      const RangeMap* const old_map = table_->ExchangeMap(new_map_.release());
      OpenGate();
      RetireOld(old_map, access);
      return true;
    }
    OpenGate();
    for (int i = 0; i < kCatchUps && Many(missing); ++i) {
      Post(missing);
      missing = access.TakeFinished();
    }
  }
  ReclamationDomain::Guard guard(domain_);
  new_map_->RemoveAllPostings(domain_);
  return false;
}

bool RangeExchange::CloseGate(Duration gate) {
  closed_at_ = runtime_.Now();
  if (active_.CloseGate(closed_at_ + gate)) return true;
  longest_gate_ = std::max(longest_gate_, runtime_.Now() - closed_at_);
  return false;
}

void RangeExchange::OpenGate() {
  active_.OpenGate();
  longest_gate_ = std::max(longest_gate_, runtime_.Now() - closed_at_);
}

bool RangeExchange::Many(const Records& records) {
  size_t keys = 0;
  for (const TransactionRecord* record : records) {
    const WriteSet* const writes = record->write_set();
    keys += 1 + (writes == nullptr ? 0 : writes->size());
    if (keys > kKeysBehindGate) return true;
  }
  return false;
}

void RangeExchange::Post(const Records& records) {
  absl::flat_hash_set<Range*> ranges;
  for (TransactionRecord* record : records) {
    ranges.clear();
    record->ForEachWrite([&](const WriteItem& item) {
      if (item.table != table_->id()) return;
      Range& range = new_map_->at(new_map_->IndexOf(item.key));
      if (!ranges.insert(&range).second) return;
      if (!DEUT_OMITTED("P.postings")) range.Post(record);
      posted_.emplace_back(record, &range);
    });
  }
}

void RangeExchange::RaiseLastReads() {
  ReclamationDomain::Guard guard(domain_);
  const RangeMap& old_map = table_->map();
  for (size_t i = 0; i < new_map_->size(); ++i) {
    Range& range = new_map_->at(i);
    const size_t last = old_map.IndexBelow(range.high());
    for (size_t old = old_map.IndexOf(range.low()); old <= last; ++old)
      if (!DEUT_OMITTED("P.last_read")) range.RaiseLastRead(old_map.at(old).last_read());
  }
}

// Transactions have begun again, but these records are the collector's, and nobody finds the old ranges any more.
void RangeExchange::RetireOld(const RangeMap* old_map, Collector::Access& access) {
  access.ForgetRanges(*old_map);
  absl::flat_hash_set<const Range*> old_ranges;
  for (size_t i = 0; i < old_map->size(); ++i) old_ranges.insert(&old_map->at(i));
  for (TransactionRecord* record : access.Uncollected()) {
    std::erase_if(record->posted, [&](const Range* range) { return old_ranges.contains(range); });
  }
  for (const auto& [record, range] : posted_) record->posted.push_back(range);
  ReclamationDomain::Guard guard(domain_);
  old_map->RemoveAllPostings(domain_);
  domain_.RetireObject(const_cast<RangeMap*>(old_map), sizeof(RangeMap) + old_map->size() * sizeof(Range));
}

}  // namespace deut::tc
