#include "dc/record_ops/record_operations.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/observe/log.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Number of reads whose cache misses overlap. More gain little: a processor has about this many misses in flight.
constexpr size_t kMaxReadsPerGroup = 8;

// Approximate bytes that a checkpoint writes for each page.
constexpr uint64_t kCheckpointBytesPerPage = 16;

// With more than kMaxTablesSummedExactly tables, the sum of their bytes is reused for kSumValidFor. The sum takes some
// microseconds for a hundred tables, and every load of a page asks for it.
constexpr size_t kMaxTablesSummedExactly = 64;
constexpr Duration kSumValidFor = std::chrono::milliseconds(1);

// Pages that a scan reads inside one guard. A guard keeps retired memory from being freed.
constexpr uint64_t kMaxPagesPerGuard = 4;

// Threads that load pages for callers that need several at once.
constexpr int kLoadThreads = 8;
// Largest number of pages that a scan loads ahead of itself.
constexpr size_t kMaxPagesAhead = 8;

Status NoSuchTable(TableId table) { return DEUT_ERROR(kNotFound, "there is no table ", table.value); }

}  // namespace

Result<std::unique_ptr<RecordOperations>> RecordOperations::Open(Runtime& runtime, const Location& location,
                                                                 const RecordOperationsOptions& options) {
  const MonotonicTime begin = runtime.Now();
  RecoveryProgress of_its_own;
  RecoveryProgress& progress = location.progress == nullptr ? of_its_own : *location.progress;
  DEUT_IN_FLIGHT("dc.recovery");
  RecoveryOptions recovery;
  recovery.max_pages = options.max_pages;
  recovery.store = options.store;
  recovery.progress = &progress;
  recovery.oldest_required = location.oldest_required;
  DEUT_ASSIGN_OR_RETURN(RecoveredPages recovered,
                        RecoverPages(location.storage, runtime, location.directory, location.dc, recovery));
  const RecoveredCheckpoints found = recovered.found;
  const std::vector<RecoveredTable> tables = std::move(recovered.tables);
  const PageId last_page = recovered.last_page;
  std::unique_ptr<RecordOperations> operations(new RecordOperations(runtime, options, std::move(recovered)));
  DEUT_RETURN_IF_ERROR(RecoverTables(runtime, location.directory, tables, last_page, recovery, operations->trees(),
                                     options.tree, &operations->tables_));
  DEUT_RETURN_IF_ERROR(operations->Start(location, found));
  const auto took = duration_cast<std::chrono::milliseconds>(runtime.Now() - begin);
  operations->recovery_ = RecoveryFigures{.checkpoint = progress.checkpoint,
                                          .segments = progress.segments,
                                          .inner_pages = progress.inner_pages_loaded,
                                          .milliseconds = static_cast<uint64_t>(took.count())};
  if (progress.checkpoint != 0) {
    LogInfo("recovered in ", took.count(), " ms: checkpoint ", progress.checkpoint.load(), ", ",
            progress.segments.load(), " segments, ", progress.inner_pages_loaded.load(),
            " inner pages; the redo log has the rest, from ", found.position.commit.value, "/",
            found.position.sequence);
  }
  return operations;
}

RecordOperations::RecordOperations(Runtime& runtime, const RecordOperationsOptions& options, RecoveredPages recovered)
    : runtime_(runtime),
      on_failure_(options.on_failure),
      memory_budget_(options.memory_bytes),
      merge_interval_(options.merge_interval),
      cleaning_(options.cleaner),
      scrubbing_(options.scrubber),
      segment_bytes_(options.store.segment_bytes),
      leaf_page_bytes_(options.tree.leaf_page_bytes),
      inner_page_bytes_(options.tree.inner_page_bytes),
      recovered_(recovered.found.position),
      oldest_kept_(recovered.found.oldest_kept),
      store_(std::move(recovered.store)),
      pages_(std::move(recovered.pages)),
      reaper_(runtime),
      tables_(runtime, trees(), options.tree, &reaper_),
      damaged_(runtime),
      loader_(tables_, domain_, *store_, &damaged_),
      loads_(runtime, loader_, kLoadThreads),
      team_(runtime, options.apply_helpers) {
  pages_->KeepFreedIds();
}

BwTreeEnvironment RecordOperations::trees() {
  return BwTreeEnvironment{*pages_, domain_, consolidation_timestamp_, &gate_, store_.get()};
}

