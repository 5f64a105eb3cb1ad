#include "tc/server/status_report.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/process_memory.h"
#include "common/sync/block_pool.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

class Report {
 public:
  void Add(std::string name, uint64_t value) { figures_.push_back(CounterValue{std::move(name), value}); }
  void Add(std::string name, const std::atomic<uint64_t>& counter) {
    Add(std::move(name), counter.load(std::memory_order_relaxed));
  }
  std::vector<CounterValue> Take() { return std::move(figures_); }

 private:
  std::vector<CounterValue> figures_;
};

void ReportTransactions(const Engine& engine, Report& report) {
  report.Add("transactions.open", engine.active.open_transactions());
  report.Add("transactions.begun", engine.counters.begun.value());
  report.Add("transactions.committed", engine.counters.committed.value());
  report.Add("transactions.restarted", engine.counters.one_shots_rerun);
  for (int reason = 1; reason < kAbortReasonCount; ++reason) {
    report.Add(Concat("transactions.aborted.", AbortReasonName(static_cast<AbortReason>(reason))),
               engine.counters.aborts[static_cast<size_t>(reason)]);
  }
  if (engine.outcomes != nullptr) {
    report.Add("outcomes.entries", engine.outcomes->entries());
    report.Add("outcomes.bytes", engine.outcomes->bytes());
    report.Add("outcomes.asked", engine.outcomes->asked());
    report.Add("outcomes.fenced", engine.outcomes->fenced());
  }
  report.Add("conflicts.waits", engine.counters.waits);
  report.Add("conflicts.waits_ended", engine.counters.waits_ended);
  report.Add("timestamp.next", engine.active.next_timestamp().value);
  report.Add("timestamp.oldest", engine.active.oldest().value);
  const ActiveTransactions::Oldest oldest = engine.active.held_back_by();
  const Duration held = std::max(engine.runtime.Now() - oldest.since, Duration(0));
  report.Add("timestamp.held_back_by", oldest.timestamp.value);
  report.Add("timestamp.held_back_ms", static_cast<uint64_t>(duration_cast<milliseconds>(held).count()));
  report.Add("timestamp.low_water", engine.active.low_water().value);
  report.Add("timestamp.snapshot", engine.active.proposed().value);
  report.Add("timestamp.ahead", engine.active.latest_passing_snapshot().value);
}

void ReportLog(const RedoLog& log, Report& report) {
  report.Add("log.tail", log.tail().value);
  report.Add("log.durable", log.durable().value);
  report.Add("log.first", log.first_lsn().value);
  const RedoLogCounters counters = log.counters();
  report.Add("log.records", counters.records);
  report.Add("log.record_bytes", counters.record_bytes);
  report.Add("log.blocks", counters.blocks);
  report.Add("log.block_bytes", counters.block_bytes);
  report.Add("log.segments", counters.segments);
  report.Add("log.undurable_bytes", counters.undurable_bytes);
  report.Add("log.values_from_buffer", counters.values_from_ring);
  report.Add("log.values_from_kept", counters.values_from_kept);
  report.Add("log.values_from_disk", counters.values_from_disk);
}

void ReportDcLink(const DcLinkStatus& link, Report& report) {
  report.Add("ship.position", link.positions.ship_position.commit.value);
  report.Add("ship.applied", link.positions.applied.commit.value);
  report.Add("ship.stable", link.positions.stable.commit.value);
  report.Add("ship.ever_sent", link.positions.ever_sent.commit.value);
  report.Add("ship.redo_start", link.positions.redo_start.value);
  report.Add("ship.backlog_bytes", link.backlog_bytes);
  report.Add("ship.batches", link.shipped.batches);
  report.Add("ship.updates", link.shipped.updates);
  report.Add("ship.resent_batches", link.shipped.resent_batches);
  report.Add("ship.in_flight_bytes", link.in_flight_bytes);
  report.Add("dc.incarnation", link.peer.number.value);
  report.Add("dc.incarnation_id", link.peer.incarnation.value);
  report.Add("dc.incarnations_seen", link.connections.incarnations);
  report.Add("dc.gate_open", link.gate_open ? 1 : 0);
  report.Add("dc.shipping", link.shipping ? 1 : 0);
  report.Add("dc.free_bytes", link.free_bytes);
}

void ReportVersions(const Engine& engine, const DiskWatchStatistics& spill_disk, Report& report) {
  report.Add("records.entries", engine.records.entries());
  report.Add("records.entry_bytes", engine.records.entry_bytes());
  report.Add("records.table_bytes", engine.records.table_bytes());
  report.Add("versions.bytes", PinnedBytes(engine));
  report.Add("versions.bulk_bytes", engine.bulk->held());
  report.Add("versions.folded_bytes", engine.collector.folded_bytes());
  report.Add("versions.gone_unread", engine.collector.unread());
  report.Add("versions.paged_out", engine.collector.paged_out());
  report.Add("versions.paged_out_bytes", engine.collector.paged_out_bytes());
  report.Add("versions.held_back_bytes", PinnedByOldest(engine));
  report.Add("versions.spilled", engine.collector.spilled());
  report.Add("versions.failed_spills", engine.collector.failed_spills());
  if (engine.spilled != nullptr) {
    report.Add("versions.spilled_runs", engine.spilled->runs());
    report.Add("versions.spilled_now", engine.spilled->versions());
    report.Add("versions.spilled_file_bytes", engine.spilled->file_bytes());
    report.Add("versions.spilled_memory_bytes", engine.spilled->memory_bytes());
    report.Add("versions.spilled_bytes_written", engine.spilled->spilled_bytes());
    report.Add("versions.spill_merges", engine.spilled->merges());
    report.Add("versions.spill_merge_bytes_written", engine.spilled->merged_bytes());
    report.Add("versions.failed_spill_merges", engine.spilled->failed_merges());
  }
  report.Add("versions.spill_slow_operations", spill_disk.slow_operations);
  report.Add("versions.spill_waiting_operations", spill_disk.slow_in_flight);
  report.Add("versions.spill_waiting_ms",
             static_cast<uint64_t>(duration_cast<milliseconds>(spill_disk.oldest_age).count()));
  report.Add("reads.spilled", engine.counters.spilled_reads);
  report.Add("versions.budget_bytes", engine.version_budget());
}

