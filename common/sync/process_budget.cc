#include "common/sync/process_budget.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/memory_limit.h"

namespace deut {
namespace {

// However much the fixed parts take, this part of the budget is left to pages and cached records.
constexpr uint64_t kLeastElasticDivisor = 16;
constexpr uint64_t kLeastVersionsDivisor = 16;
constexpr uint64_t kMaxVersionsDivisor = 4;
// At most this part of the least of the versions is kept free.
constexpr uint64_t kMaxKeptFreeBytes = uint64_t{16} << 20;
// Cached records may take this part of the elastic bytes more until the next measurement.
constexpr uint64_t kCacheStepDivisor = 32;
// Pages that fill their limit take less than it: by the room that their slabs may have besides, but never less than
// kLeastFullBytes (dc/page_cache/memory_budget.h). So both marks at which pages fit, or do not, are lower by that room.
// Otherwise pages that are cut to a small limit would seem to fit.
constexpr uint64_t kRoomOfSlabs = uint64_t{32} << 20;
constexpr uint64_t kLeastFullBytes = uint64_t{6} << 20;
constexpr uint64_t kLeastFittingBytes = uint64_t{4} << 20;
// A return that gains this part of the budget is repeated at the next measurement.
constexpr uint64_t kMuchReturnedDivisor = 64;
constexpr uint64_t kMaxTransactionBytes = uint64_t{2} << 30;
constexpr uint64_t kMinLogBufferBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxLogBufferBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxScanAheadBytes = uint64_t{256} << 20;

uint64_t Less(uint64_t from, uint64_t bytes) { return from - std::min(from, bytes); }

}  // namespace

MemorySplit SplitMemory(uint64_t budget, const MemoryUse& use, bool pages_fit) {
  const uint64_t pages = use.of(MemoryPart::kPages);
  const uint64_t versions = use.of(MemoryPart::kVersions);
  const uint64_t cached = use.of(MemoryPart::kCachedRecords);
  const uint64_t least_versions = budget / kLeastVersionsDivisor;
  MemorySplit split;
  // The versions that are there are among the bytes that are not elastic. A few bytes of their least are kept free:
  // versions may take them before the next measurement, even if there is no free memory.
  const uint64_t kept_free = std::min(least_versions, kMaxKeptFreeBytes);
  const uint64_t not_elastic = Less(use.resident, pages + cached) + (use.has_versions ? Less(kept_free, versions) : 0);
  const uint64_t elastic = std::max(Less(budget, not_elastic), budget / kLeastElasticDivisor);
  const uint64_t free = Less(budget, use.resident);
  split.versions = std::clamp(versions + free / 2, least_versions, budget / kMaxVersionsDivisor);
  if (!use.has_pages) {
    split.pages = elastic;  // for pages that are about to be registered
    split.cached_records = elastic / 15 * 14;
    return split;
  }
  // A limit of cached records holds until the next measurement. Pages yield by that much now, so that the two never take
  // more than the elastic bytes; and no further, so that nothing is evicted for records that nobody reads.
  const uint64_t share = std::min(elastic / 4 + use.heap_room / 2, elastic / 2);
  const uint64_t next_cached = std::min(share, cached + elastic / kCacheStepDivisor);
  const auto pages_beside = [&](uint64_t cache_limit) { return Less(elastic, std::max(cached, cache_limit)); };
  const uint64_t most = pages_beside(pages_fit ? 0 : next_cached);
  split.pages_fit = pages_fit;
  if (pages < std::max(Less(elastic / 2, kRoomOfSlabs), kLeastFittingBytes)) split.pages_fit = true;
  if (pages >= std::max(Less(most / 4 * 3, kRoomOfSlabs), kLeastFullBytes)) split.pages_fit = false;
  split.cached_records = split.pages_fit ? 0 : next_cached;
  split.pages = pages_beside(split.cached_records);
  return split;
}

Status ProcessBudget::Check(std::optional<uint64_t> wanted) {
  if (wanted.value_or(0) == 0 || *wanted >= kMinBytes) return Status::Ok();
  return DEUT_ERROR(kInvalidArgument, "a memory budget (--memory) of ", *wanted, " bytes is too small: it is at least ",
                    kMinBytes >> 20, " MiB; 0 is no budget");
}

std::unique_ptr<ProcessBudget> ProcessBudget::Open(Runtime& runtime, std::optional<uint64_t> wanted) {
  const MemoryLimit limit = ReadMemoryLimit();
  const uint64_t bytes = wanted.has_value() ? *wanted : limit.bytes == UINT64_MAX ? 0 : limit.bytes / 2;
  if (bytes == 0) return nullptr;
  std::string origin = wanted.has_value() ? "--memory" : Concat("half of ", limit.name, "; --memory sets another");
  auto budget = std::make_unique<ProcessBudget>(runtime, bytes, Process(), std::move(origin));
  budget->Start();
  return budget;
}

ProcessBudget::ProcessBudget(Runtime& runtime, uint64_t bytes, Process process, std::string origin)
    : runtime_(runtime), bytes_(bytes), process_(std::move(process)), origin_(std::move(origin)), mutex_(runtime) {
  Measure();
}

ProcessBudget::~ProcessBudget() {
  stop_.store(1, std::memory_order_seq_cst);
  runtime_.WakeAll(stop_);
  thread_.reset();
}

void ProcessBudget::Start() {
  thread_ = runtime_.StartThread("memory-budget", [this] {
    while (stop_.load(std::memory_order_seq_cst) == 0) {
      Measure();
      runtime_.Wait(stop_, 0, runtime_.Now() + kInterval);
    }
  });
}

MemoryUse ProcessBudget::Use() {
  MemoryUse use;
  for (const Registration* each = registered_; each != nullptr; each = each->next_) {
    use.parts[static_cast<size_t>(each->part_)] += each->reporter_.bytes();
    use.has_pages = use.has_pages || each->part_ == MemoryPart::kPages;
    use.has_versions = use.has_versions || each->part_ == MemoryPart::kVersions;
  }
  const uint64_t reported = std::accumulate(use.parts.begin(), use.parts.end(), uint64_t{0});
  // Measured last: a part that grows meanwhile is then counted as a fixed part, which is on the safe side.
  use.resident = process_.resident_bytes();
  use.heap_room = heap_room_;
  if (use.resident != 0) {
    fixed_ = Less(use.resident, reported);
  } else {
    use.resident = reported + fixed_;
  }
  return use;
}

void ProcessBudget::Measure() {
  const MutexLock lock(mutex_);
  if (runtime_.Now() >= next_decay_) {
    process_.return_freed_long_ago();
    heap_room_ = process_.heap_room();
    next_decay_ = runtime_.Now() + kDecayInterval;
  }
  MemoryUse use = Use();
  if (use.resident > bytes_ && runtime_.Now() >= next_return_) {
    const uint64_t before = use.resident;
    process_.return_freed();
    use = Use();
    const bool much = Less(before, use.resident) >= bytes_ / kMuchReturnedDivisor;
    next_return_ = runtime_.Now() + (much ? kInterval : kReturnInterval);
  }
  const MemorySplit split = SplitMemory(bytes_, use, pages_fit_);
  pages_fit_ = split.pages_fit;
  const std::array<uint64_t, kMemoryParts> limits = {split.pages, split.versions, split.cached_records};
  for (size_t i = 0; i < kMemoryParts; ++i) limits_[i].store(limits[i], std::memory_order_relaxed);
  for (const Registration* each = registered_; each != nullptr; each = each->next_) {
    if (each->reporter_.on_limit) each->reporter_.on_limit(limits[static_cast<size_t>(each->part_)]);
  }
}

std::string ProcessBudget::Describe() const { return Concat("memory budget ", bytes_ >> 20, " MiB (", origin_, ")"); }

uint64_t ProcessBudget::transaction_bytes() const { return std::min(bytes_ / 4, kMaxTransactionBytes); }
uint64_t ProcessBudget::log_buffer_bytes() const {
  return std::clamp(std::bit_floor(bytes_ / 64), kMinLogBufferBytes, kMaxLogBufferBytes);
}
uint64_t ProcessBudget::scan_ahead_bytes() const { return std::min(bytes_ / 16, kMaxScanAheadBytes); }

ProcessBudget::Registration::Registration(ProcessBudget& budget, MemoryPart part, Reporter reporter)
    : budget_(budget), part_(part), reporter_(std::move(reporter)) {
  {
    const MutexLock lock(budget_.mutex_);
    next_ = budget_.registered_;
    budget_.registered_ = this;
  }
  budget_.Measure();
}

ProcessBudget::Registration::~Registration() {
  const MutexLock lock(budget_.mutex_);
  Registration** link = &budget_.registered_;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

}  // namespace deut
