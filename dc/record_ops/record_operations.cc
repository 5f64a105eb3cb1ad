#include "dc/record_ops/record_operations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"

namespace deut::dc {
namespace {

// Number of reads whose cache misses overlap. More gain little: a processor has about this many misses in flight.
constexpr size_t kMaxReadsPerGroup = 8;

// Pages that a scan reads inside one guard. A guard keeps retired memory from being freed.
constexpr uint64_t kMaxPagesPerGuard = 4;

// Largest number of pages that a scan loads ahead of itself.
constexpr size_t kMaxPagesAhead = 8;

Status NoSuchTable(TableId table) { return DEUT_ERROR(kNotFound, "there is no table ", table.value); }

}  // namespace

RecordOperations::RecordOperations(Runtime& runtime, TableTrees& trees, LoadPool& loads, PageEvictor& evictor,
                                   const RecordOperationsOptions& options)
    : runtime_(runtime),
      trees_(trees),
      loads_(loads),
      evictor_(evictor),
      leaf_page_bytes_(options.leaf_page_bytes),
      team_(runtime, options.apply_helpers) {}

Status RecordOperations::TryRead(TableId table, std::string_view key, RecordBatch* answer, bool* missing) {
  DEUT_DCHECK(!key.empty() && key.size() <= kMaxKeyBytes);
  *missing = false;
  const ReclamationDomain::Guard guard(trees_.domain());
  const TableRegistry::Found found = trees_.registry().Find(table);
  if (found.table == nullptr) return NoSuchTable(table);
  const BwTree::Found record = found.table->tree->Read(key, answer);
  *missing = record == BwTree::Found::kNotLoaded;
  if (*missing) return Status::Ok();
  reads_.Add(1);
  if (record == BwTree::Found::kYes) records_returned_.Add(1);
  return Status::Ok();
}

void RecordOperations::TryReadSeveral(std::span<PointRead> reads) {
  while (!reads.empty()) {
    const size_t count = std::min(reads.size(), kMaxReadsPerGroup);
    TryReadGroup(reads.first(count));
    reads = reads.subspan(count);
  }
}

void RecordOperations::TryReadGroup(std::span<PointRead> reads) {
  DEUT_DCHECK(reads.size() <= kMaxReadsPerGroup);
  const ReclamationDomain::Guard guard(trees_.domain());
  std::array<std::pair<BwTree*, BwTree::Lookup>, kMaxReadsPerGroup> lookups;
  for (size_t i = 0; i < reads.size(); ++i) {
    BwTree* const tree = trees_.registry().FindTree(reads[i].table);
    lookups[i].first = tree;
    if (tree != nullptr) lookups[i].second = tree->BeginRead(reads[i].key);
  }
  for (int step = 0; step < BwTree::kReadSteps; ++step) {
    for (auto& [tree, lookup] : lookups) {
      if (tree != nullptr) tree->ContinueRead(&lookup);
    }
  }
  size_t answered = 0;
  size_t returned = 0;
  for (size_t i = 0; i < reads.size(); ++i) {
    const auto& [tree, lookup] = lookups[i];
    PointRead& read = reads[i];
    read.missing = false;
    if (tree == nullptr) {
      read.status = NoSuchTable(read.table);
      continue;
    }
    read.status = Status::Ok();
    const BwTree::Found found = tree->EndRead(lookup, read.answer);
    read.missing = found == BwTree::Found::kNotLoaded;
    answered += read.missing ? 0 : 1;
    returned += found == BwTree::Found::kYes ? 1 : 0;
  }
  reads_.Add(answered);
  records_returned_.Add(returned);
}

Status RecordOperations::Read(TableId table, std::string_view key, RecordBatch* answer) {
  for (;;) {
    bool missing = false;
    DEUT_RETURN_IF_ERROR(TryRead(table, key, answer, &missing));
    if (!missing) return Status::Ok();
    evictor_.WakeIfOverHighMark();
    evictor_.WaitForMemory(PageEvictor::Purpose::kToRead);
    DEUT_RETURN_IF_ERROR(loads_.loader().Load(table, Target(key, Side::kAt)));
  }
}

// A scan is counted once, by the call that answers it: a call that stops at a missing page returns no answer, and its
// records are found again.
Status RecordOperations::TryScan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                                 uint64_t max_pages, RecordBatch* answer, bool* missing) {
  const size_t before = answer->size();
  DEUT_RETURN_IF_ERROR(ScanPages(table, direction, cursor, budget, &max_pages, answer, missing));
  if (*missing) return Status::Ok();
  DEUT_DCHECK(answer->size() >= before);
  scans_.Add(1);
  records_returned_.Add(answer->size() - before);
  return Status::Ok();
}