void ReportCollector(const Engine& engine, Report& report) {
  report.Add("collector.waiting_transactions", engine.collector.uncollected());
  report.Add("collector.collected_transactions", engine.collector.collected());
  report.Add("collector.folded_transactions", engine.collector.folded());
  report.Add("collector.deferred_entries", engine.collector.deferred_entries());
  report.Add("memory.awaiting_reclamation_bytes", engine.domain.pending_bytes());
  report.Add("memory.pool_bytes", BlockPool::DepotBytes());
  report.Add("memory.resident_bytes", ResidentBytes());
  const HeapFigures heap = FiguresOfHeap();
  report.Add("memory.heap_used_bytes", heap.used);
  report.Add("memory.heap_room_bytes", heap.room);
  report.Add("memory.heap_kept_bytes", heap.kept);
  report.Add("memory.heap_own_bytes", heap.own);
}

void ReportReads(const Engine& engine, Report& report) {
  report.Add("reads.from_versions", engine.counters.reads_from_versions.value());
  report.Add("reads.from_cache", engine.counters.cache_reads.value());
  report.Add("reads.from_log", engine.counters.log_reads);
  report.Add("reads.from_dc", engine.counters.dc_reads.value());
  if (engine.read_cache != nullptr) {
    report.Add("read_cache.bytes", engine.read_cache->bytes());
    report.Add("read_cache.budget_bytes", engine.read_cache->budget_bytes());
    report.Add("read_cache.filled", engine.read_cache->filled());
    report.Add("read_cache.refreshed", engine.read_cache->refreshed());
    report.Add("read_cache.evicted", engine.read_cache->evicted());
    report.Add("read_cache.replaced", engine.read_cache->replaced());
    report.Add("read_cache.no_room", engine.read_cache->no_room());
  }
}

void ReportScans(const Engine& engine, Report& report) {
  report.Add("scans.batches", engine.counters.dc_scans.value());
  report.Add("scans.bulk", engine.counters.bulk_scans);
  report.Add("scans.bulk_batches", engine.counters.bulk_batches);
  report.Add("scans.ahead_bytes", engine.scan_ahead.used());
  report.Add("scans.gathered_keys", engine.counters.gathered_keys.value());
  report.Add("scans.keys_asked_again", engine.counters.keys_reasked);
  report.Add("reads.shared_floors",
             engine.counters.shared_floors.load(std::memory_order_relaxed) + engine.collector.shared_floors());
  report.Add("scans.writers_passed", engine.counters.writers_passed);
  report.Add("scans.pending_keys", engine.counters.stretches_cut_by_pending_key);
}

void ReportTables(const Engine& engine, const Repartitioner& repartitioner, Report& report) {
  uint64_t postings = 0;
  const std::vector<Catalogue::TablePointer> tables = engine.catalogue.tables();
  report.Add("tables.open", tables.size());
  report.Add("tables.limit", engine.catalogue.max_tables());
  report.Add("tables.being_freed", engine.catalogue.dropped());
  for (const Catalogue::TablePointer& table : tables) {
    // One guard per table, so that a report on many tables does not hold reclamation back.
    ReclamationDomain::Guard guard(engine.domain);
    report.Add(Concat("ranges.table.", table->name()), table->map().size());
    for (const Range* range : table->map().ranges()) postings += range->posting_count();
  }
  report.Add("ranges.postings", postings);
  report.Add("ranges.copied_postings", engine.catalogue.copied_postings());
  report.Add("ranges.changes", repartitioner.changes());
  report.Add("ranges.looks", repartitioner.looks());
  report.Add("ranges.longest_change_us",
             static_cast<uint64_t>(duration_cast<microseconds>(repartitioner.longest_change()).count()));
}

}  // namespace

// Each figure is read by itself, while transactions go on. So the figures of one report need not belong to the same
// moment.
std::vector<CounterValue> ReportTc(const Engine& engine, const DcLinkStatus& link, const Repartitioner& repartitioner,
                                   const DiskWatchStatistics& spill_disk, size_t sessions, bool serving) {
  Report report;
  report.Add("serving", serving ? 1 : 0);
  report.Add("sessions", sessions);
  ReportTransactions(engine, report);
  ReportLog(engine.log, report);
  ReportDcLink(link, report);
  ReportVersions(engine, spill_disk, report);
  ReportCollector(engine, report);
  ReportReads(engine, report);
  ReportScans(engine, report);
  ReportTables(engine, repartitioner, report);
  return report.Take();
}

}  // namespace deut::tc