Status RecordOperations::Start(const Location& location, const RecoveredCheckpoints& found) {
  const CheckpointEnvironment checkpoints{runtime_,
                                          location.storage,
                                          location.directory,
                                          location.dc,
                                          location.incarnation,
                                          trees(),
                                          gate_,
                                          tables_,
                                          *store_,
                                          loader_,
                                          [this] { evictor_->WaitForMemory(PageEvictor::Purpose::kToRead); }};
  DEUT_ASSIGN_OR_RETURN(checkpointer_, Checkpointer::Create(checkpoints, found));
  DEUT_ASSIGN_OR_RETURN(evictor_,
                        PageEvictor::Create(
                            runtime_, trees(), *store_, tables_, tables_, loads_, [this] { return memory_bytes(); },
                            memory_budget_, merge_interval_, [this](const Status& status) { ReportIfFatal(status); }));
  cleaner_ = std::make_unique<SegmentCleaner>(runtime_, *pages_, domain_, *store_, segment_bytes_, cleaning_,
                                              [this](const Status& status) { ReportIfFatal(status); });
  scrubber_ = std::make_unique<SegmentScrubber>(runtime_, *pages_, domain_, *store_, scrubbing_);
  return Status::Ok();
}

RecordOperations::~RecordOperations() {
  scrubber_.reset();
  cleaner_.reset();
  evictor_.reset();
  checkpointer_.reset();
  reaper_.Stop();  // the domain, which freeing needs, still exists here
}

Status RecordOperations::Checkpoint(const std::function<Position()>& applied,
                                    const Checkpointer::RecordKept& record_kept) {
  const UnflushedUpdates::Count begun = unflushed_.BeginCheckpoint();
  const Status status = checkpointer_->Take(applied, record_kept);
  if (status.ok()) unflushed_.EndCheckpoint(begun);  // a failed checkpoint may have written only some of them
  ReportIfFatal(status);
  return status;
}

uint64_t RecordOperations::unflushed_bytes(uint64_t plenty) {
  const uint64_t page_bytes = uint64_t{leaf_page_bytes_} + inner_page_bytes_;
  return unflushed_.BytesNeeded(page_bytes, segment_bytes_, plenty, [this] { return TreeBytes(); });
}

bool RecordOperations::CheckpointFreesSpace() const {
  const StoreTotals totals = store_->totals();
  return totals.dead_bytes + totals.left_over_files * segment_bytes_ > 2 * kCheckpointBytesPerPage * pages_->used();
}

void RecordOperations::ReportIfFatal(const Status& status) {
  if (status.ok() || status == ErrorCode::kResourceExhausted || status == ErrorCode::kUnavailable) return;
  if (!failed_.exchange(true)) on_failure_(status);
}

Status RecordOperations::TryRead(TableId table, std::string_view key, RecordBatch* answer, bool* missing) {
  *missing = false;
  const ReclamationDomain::Guard guard(domain_);
  const TableRegistry::Found found = tables_.Find(table);
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
  const ReclamationDomain::Guard guard(domain_);
  std::array<std::pair<BwTree*, BwTree::Lookup>, kMaxReadsPerGroup> lookups;
  for (size_t i = 0; i < reads.size(); ++i) {
    BwTree* const tree = tables_.FindTree(reads[i].table);
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
    evictor_->WakeIfOverHighMark();
    evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
    DEUT_RETURN_IF_ERROR(loader_.Load(table, Target(key, Side::kAt)));
  }
}

// A scan is counted once, by the call that answers it: a call that stops at a missing page returns no answer, and its
// records are found again.
Status RecordOperations::TryScan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                                 uint64_t max_pages, RecordBatch* answer, bool* missing) {
  const size_t before = answer->size();
  DEUT_RETURN_IF_ERROR(ScanPages(table, direction, cursor, budget, &max_pages, answer, missing));
  if (*missing) return Status::Ok();
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
    const ReclamationDomain::Guard guard(domain_);
    const TableRegistry::Found found = tables_.Find(table);
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
    evictor_->WakeIfOverHighMark();
    evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
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
      const ReclamationDomain::Guard guard(domain_);
      const TableRegistry::Found found = tables_.Find(table);
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
  return loader_.Load(table, wanted);
}

Result<std::vector<std::string>> RecordOperations::Partition(TableId table, uint32_t n) {
  const ReclamationDomain::Guard guard(domain_);
  const TableRegistry::Found found = tables_.Find(table);
  if (found.table == nullptr) return NoSuchTable(table);
  return found.table->tree->Partition(n);
}

Status RecordOperations::CheckTable(TableId table) {
  const ReclamationDomain::Guard guard(domain_);
  return tables_.Find(table).table == nullptr ? NoSuchTable(table) : Status::Ok();
}

std::vector<TableInfo> RecordOperations::Tables() {
  std::vector<TableInfo> infos;
  const ReclamationDomain::Guard guard(domain_);
  const TableRegistry::Snapshot& now = tables_.snapshot();
  for (Table* table : now.live) {
    TableInfo info;
    info.id = table->id;
    info.name = table->name;
    info.records = table->tree->ApproximateRecords();
    info.bytes = table->tree->statistics().bytes;
    infos.push_back(std::move(info));
  }
  // T1: ids are drawn above the highest that was ever used. The other dropped ids add no information, and their
  // number is unlimited.
  if (!now.dropped.empty() && DEUT_STEP("T1.list_last_dropped")) {
    TableInfo info;
    info.id = now.dropped.highest();
    info.dropped = true;
    infos.push_back(std::move(info));
  }
  return infos;
}

