#include "tc/server/repartitioner.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "protocol/limits.h"
#include "tc/server/range_cuts.h"

namespace deut::tc {
namespace {

// Pieces that the DC is asked for: per range, and at least.
constexpr uint64_t kPiecesPerRange = 4;
constexpr uint64_t kMinPieces = 64;
// After a look there is none for this many times as long as it took.
constexpr int kMinLookSpacingFactor = 20;
// Written keys in each part of a range that is cut where the updates are.
constexpr size_t kKeysPerPart = 4;
// Written keys that show well enough where the updates are: per part, and at least. Each costs some cache misses.
constexpr size_t kSampledKeysPerPart = 16, kMinSampledKeys = 64;

}  // namespace

Repartitioner::Repartitioner(const RangeOptions& options, Engine& engine, DcLink& dc)
    : options_(options), engine_(engine), dc_(dc), random_(options.random_seed) {}

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

void Repartitioner::RunOnce(Deadline deadline) {
  // Frees the ranges that the last changes have replaced. This thread retires nothing else that would free them.
  engine_.domain.Collect();
  const std::vector<Catalogue::TablePointer> tables = engine_.catalogue.tables();
  if (options_.random_seed != 0) {
    // Without new transactions ranges stay as they are, so that a test can see what is left in them.
    const uint64_t begun = engine_.counters.begun.value();
    if (begun == std::exchange(begun_, begun)) return;
    for (const Catalogue::TablePointer& table : tables) CutAtRandom(*table, deadline);
    return;
  }
  // A DC that is away or busy is asked again in the next period.
  const Result<std::vector<TableInfo>> sizes = dc_.Tables(deadline);
  if (!sizes.ok()) return;
  absl::flat_hash_map<TableId, uint64_t> records;
  for (const TableInfo& size : *sizes) records.emplace(size.id, size.records);
  for (const Catalogue::TablePointer& table : tables) {
    const auto size = records.find(table->id());
    if (size == records.end()) continue;
    if (options_.fixed_ranges != 0) {
      CutIntoFixed(*table, size->second, deadline);
    } else {
      Adapt(*table, size->second, deadline);
    }
  }
  absl::erase_if(known_, [&](const auto& known) {
    return !std::ranges::binary_search(tables, known.first, {}, [](const auto& table) { return table->id(); });
  });
}

void Repartitioner::CutAtRandom(TableState& table, Deadline deadline) {
  std::vector<std::string> now, candidates;
  {
    ReclamationDomain::Guard guard(engine_.domain);
    for (const Range* range : table.map().ranges()) {
      if (!range->low().empty()) now.push_back(range->low());
      for (std::string& key : KeysWritten(engine_.domain, table, *range)) candidates.push_back(std::move(key));
    }
  }
  if (random_.OneIn(4)) {
    const Result<std::vector<std::string>> cuts = dc_.Partition(table.id(), options_.max_ranges, deadline);
    if (cuts.ok()) candidates.insert(candidates.end(), cuts->begin(), cuts->end());
  }
  Recut(table, RandomCuts(std::move(now), candidates, options_.max_ranges, random_));
}

void Repartitioner::CutIntoFixed(TableState& table, uint64_t records, Deadline deadline) {
  std::unique_ptr<Known>& known = known_[table.id()];
  if (!known) known = std::make_unique<Known>();
  if (options_.fixed_ranges < 2 || records == 0 || records < 2 * known->records) return;
  const Result<std::vector<std::string>> cuts = dc_.Partition(table.id(), options_.fixed_ranges, deadline);
  if (!cuts.ok() || cuts->empty()) return;
  Recut(table, *cuts);
  known->records = records;
}

void Repartitioner::Adapt(TableState& table, uint64_t records, Deadline deadline) {
  std::unique_ptr<Known>& slot = known_[table.id()];
  if (!slot) slot = std::make_unique<Known>();
  Known& known = *slot;
  RangeLoads& loads = known.loads;
  size_t ranges = 0;
  {
    ReclamationDomain::Guard guard(engine_.domain);
    const RangeMap& map = table.map();
    ranges = map.size();
    if (loads.lows().empty()) {
      loads.Follow(map, engine_.runtime.Now());
    } else {
      loads.Measure(map, engine_.runtime.Now());
    }
  }
  const uint64_t changed = std::max(records, known.records) - std::min(records, known.records);
  const bool moved = loads.posted() > std::max<uint64_t>(records / 4, options_.records_per_range);
  if ((8 * changed > known.records || moved) && engine_.runtime.Now() >= known.next_look) {
    Look(table, records, &known, deadline);
  }
  RangePlanOptions planning;
  planning.records_per_range = options_.records_per_range;
  planning.max_ranges = options_.max_ranges;
  // A table of one range may be cut at once. At the start no client is served yet, and later the change of one range
  // is a short wait.
  if (ranges == 1) planning.max_changed = options_.max_ranges;
  const RangePlan plan = PlanRanges(loads.loads(), planning);
  if (plan.steps.empty()) return;
  Recut(table, CutsAfter(table, loads, plan));
  ReclamationDomain::Guard guard(engine_.domain);
  loads.Follow(table.map(), engine_.runtime.Now());
}

void Repartitioner::Look(const TableState& table, uint64_t records, Known* known, Deadline deadline) {
  const MonotonicTime begin = engine_.runtime.Now();
  // Asks for some pieces for each range that there may be, so that the sum of the pieces in a range tells its number
  // of records.
  const uint64_t pieces =
      kPiecesPerRange * std::min<uint64_t>(records / options_.records_per_range, options_.max_ranges);
  Result<std::vector<std::string>> cuts = std::vector<std::string>();
  if (records >= kMinPieces) {
    cuts = dc_.Partition(table.id(), static_cast<uint32_t>(std::clamp<uint64_t>(pieces, kMinPieces, kMaxPartitions)),
                         deadline);
  }
  const MonotonicTime end = engine_.runtime.Now();
  known->next_look = end + kMinLookSpacingFactor * (end - begin);
  looks_.fetch_add(1, std::memory_order_relaxed);
  if (!cuts.ok()) return;
  known->records = records;
  known->loads.SetPieces(static_cast<double>(records), *std::move(cuts));
}

std::vector<std::string> Repartitioner::CutsAfter(const TableState& table, const RangeLoads& loads,
                                                  const RangePlan& plan) const {
  ReclamationDomain::Guard guard(engine_.domain);
  const RangeMap& map = table.map();
  // Only this thread changes ranges, so they are those of the loads and of the plan.
  DEUT_CHECK(map.size() == loads.loads().size());
  std::vector<std::string> cuts;
  auto step = plan.steps.begin();
  for (size_t i = 0; i < map.size();) {
    const Range& range = map.at(i);
    if (i != 0) cuts.push_back(range.low());
    if (step == plan.steps.end() || step->first != i) {
      ++i;
      continue;
    }
    if (step->parts > 1) {
      std::vector<std::string> advised = loads.CutsBetween(range.low(), range.high());
      if (step->hot || advised.empty()) {
        // Cuts where the updates are, if enough written keys are found. The number of parts is limited, so that each
        // has several of these keys.
        const std::vector<std::string> written =
            KeysWritten(engine_.domain, table, range, std::max(kMinSampledKeys, kSampledKeysPerPart * step->parts));
        const size_t parts = std::min(step->parts, written.size() / kKeysPerPart);
        if (parts > 1) advised = EvenCuts(written, parts);
      }
      for (std::string& cut : EvenCuts(advised, step->parts)) cuts.push_back(std::move(cut));
    }
    i += step->count;
    ++step;
  }
  DEUT_CHECK(step == plan.steps.end());
  return cuts;
}

void Repartitioner::Recut(TableState& table, const std::vector<std::string>& cuts) {
  const Duration longest = table.ranges().Recut(engine_.runtime, engine_.domain, cuts);
  if (longest == Duration{0}) return;
  longest_change_.store(std::max(longest_change_.load(std::memory_order_relaxed), int64_t{longest.count()}),
                        std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace deut::tc
