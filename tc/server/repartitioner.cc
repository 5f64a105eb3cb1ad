#include "tc/server/repartitioner.h"

#include <algorithm>

namespace deut::tc {
namespace {

// Pauses after failed exchanges grow to so many periods.
constexpr int kMaxDoublings = 4;

}  // namespace

Repartitioner::Repartitioner(Options options, Engine& engine, DcLink& dc)
    : options_(options),
      engine_(engine),
      dc_(dc),
      exchange_(engine.runtime, engine.domain, engine.active, engine.collector) {}

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
    const Duration pause = options_.period * (1 << std::min(failed_in_a_row_, kMaxDoublings));
    engine_.runtime.Wait(stop_, 0, engine_.runtime.Now() + pause);
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
  const bool exchanged = exchange_.Run(table, cuts, options_.gate);
  longest_gate_.store(exchange_.longest_gate().count(), std::memory_order_relaxed);
  failed_in_a_row_ = exchanged ? 0 : failed_in_a_row_ + 1;
  if (exchanged) exchanges_.fetch_add(1, std::memory_order_relaxed);
  return exchanged;
}

}  // namespace deut::tc
