#include "tc/server/status_report.h"

#include <algorithm>

#include "common/base/concat.h"
#include "common/runtime/process_memory.h"
#include "common/sync/block_pool.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {

std::vector<CounterValue> ReportTc(const Engine& engine, const DcLinkStatus& link, const Repartitioner& repartitioner,
                                   const DiskWatchStatistics& spill_disk, size_t sessions, bool serving) {
  std::vector<CounterValue> report;
  const auto add = [&report](std::string name, uint64_t value) {
    report.push_back(CounterValue{std::move(name), value});
  };
  const auto load = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };

  // Each figure is read by itself, while transactions go on. So the figures of one report need not belong to the same
  // moment.
  add("serving", serving ? 1 : 0);
  add("sessions", sessions);
  add("transactions.open", engine.active.open_transactions());
  add("transactions.begun", engine.counters.begun.value());
  add("transactions.committed", engine.counters.committed.value());
  add("transactions.restarted", load(engine.counters.one_shots_rerun));
  for (int reason = 1; reason < kAbortReasonCount; ++reason) {
    add(Concat("transactions.aborted.", AbortReasonName(static_cast<AbortReason>(reason))),
        load(engine.counters.aborts[static_cast<size_t>(reason)]));
  }
  if (engine.outcomes != nullptr) {
    add("outcomes.entries", engine.outcomes->entries());
    add("outcomes.bytes", engine.outcomes->bytes());
    add("outcomes.asked", engine.outcomes->asked());
    add("outcomes.fenced", engine.outcomes->fenced());
  }
  add("conflicts.waits", load(engine.counters.waits));
  add("conflicts.waits_ended", load(engine.counters.waits_ended));
  add("timestamp.next", engine.active.next_timestamp().value);
  add("timestamp.oldest", engine.active.oldest().value);
  const ActiveTransactions::Oldest oldest = engine.active.held_back_by();
  const Duration held = std::max(engine.runtime.Now() - oldest.since, Duration(0));
  add("timestamp.held_back_by", oldest.timestamp.value);
  add("timestamp.held_back_ms", static_cast<uint64_t>(duration_cast<milliseconds>(held).count()));
  add("timestamp.low_water", engine.active.low_water().value);
  add("timestamp.snapshot", engine.active.proposed().value);
  add("timestamp.ahead", engine.active.latest_passing_snapshot().value);

  add("log.tail", engine.log.tail().value);
  add("log.durable", engine.log.durable().value);
  add("log.first", engine.log.first_lsn().value);
  const RedoLogCounters log = engine.log.counters();
  add("log.records", log.records);
  add("log.record_bytes", log.record_bytes);
  add("log.blocks", log.blocks);
  add("log.block_bytes", log.block_bytes);
  add("log.segments", log.segments);
  add("log.undurable_bytes", log.undurable_bytes);
  add("log.values_from_buffer", log.values_from_ring);
  add("log.values_from_kept", log.values_from_kept);
  add("log.values_from_disk", log.values_from_disk);

  add("ship.position", link.positions.ship_position.commit.value);
  add("ship.applied", link.positions.applied.commit.value);
  add("ship.stable", link.positions.stable.commit.value);
  add("ship.ever_sent", link.positions.ever_sent.commit.value);
  add("ship.redo_start", link.positions.redo_start.value);
  add("ship.backlog_bytes", link.backlog_bytes);
  add("ship.batches", link.shipped.batches);
  add("ship.updates", link.shipped.updates);
  add("ship.resent_batches", link.shipped.resent_batches);
  add("ship.in_flight_bytes", link.in_flight_bytes);
  add("dc.incarnation", link.peer.number.value);
  add("dc.incarnation_id", link.peer.incarnation.value);
  add("dc.incarnations_seen", link.connections.incarnations);
  add("dc.gate_open", link.gate_open ? 1 : 0);
  add("dc.shipping", link.shipping ? 1 : 0);
  add("dc.free_bytes", link.free_bytes);

  add("records.entries", engine.records.entries());
  add("records.entry_bytes", engine.records.entry_bytes());
  add("records.table_bytes", engine.records.table_bytes());
  add("versions.bytes", PinnedBytes(engine));
  add("versions.bulk_bytes", engine.bulk->held());
  add("versions.folded_bytes", engine.collector.folded_bytes());
  add("versions.gone_unread", engine.collector.unread());
  add("versions.paged_out", engine.collector.paged_out());
  add("versions.paged_out_bytes", engine.collector.paged_out_bytes());
  add("versions.held_back_bytes", PinnedByOldest(engine));
  add("versions.spilled", engine.collector.spilled());
  add("versions.failed_spills", engine.collector.failed_spills());
  if (engine.spilled != nullptr) {
    add("versions.spilled_runs", engine.spilled->runs());
    add("versions.spilled_now", engine.spilled->versions());
    add("versions.spilled_file_bytes", engine.spilled->file_bytes());
    add("versions.spill_merges", engine.spilled->merges());
    add("versions.failed_spill_merges", engine.spilled->failed_merges());
  }
  add("versions.spill_slow_operations", spill_disk.slow_operations);
  add("versions.spill_waiting_operations", spill_disk.slow_in_flight);
  add("versions.spill_waiting_ms", static_cast<uint64_t>(duration_cast<milliseconds>(spill_disk.oldest_age).count()));
  add("reads.spilled", engine.counters.spilled_reads.load(std::memory_order_relaxed));
  add("versions.budget_bytes", engine.version_budget_bytes);
  add("collector.waiting_transactions", engine.collector.uncollected());
  add("collector.collected_transactions", engine.collector.collected());
  add("collector.folded_transactions", engine.collector.folded());
  add("collector.deferred_entries", engine.collector.deferred_entries());
  add("memory.awaiting_reclamation_bytes", engine.domain.pending_bytes());
  add("memory.pool_bytes", BlockPool::DepotBytes());
  add("memory.resident_bytes", ResidentBytes());
  add("reads.from_versions", engine.counters.reads_from_versions.value());
  add("reads.from_cache", engine.counters.cache_reads.value());
  add("reads.from_log", load(engine.counters.log_reads));
  add("reads.from_dc", engine.counters.dc_reads.value());
  if (engine.read_cache != nullptr) {
    add("read_cache.bytes", engine.read_cache->bytes());
    add("read_cache.budget_bytes", engine.read_cache->budget_bytes());
    add("read_cache.filled", engine.read_cache->filled());
    add("read_cache.refreshed", engine.read_cache->refreshed());
    add("read_cache.evicted", engine.read_cache->evicted());
    add("read_cache.replaced", engine.read_cache->replaced());
    add("read_cache.no_room", engine.read_cache->no_room());
  }
  add("scans.batches", engine.counters.dc_scans.value());
  add("scans.bulk", load(engine.counters.bulk_scans));
  add("scans.bulk_batches", load(engine.counters.bulk_batches));
  add("scans.ahead_bytes", engine.scan_ahead.used());
  add("scans.gathered_keys", engine.counters.gathered_keys.value());
  add("scans.keys_asked_again", load(engine.counters.keys_reasked));
  add("reads.shared_floors", load(engine.counters.shared_floors) + engine.collector.shared_floors());
  add("scans.writers_passed", load(engine.counters.writers_passed));
  add("scans.pending_keys", load(engine.counters.stretches_cut_by_pending_key));
  uint64_t postings = 0;
  const std::vector<Catalogue::TablePointer> tables = engine.catalogue.tables();
  add("tables.open", tables.size());
  add("tables.limit", engine.catalogue.max_tables());
  add("tables.being_freed", engine.catalogue.dropped());
  for (const Catalogue::TablePointer& table : tables) {
    // One guard per table, so that a report on many tables does not hold reclamation back.
    ReclamationDomain::Guard guard(engine.domain);
    add(Concat("ranges.table.", table->name()), table->map().size());
    for (const Range* range : table->map().ranges()) postings += range->posting_count();
  }
  add("ranges.postings", postings);
  add("ranges.copied_postings", engine.catalogue.copied_postings());
  add("ranges.changes", repartitioner.changes());
  add("ranges.looks", repartitioner.looks());
  add("ranges.longest_change_us",
      static_cast<uint64_t>(duration_cast<microseconds>(repartitioner.longest_change()).count()));
  return report;
}

}  // namespace deut::tc
