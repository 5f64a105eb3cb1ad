#include "dc/store/record_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/observe/log.h"
#include "common/testing/flight_board.h"
#include "dc/bwtree/page_memory.h"

namespace deut::dc {
namespace {

// Approximate bytes that a checkpoint writes for each page.
constexpr uint64_t kCheckpointBytesPerPage = 16;

}  // namespace

Result<std::unique_ptr<RecordStore>> RecordStore::Open(Runtime& runtime, const Location& location,
                                                       const RecordStoreOptions& options) {
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
  const std::vector<RecoveredTable> tables = std::move(recovered.tables);
  const PageId last_page = recovered.last_page;
  std::unique_ptr<RecordStore> store(new RecordStore(runtime, options, std::move(recovered)));
  DEUT_RETURN_IF_ERROR(RecoverTables(runtime, location.directory, tables, last_page, recovery,
                                     store->trees_.environment(), options.tree, &store->trees_.registry()));
  const auto is_live = [](const RecoveredTable& table) { return table.root != kNoPage; };
  DEUT_CHECK(store->trees_.Statistics().tables == static_cast<uint64_t>(std::ranges::count_if(tables, is_live)));
  DEUT_RETURN_IF_ERROR(store->Start(location));
  const auto took = duration_cast<std::chrono::milliseconds>(runtime.Now() - begin);
  store->recovery_ = RecoveryFigures{.checkpoint = progress.checkpoint,
                                     .segments = progress.segments,
                                     .inner_pages = progress.inner_pages_loaded,
                                     .milliseconds = static_cast<uint64_t>(took.count())};
  if (progress.checkpoint != 0) {
    LogInfo("recovered in ", took.count(), " ms: checkpoint ", progress.checkpoint.load(), ", ",
            progress.segments.load(), " segments, ", progress.inner_pages_loaded.load(),
            " inner pages; the redo log has the rest, from ", store->recovered().commit.value, "/",
            store->recovered().sequence);
  }
  return store;
}

RecordStore::RecordStore(Runtime& runtime, const RecordStoreOptions& options, RecoveredPages recovered)
    : runtime_(runtime),
      options_(options),
      found_(recovered.found),
      trees_(runtime, options.tree, std::move(recovered.pages), std::move(recovered.store)),
      damaged_(runtime) {
  DEUT_CHECK(found_.oldest_kept <= found_.opened);
  trees_.pages().KeepFreedIds();
}

Status RecordStore::Start(const Location& location) {
  const BwTreeEnvironment environment = trees_.environment();
  TableRegistry& tables = trees_.registry();
  SegmentStore& segments = trees_.segments();
  const auto report = [this](const Status& status) { ReportIfFatal(status); };
  DEUT_ASSIGN_OR_RETURN(loader_,
                        PageLoader::Create(runtime_, tables, trees_.domain(), segments, &damaged_, options_.loader));
  const CheckpointEnvironment checkpoints{runtime_,
                                          location.storage,
                                          location.directory,
                                          location.dc,
                                          location.incarnation,
                                          environment,
                                          trees_.gate(),
                                          tables,
                                          segments,
                                          *loader_,
                                          [this] { evictor_->WaitForMemory(PageEvictor::Purpose::kToRead); },
                                          options_.lineages};
  DEUT_ASSIGN_OR_RETURN(checkpointer_, Checkpointer::Create(checkpoints, found_));
  DEUT_CHECK(stable() == found_.stable);  // a TC that knew the incarnation before relies on it
  DEUT_ASSIGN_OR_RETURN(evictor_, PageEvictor::Create(runtime_, environment, segments, tables, tables, *loader_,
                                                      PageBudget(), options_.merge_interval, report));
  cleaner_ = std::make_unique<SegmentCleaner>(runtime_, trees_.pages(), trees_.domain(), segments,
                                              options_.store.segment_bytes, options_.cleaner, report);
  scrubber_ = std::make_unique<SegmentScrubber>(
      runtime_, trees_.pages(), trees_.domain(), segments, options_.scrubber,
      ScrubbedCheckpoints{.folder = {&location.storage, location.directory, location.dc},
                          .on_damaged_checkpoint = [this] { checkpointer_->ReplaceFiles(); }});
  if (options_.fetch_hot_pages) {
    hot_pages_ = std::make_unique<HotPages>(HotPagesEnvironment{runtime_, location.storage, location.directory,
                                                                environment, segments, tables, tables,
                                                                [this] { return evictor_->RoomToFetch(); }});
  }
  operations_ =
      std::make_unique<RecordOperations>(runtime_, trees_, *loader_, *evictor_,
                                         RecordOperationsOptions{.leaf_page_bytes = options_.tree.leaf_page_bytes,
                                                                 .apply_helpers = options_.apply_helpers});
  if (options_.process_budget != nullptr) {
    // The evictor would see a limit that has fallen only when it looks again by itself.
    registration_.emplace(*options_.process_budget, MemoryPart::kPages,
                          ProcessBudget::Reporter{
                              .bytes =
                                  [this] {
                                    const uint64_t accounted = accounted_bytes();
                                    return accounted + PageMemory::FreeBytesOf(accounted);
                                  },
                              .on_limit = [this](uint64_t) { evictor_->WakeIfOverHighMark(); },
                          });
  }
  return Status::Ok();
}

MemoryBudget RecordStore::PageBudget() {
  const auto accounted = [this] { return accounted_bytes(); };
  const ProcessBudget* const process = options_.process_budget;
  if (options_.memory_bytes.has_value() || process == nullptr)
    return PageEvictor::BudgetOfPages(accounted, options_.memory_bytes.value_or(0));
  // Until the pages are registered, at the end of Start, the budget counts them as a fixed part.
  return PageEvictor::BudgetOfPages(accounted, std::function<uint64_t()>([process] {
                                      return MemoryBudget::LimitWithin(process->limit(MemoryPart::kPages));
                                    }));
}

// The background threads end in the opposite order of their start. The evictor's asks the checkpointer for its memory,
// so it ends first. Recovery may have failed before some of them were started.
RecordStore::~RecordStore() {
  registration_.reset();
  operations_.reset();
  hot_pages_.reset();
  scrubber_.reset();
  cleaner_.reset();
  evictor_.reset();
  checkpointer_.reset();
  loader_.reset();
}

Status RecordStore::Checkpoint(const std::function<Position()>& applied, const Checkpointer::RecordKept& record_kept) {
  UnflushedUpdates& unflushed = operations_->unflushed();
  const UnflushedUpdates::Count begun = unflushed.BeginCheckpoint();
  const Status status = checkpointer_->Take(applied, record_kept);
  if (status.ok()) unflushed.EndCheckpoint(begun);  // a failed checkpoint may have written only some of them
  if (status.ok() && hot_pages_ != nullptr) hot_pages_->Record();
  ReportIfFatal(status);
  return status;
}

uint64_t RecordStore::unflushed_bytes(uint64_t plenty) {
  const uint64_t page_bytes = uint64_t{options_.tree.leaf_page_bytes} + options_.tree.inner_page_bytes;
  return operations_->unflushed().BytesNeeded(page_bytes, options_.store.segment_bytes, plenty,
                                              [this] { return trees_.TreeBytes(); });
}

bool RecordStore::CheckpointFreesSpace() const {
  const StoreTotals totals = trees_.segments().totals();
  return totals.dead_bytes + totals.left_over_bytes > 2 * kCheckpointBytesPerPage * trees_.pages().used();
}

void RecordStore::ReportIfFatal(const Status& status) {
  if (status.ok() || status == ErrorCode::kResourceExhausted || status == ErrorCode::kUnavailable) return;
  if (!failed_.exchange(true)) options_.on_failure(status);
}

void RecordStore::AppendCounters(std::vector<CounterValue>* counters) {
  const TableTrees::Sum sum = trees_.Statistics();
  {
    const ReclamationDomain::Guard guard(trees_.domain());
    damaged_.ForgetTables([this](TableId table) { return trees_.registry().FindTree(table) == nullptr; });
  }
  const auto add = [counters](std::string name, uint64_t value) {
    counters->push_back(CounterValue{std::move(name), value});
  };
  operations_->AppendCounters(counters);
  add("unflushed_bytes", unflushed_bytes(/*plenty=*/0));
  add("consolidation_timestamp", trees_.consolidation_timestamp().load(std::memory_order_relaxed));
  add("tables", sum.tables);
  add("tables_being_freed", trees_.reaper().tables());
  add("dropped_pages_freed", trees_.reaper().pages_freed());
  add("records", sum.trees.records);
  add("memory_bytes", memory_bytes());
  add("memory_limit_bytes", evictor_->limit_bytes());
  add("memory_pending_bytes", trees_.domain().pending_bytes());
  const PageMemory::Figures memory = PageMemory::figures();
  add("pages_slab_bytes", memory.slab_bytes);
  add("pages_used_bytes", memory.used_bytes);
  add("pages", trees_.pages().used());
  add("pages_limit", trees_.pages().capacity());
  add("consolidations", sum.trees.consolidations);
  add("consolidations_lost", sum.trees.lost_consolidations);
  add("recovery_checkpoint", recovery_.checkpoint);
  add("recovery_segments", recovery_.segments);
  add("recovery_inner_pages", recovery_.inner_pages);
  add("recovery_ms", recovery_.milliseconds);
  add("pages_damaged", damaged_.count());
  add("pages_loaded", loader_->loads());
  const HotPagesStatistics hot = hot_pages_ == nullptr ? HotPagesStatistics() : hot_pages_->statistics();
  add("hot_pages_listed", hot.listed);
  add("hot_pages_fetched", hot.fetched);
  add("hot_pages_bytes", hot.bytes);
  add("hot_pages_ms", hot.milliseconds);
  add("hot_pages_fetching", hot_pages_ != nullptr && !hot_pages_->ended() ? 1 : 0);
  add("pages_swapped_out", evictor_->evictions());
  add("pages_moved", evictor_->moves());
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
  const StoreTotals store = trees_.segments().totals();
  add("storage_bytes", store.written_bytes);
  add("storage_live_bytes", store.live_bytes);
  add("storage_dead_bytes", store.dead_bytes);
  add("storage_written_bytes", store.bytes_written);
  add("flushed_page_bytes", trees_.flushed().pages.load(std::memory_order_relaxed));
  add("flushed_delta_bytes", trees_.flushed().deltas.load(std::memory_order_relaxed));
  add("parts_merged", trees_.flushed().merged_parts.load(std::memory_order_relaxed));
  add("compressed_bytes_before", store.bytes_before_compression);
  add("compressed_bytes_after", store.bytes_after_compression);
  add("storage_reads", store.reads);
  add("storage_read_bytes", store.bytes_read);
  add("storage_segments", store.segments);
  add("splits", sum.trees.splits);
  add("splits_helped", sum.trees.helped_splits);
  add("merges", sum.trees.merges);
}

}  // namespace deut::dc
