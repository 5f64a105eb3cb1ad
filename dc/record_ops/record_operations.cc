#include "dc/record_ops/record_operations.h"

#include <algorithm>
#include <utility>

#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

Status NoSuchTable(TableId table) { return DEUT_ERROR(kNotFound, "there is no table ", table.value); }

}  // namespace

Result<std::unique_ptr<RecordOperations>> RecordOperations::Create(Runtime& runtime,
                                                                   const RecordOperationsOptions& options) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<MappingTable> pages, MappingTable::Create(options.max_pages));
  return std::unique_ptr<RecordOperations>(new RecordOperations(runtime, options, std::move(pages)));
}

RecordOperations::RecordOperations(Runtime& runtime, const RecordOperationsOptions& options,
                                   std::unique_ptr<MappingTable> pages)
    : pages_(std::move(pages)),
      tables_(runtime, BwTreeEnvironment{*pages_, domain_, consolidation_timestamp_}, options.tree) {}

RecordOperations::~RecordOperations() = default;

void RecordOperations::BeginStream() { consolidation_timestamp_.store(0, std::memory_order_release); }

Status RecordOperations::ApplyBatch(const LogBatch& batch, Position applied) {
  if (DEUT_OMITTED("X1.wait_for_stream")) {  // the bound as soon as it is heard of
    for (LogBatch::Iterator it(batch); it.Valid(); it.Next()) {
      if (it.entry().kind == LogEntryKind::kLowWater) ApplyLowWater(it.entry().timestamp);
    }
  }
  for (LogBatch::Iterator it(batch); it.Valid(); it.Next()) {
    const LogEntryView& entry = it.entry();
    if (entry.position <= applied) {
      if (entry.kind != LogEntryKind::kLowWater) duplicates_.Add(1);
      continue;
    }
    DEUT_RETURN_IF_ERROR(ApplyEntry(entry));
  }
  return Status::Ok();
}

Status RecordOperations::ApplyEntry(const LogEntryView& entry) {
  bool applied = false;
  switch (entry.kind) {
    case LogEntryKind::kPut:
    case LogEntryKind::kDelete: {
      const ReclamationDomain::Guard guard(domain_);
      const TableRegistry::Found found = tables_.Find(entry.table);
      if (found.state == TableRegistry::State::kUnknown) {
        return DEUT_ERROR(kCorruption, "the log entry at (", entry.position.commit.value, ", ", entry.position.sequence,
                          ") updates table ", entry.table.value, ", which was never created");
      }
      if (found.state == TableRegistry::State::kDropped) break;
      BwTree& tree = *found.table->tree;
      DEUT_ASSIGN_OR_RETURN(const BwTree::Outcome outcome, entry.kind == LogEntryKind::kPut
                                                               ? tree.Put(entry.key, entry.value, entry.version())
                                                               : tree.Delete(entry.key, entry.version()));
      applied = outcome == BwTree::Outcome::kApplied;
      break;
    }
    case LogEntryKind::kCreateTable: {
      DEUT_ASSIGN_OR_RETURN(applied, tables_.Create(entry.table, entry.key));
      break;
    }
    case LogEntryKind::kDropTable: {
      DEUT_ASSIGN_OR_RETURN(applied, tables_.Drop(entry.table));
      break;
    }
    case LogEntryKind::kLowWater:
      ApplyLowWater(entry.timestamp);
      return Status::Ok();
  }
  (applied ? applied_ : duplicates_).Add(1);
  return Status::Ok();
}

void RecordOperations::ApplyLowWater(Timestamp low_water) {
  const uint64_t seen = consolidation_timestamp_.load(std::memory_order_relaxed);
  consolidation_timestamp_.store(std::max(seen, low_water.value), std::memory_order_release);
}

Status RecordOperations::Read(TableId table, std::string_view key, RecordBatch* answer) {
  const ReclamationDomain::Guard guard(domain_);
  const TableRegistry::Found found = tables_.Find(table);
  if (found.table == nullptr) return NoSuchTable(table);
  reads_.Add(1);
  if (found.table->tree->Read(key, answer)) records_returned_.Add(1);
  return Status::Ok();
}

Status RecordOperations::Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                              uint64_t max_pages, RecordBatch* answer) {
  const size_t before = answer->size();
  scans_.Add(1);
  for (uint64_t page = 0; page < max_pages && !cursor->complete; ++page) {
    if (budget->spent ||
        (!answer->empty() && (answer->size() >= budget->records || answer->bytes().size() >= budget->bytes)))
      break;
    const ReclamationDomain::Guard guard(domain_);
    const TableRegistry::Found found = tables_.Find(table);
    if (found.table == nullptr) return NoSuchTable(table);
    if (direction == Direction::kAscending) {
      found.table->tree->ScanAscending(cursor, budget, answer);
    } else {
      found.table->tree->ScanDescending(cursor, budget, answer);
    }
  }
  records_returned_.Add(answer->size() - before);
  return Status::Ok();
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
  for (const TableRegistry::Dropped& table : now.dropped) {
    TableInfo info;
    info.id = table.id;
    info.name = table.name;
    info.dropped = true;
    infos.push_back(std::move(info));
  }
  return infos;
}

uint64_t RecordOperations::memory_bytes() {
  uint64_t bytes = domain_.pending_bytes();
  const ReclamationDomain::Guard guard(domain_);
  for (const Table* table : tables_.snapshot().live) bytes += table->tree->statistics().bytes;
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
      sum.bytes += of_tree.bytes;
      sum.consolidations += of_tree.consolidations;
      sum.lost_consolidations += of_tree.lost_consolidations;
      sum.splits += of_tree.splits;
      sum.helped_splits += of_tree.helped_splits;
    }
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
  add("consolidation_timestamp", consolidation_timestamp_.load(std::memory_order_relaxed));
  add("tables", tables);
  add("records", sum.records);
  add("memory_bytes", sum.bytes + pending);
  add("memory_pending_bytes", pending);
  add("pages", pages_->used());
  add("pages_limit", pages_->capacity());
  add("consolidations", sum.consolidations);
  add("consolidations_lost", sum.lost_consolidations);
  add("splits", sum.splits);
  add("splits_helped", sum.helped_splits);
}

}  // namespace deut::dc