Status RecordOperations::ScanPages(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                                   uint64_t* pages, RecordBatch* answer, bool* missing) {
  *missing = false;
  const auto wants_more = [&] {
    return !cursor->complete && !budget->spent &&
           (answer->empty() || (answer->size() < budget->records && answer->bytes().size() < budget->bytes));
  };
  while (*pages > 0 && wants_more() && !*missing) {
    const ReclamationDomain::Guard guard(trees_.domain());
    const TableRegistry::Found found = trees_.registry().Find(table);
    if (found.table == nullptr) return NoSuchTable(table);
    BwTree& tree = *found.table->tree;
    ScanHint hint;
    for (uint64_t in_guard = 0; in_guard < kMaxPagesPerGuard && *pages > 0 && wants_more(); ++in_guard, --*pages) {
      *missing = !(direction == Direction::kAscending ? tree.ScanAscending(cursor, budget, answer, &hint)
                                                      : tree.ScanDescending(cursor, budget, answer));
      if (*missing) break;
    }
  }
  return Status::Ok();
}

Status RecordOperations::Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                              uint64_t max_pages, RecordBatch* answer, ScanReadAhead* ahead) {
  scans_.Add(1);
  ScanReadAhead of_this_call;
  uint32_t& misses = ahead == nullptr ? of_this_call.misses : ahead->misses;
  const size_t before = answer->size();
  for (;;) {
    bool missing = false;
    DEUT_RETURN_IF_ERROR(ScanPages(table, direction, cursor, budget, &max_pages, answer, &missing));
    if (!missing) {
      records_returned_.Add(answer->size() - before);
      return Status::Ok();
    }
    evictor_.WakeIfOverHighMark();
    evictor_.WaitForMemory(PageEvictor::Purpose::kToRead);
    // The more pages a scan has missed, the more pages it loads ahead, but at most as many as it has budget for.
    uint64_t pages = std::min<uint64_t>(kMaxPagesAhead, misses == 0 ? 0 : uint64_t{1} << std::min(misses - 1, 16u));
    if (ahead == nullptr && pages != 0) {
      const uint64_t bytes = budget->bytes - std::min(budget->bytes, answer->bytes().size());
      const uint64_t records = budget->records - std::min(budget->records, answer->size());
      pages = std::min({pages, bytes / leaf_page_bytes_, records / std::max<uint64_t>(answer->size() / misses, 1)});
    }
    ++misses;
    DEUT_RETURN_IF_ERROR(LoadForScan(table, direction, *cursor, pages));
  }
}

Status RecordOperations::LoadForScan(TableId table, Direction direction, const ScanCursor& cursor, size_t pages_ahead) {
  const bool ascending = direction == Direction::kAscending;
  const Target wanted = ascending ? Target(cursor.low, Side::kAt) : Target(cursor.high, Side::kBelow);
  if (pages_ahead != 0) {
    std::vector<std::string> lows;
    {
      const ReclamationDomain::Guard guard(trees_.domain());
      const TableRegistry::Found found = trees_.registry().Find(table);
      if (found.table == nullptr) return NoSuchTable(table);
      lows = found.table->tree->FindUnloadedLeaves(wanted, ascending, pages_ahead);
    }
    // The scan does not reach the leaves beyond its end.
    if (ascending && !cursor.high.empty()) {
      std::erase_if(lows, [&](const std::string& low) { return low >= cursor.high; });
    } else if (!ascending) {
      while (lows.size() > 1 && lows[1] <= cursor.low) lows.erase(lows.begin());
    }
    if (lows.size() > 1) loads_.LoadAll(table, lows, Side::kAt);
  }
  // This costs nothing if the leaf is loaded by now.
  return loads_.loader().Load(table, wanted);
}

Result<std::vector<std::string>> RecordOperations::Partition(TableId table, uint32_t n) {
  const ReclamationDomain::Guard guard(trees_.domain());
  const TableRegistry::Found found = trees_.registry().Find(table);
  if (found.table == nullptr) return NoSuchTable(table);
  return found.table->tree->Partition(n);
}

Status RecordOperations::CheckTable(TableId table) {
  const ReclamationDomain::Guard guard(trees_.domain());
  return trees_.registry().Find(table).table == nullptr ? NoSuchTable(table) : Status::Ok();
}

void RecordOperations::AppendCounters(std::vector<CounterValue>* counters) const {
  const auto add = [counters](std::string name, uint64_t value) {
    counters->push_back(CounterValue{std::move(name), value});
  };
  add("reads", reads_.value());
  add("scans", scans_.value());
  add("records_returned", records_returned_.value());
  add("updates_applied", applied_.value());
  add("updates_duplicate", duplicates_.value());
}

}  // namespace deut::dc
