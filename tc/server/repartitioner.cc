#include "tc/server/repartitioner.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

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
      range.RaiseLastRead(old_map.at(old).last_read());
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
      range.Post(record);
      record->posted.push_back(&range);
    });
  }
  const RangeMap* const retired = table.ExchangeMap(new_map);
  retired->RemoveAllPostings(domain);
  domain.RetireObject(const_cast<RangeMap*>(retired), sizeof(RangeMap) + retired->size() * sizeof(Range));
}

Repartitioner::Repartitioner(Options options, Engine& engine, DcLink& dc)
    : options_(options), engine_(engine), dc_(dc) {}

Repartitioner::~Repartitioner() { Stop(); }

void Repartitioner::Start() {
  thread_ = engine_.runtime.StartThread("tc-ranges", [this] { Run(); });
}

void Repartitioner::Stop() {
  if (!thread_) return;
  stop_.store(1, std::memory_order_seq_cst);
  engine_.runtime.WakeAll(stop_);
  thread_->Join();
  thread_.reset();
}

void Repartitioner::Run() {
  while (stop_.load(std::memory_order_seq_cst) == 0) {
    engine_.runtime.Wait(stop_, 0, engine_.runtime.Now() + options_.period);
    if (stop_.load(std::memory_order_seq_cst) != 0) return;
    RunOnce(engine_.runtime.Now() + options_.period);
  }
}

uint32_t Repartitioner::RangesFor(uint64_t records) const {
  if (options_.fixed_ranges != 0) return options_.fixed_ranges;
  return static_cast<uint32_t>(std::clamp<uint64_t>(records / options_.records_per_range, 1, options_.max_ranges));
}

void Repartitioner::RunOnce(Deadline deadline) {
  // A DC that is away or busy is asked again next time.
  const Result<std::vector<TableInfo>> sizes = dc_.Tables(deadline);
  if (!sizes.ok()) return;
  for (TableState* table : engine_.catalogue.tables()) {
    const auto size =
        std::find_if(sizes->begin(), sizes->end(), [&](const TableInfo& info) { return info.id == table->id(); });
    if (size == sizes->end()) continue;
    const uint64_t before = table->partitioned_records.load(std::memory_order_relaxed);
    const uint32_t ranges = RangesFor(size->records);
    if (ranges < 2 || size->records < 4 * before) continue;
    const Result<std::vector<std::string>> cuts = dc_.Partition(table->id(), ranges, deadline);
    if (!cuts.ok() || cuts->empty()) continue;
    if (Exchange(*table, *cuts)) table->partitioned_records.store(size->records, std::memory_order_relaxed);
  }
}

bool Repartitioner::Exchange(TableState& table, const std::vector<std::string>& cuts) {
  attempts_.fetch_add(1, std::memory_order_relaxed);
  if (!engine_.active.CloseGate(engine_.runtime.Now() + options_.gate)) return false;
  engine_.collector.RunExclusive([&](const std::vector<TransactionRecord*>& uncollected) {
    ExchangeRanges(table, cuts, uncollected, engine_.domain);
  });
  engine_.active.OpenGate();
  exchanges_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace deut::tc