uint64_t RecordOperations::memory_bytes() {
  return domain_.pending_bytes() + pages_->memory_bytes() + store_->table_bytes() + checkpointer_->capture_bytes() +
         TreeBytes() + reaper_.bytes();
}

uint64_t RecordOperations::TreeBytes() {
  const ReclamationDomain::Guard guard(domain_);
  const std::vector<Table*>& live = tables_.snapshot().live;
  const bool many = live.size() > kMaxTablesSummedExactly;
  const int64_t now = many ? runtime_.Now().time_since_epoch().count() : 0;
  if (many && now < tree_bytes_until_.load(std::memory_order_acquire)) {
    return tree_bytes_.load(std::memory_order_relaxed);
  }
  uint64_t bytes = 0;
  for (const Table* table : live) bytes += table->tree->statistics().bytes;
  if (many) {
    tree_bytes_.store(bytes, std::memory_order_relaxed);
    tree_bytes_until_.store(now + Duration(kSumValidFor).count(), std::memory_order_release);
  }
  return bytes;
}

void RecordOperations::AppendCounters(std::vector<CounterValue>* counters) {
  BwTreeStatistics sum;
  uint64_t tables = 0;
  {
    const ReclamationDomain::Guard guard(domain_);
    for (const Table* table : tables_.snapshot().live) {
      const BwTreeStatistics of_tree = table->tree->statistics();
      ++tables;
      sum.records += of_tree.records;
      sum.consolidations += of_tree.consolidations;
      sum.lost_consolidations += of_tree.lost_consolidations;
      sum.splits += of_tree.splits;
      sum.helped_splits += of_tree.helped_splits;
      sum.merges += of_tree.merges;
    }
    damaged_.ForgetTables([this](TableId table) { return tables_.FindTree(table) == nullptr; });
  }
  const uint64_t pending = domain_.pending_bytes();
  const auto add = [counters](std::string name, uint64_t value) {
    counters->push_back(CounterValue{std::move(name), value});
  };
  add("reads", reads_.value());
  add("scans", scans_.value());
  add("records_returned", records_returned_.value());
  add("updates_applied", applied_.value());
  add("updates_duplicate", duplicates_.value());
  add("unflushed_bytes", unflushed_bytes(/*plenty=*/0));
  add("consolidation_timestamp", consolidation_timestamp_.load(std::memory_order_relaxed));
  add("tables", tables);
  add("tables_being_freed", reaper_.tables());
  add("dropped_pages_freed", reaper_.pages_freed());
  add("records", sum.records);
  add("memory_bytes", memory_bytes());
  add("memory_pending_bytes", pending);
  add("pages", pages_->used());
  add("pages_limit", pages_->capacity());
  add("consolidations", sum.consolidations);
  add("consolidations_lost", sum.lost_consolidations);
  const StoreTotals store = store_->totals();
  add("recovery_checkpoint", recovery_.checkpoint);
  add("recovery_segments", recovery_.segments);
  add("recovery_inner_pages", recovery_.inner_pages);
  add("recovery_ms", recovery_.milliseconds);
  add("pages_damaged", damaged_.count());
  add("pages_loaded", loader_.loads());
  add("pages_swapped_out", evictor_->evictions());
  add("checkpoints", checkpointer_->taken());
  const CleanerStatistics cleaner = cleaner_->statistics();
  add("segments_cleaned", cleaner.segments);
  add("segments_unreadable", cleaner.unreadable);
  add("cleaned_bytes_read", cleaner.bytes_read);
  add("cleaned_bytes_written", cleaner.bytes_written);
  add("cleaned_bytes_freed", cleaner.bytes_freed);
  add("cleaned_copies_lost", cleaner.copies_lost);
  const ScrubberStatistics scrubber = scrubber_->statistics();
  add("scrub_rounds", scrubber.rounds);
  add("scrubbed_bytes", scrubber.bytes);
  add("scrub_errors", scrubber.errors);
  add("storage_bytes", store.written_bytes);
  add("storage_live_bytes", store.live_bytes);
  add("storage_dead_bytes", store.dead_bytes);
  add("storage_written_bytes", store.bytes_written);
  add("storage_reads", store.reads);
  add("storage_read_bytes", store.bytes_read);
  add("storage_segments", store.segments);
  add("splits", sum.splits);
  add("splits_helped", sum.helped_splits);
  add("merges", sum.merges);
}

}  // namespace deut::dc
