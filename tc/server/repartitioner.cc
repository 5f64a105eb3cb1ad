#include "tc/server/repartitioner.h"

#include <algorithm>

namespace deut::tc {
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
  // What the last changes have replaced; this thread retires nothing else that would take it along.
  engine_.domain.Collect();
  // A DC that is away or busy is asked again next time.
  const Result<std::vector<TableInfo>> sizes = dc_.Tables(deadline);
  if (!sizes.ok()) return;
  for (TableState* table : engine_.catalogue.tables()) {
    const auto size =
        std::find_if(sizes->begin(), sizes->end(), [&](const TableInfo& info) { return info.id == table->id(); });
    if (size == sizes->end()) continue;
    const uint64_t before = partitioned_[table];
    const uint32_t ranges = RangesFor(size->records);
    if (ranges < 2 || size->records < 2 * before) continue;
    const Result<std::vector<std::string>> cuts = dc_.Partition(table->id(), ranges, deadline);
    if (!cuts.ok() || cuts->empty()) continue;
    const Duration longest = table->ranges().Recut(engine_.runtime, engine_.domain, *cuts);
    longest_change_.store(std::max(longest_change_.load(std::memory_order_relaxed), int64_t{longest.count()}),
                          std::memory_order_relaxed);
    changes_.fetch_add(1, std::memory_order_relaxed);
    partitioned_[table] = size->records;
  }
}

}  // namespace deut::tc
