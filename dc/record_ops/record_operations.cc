#include "dc/record_ops/record_operations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Number of reads whose cache misses overlap. More gain little: a processor has about this many misses in flight.
constexpr size_t kMaxReadsPerGroup = 8;

// Pages that a scan reads inside one guard. A guard keeps retired memory from being freed.
constexpr uint64_t kMaxPagesPerGuard = 4;

// Largest number of pages that a scan loads ahead of itself.
constexpr size_t kMaxPagesAhead = 8;

// The page at which a scan continues.
Target WantedPage(Direction direction, const ScanCursor& cursor) {
  return direction == Direction::kAscending ? Target(cursor.low, Side::kAt) : Target(cursor.high, Side::kBelow);
}

// The page that a scan loads next.
PageStay StayOfScanned(const ScanCursor& cursor) {
  return cursor.is_long() ? PageStay::kTransient : PageStay::kLasting;
}

Status NoSuchTable(TableId table) { return DEUT_ERROR(kNotFound, "there is no table ", table.value); }

}  // namespace

RecordOperations::RecordOperations(Runtime& runtime, TableTrees& trees, PageLoader& loader, PageEvictor& evictor,
                                   const RecordOperationsOptions& options)
    : runtime_(runtime),
      trees_(trees),
      loader_(loader),
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
    DEUT_RETURN_IF_ERROR(loader_.Load(table, Target(key, Side::kAt)));
  }
}

// A scan is counted once, by the call that completes its answer.
Result<RecordOperations::ScanStop> RecordOperations::ContinueScan(TableId table, Direction direction, ScanState* scan,
                                                                  RecordBatch* answer, const ScanTurn& turn) {
  DEUT_ASSIGN_OR_RETURN(const ScanStop stop,
                        ScanPages(table, direction, &scan->cursor, &scan->budget, &scan->pages, turn, answer));
  if (stop != ScanStop::kEnd) return stop;
  scans_.Add(1);
  records_returned_.Add(answer->size());
  return stop;
}

Result<bool> RecordOperations::StartLoad(TableId table, std::string_view key, LoadWaiter* waiter) {
  evictor_.WakeIfOverHighMark();
  return loader_.Start(table, Target(key, Side::kAt), LoadUrgency::kWhenMemory, waiter);
}

Result<bool> RecordOperations::StartLoad(TableId table, Direction direction, ScanState* scan, const RecordBatch& answer,
                                         LoadWaiter* waiter) {
  evictor_.WakeIfOverHighMark();
  const uint64_t pages_ahead = PagesAhead(scan->ahead.misses++, /*whole=*/true, scan->budget, answer);
  ReadAhead(table, direction, scan->cursor, pages_ahead);
  // From this call on the waiter may use `scan` and `answer`.
  return loader_.Start(table, WantedPage(direction, scan->cursor), LoadUrgency::kWhenMemory, waiter,
                       StayOfScanned(scan->cursor));
}

Result<RecordOperations::ScanStop> RecordOperations::ScanPages(TableId table, Direction direction, ScanCursor* cursor,
                                                               ScanBudget* budget, uint64_t* pages,
                                                               const ScanTurn& turn, RecordBatch* answer) {
  const auto wants_more = [&] {
    return *pages > 0 && !cursor->complete && !budget->spent &&
           (answer->empty() || (answer->size() < budget->records && answer->bytes().size() < budget->bytes));
  };
  const uint64_t rest_after_turn = *pages - std::min(*pages, turn.pages);
  const size_t begin = answer->bytes().size();
  const auto has_turn = [&] { return *pages > rest_after_turn && answer->bytes().size() - begin < turn.bytes; };
  while (wants_more() && has_turn()) {
    const ReclamationDomain::Guard guard(trees_.domain());
    const TableRegistry::Found found = trees_.registry().Find(table);
    if (found.table == nullptr) return NoSuchTable(table);
    BwTree& tree = *found.table->tree;
    ScanHint hint;
    for (uint64_t in_guard = 0; in_guard < kMaxPagesPerGuard && wants_more() && has_turn(); ++in_guard, --*pages) {
      const bool scanned = direction == Direction::kAscending ? tree.ScanAscending(cursor, budget, answer, &hint)
                                                              : tree.ScanDescending(cursor, budget, answer);
      if (!scanned) return ScanStop::kMissing;
      DEUT_POINT("dc.scan.page");
    }
  }
  return wants_more() ? ScanStop::kTurn : ScanStop::kEnd;
}

Status RecordOperations::Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                              uint64_t max_pages, RecordBatch* answer, ScanReadAhead* ahead, Deadline deadline) {
  scans_.Add(1);
  ScanReadAhead of_this_call;
  uint32_t& misses = ahead == nullptr ? of_this_call.misses : ahead->misses;
  const size_t before = answer->size();
  for (uint64_t pages = max_pages;;) {
    DEUT_ASSIGN_OR_RETURN(const ScanStop stop, ScanPages(table, direction, cursor, budget, &pages, ScanTurn(), answer));
    // Each page costs a wait for the disk, so the whole of max_pages would take far longer than one page.
    const bool late = pages != max_pages && deadline != kNoDeadline && runtime_.Now() >= deadline;
    if (stop == ScanStop::kEnd || late) {
      records_returned_.Add(answer->size() - before);
      return Status::Ok();
    }
    evictor_.WakeIfOverHighMark();
    evictor_.WaitForMemory(PageEvictor::Purpose::kToRead);
    ReadAhead(table, direction, *cursor, PagesAhead(misses++, /*whole=*/ahead == nullptr, *budget, *answer));
    // This costs nothing if the leaf is loaded by now.
    DEUT_RETURN_IF_ERROR(loader_.Load(table, WantedPage(direction, *cursor), StayOfScanned(*cursor)));
  }
}

// The more pages a scan has missed, the more pages it loads ahead, but at most as many as it has budget for.
uint64_t RecordOperations::PagesAhead(uint32_t misses, bool whole, const ScanBudget& budget,
                                      const RecordBatch& answer) const {
  if (misses == 0) return 0;
  const uint64_t pages = std::min<uint64_t>(kMaxPagesAhead, uint64_t{1} << std::min(misses - 1, 16u));
  if (!whole) return pages;
  const uint64_t bytes = budget.bytes - std::min<uint64_t>(budget.bytes, answer.bytes().size());
  const uint64_t records = budget.records - std::min<uint64_t>(budget.records, answer.size());
  return std::min({pages, bytes / leaf_page_bytes_, records / std::max<uint64_t>(answer.size() / misses, 1)});
}

// The leaves are loaded as continuations of nobody. The scan goes on when the first of them is there, and joins the
// load of the next one if it is faster than the disk.
void RecordOperations::ReadAhead(TableId table, Direction direction, const ScanCursor& cursor, uint64_t pages_ahead) {
  if (pages_ahead == 0) return;
  const bool ascending = direction == Direction::kAscending;
  std::vector<std::string> lows;
  {
    const ReclamationDomain::Guard guard(trees_.domain());
    const TableRegistry::Found found = trees_.registry().Find(table);
    if (found.table == nullptr) return;
    lows = found.table->tree->FindUnloadedLeaves(WantedPage(direction, cursor), ascending, pages_ahead,
                                                 ascending ? cursor.high : cursor.low);
  }
  if (!ascending) std::ranges::reverse(lows);  // the leaf that the scan reaches first
  loader_.ReadAhead(table, lows, Side::kAt);
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
