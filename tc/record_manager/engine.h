// Engine: the parts of a TC that the paths of the record manager share, with options and counters. The server builds
// it (tc/server). Thread-safety: as each part; counters from any thread. Ownership: borrows the parts.
#ifndef TC_RECORD_MANAGER_ENGINE_H_
#define TC_RECORD_MANAGER_ENGINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/abort_reason.h"
#include "common/base/status.h"
#include "common/observe/counter.h"
#include "common/runtime/runtime.h"
#include "common/sync/process_budget.h"
#include "common/sync/reclamation.h"
#include "protocol/data_component.h"
#include "tc/catalogue/catalogue.h"
#include "tc/mvcc/collector.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/outcomes/outcome_table.h"
#include "tc/record_manager/conflict_options.h"
#include "tc/redo_log/redo_log.h"
#include "tc/scan/scan_ahead_budget.h"
#include "tc/spill/spilled_runs.h"
#include "tc/txn/active_transactions.h"
#include "tc/txn/bulk_bytes.h"

namespace deut::tc {

// The record manager's access to the DC. tc/server implements it over the DC link; tests implement it, too.
class DcReader {
 public:
  virtual ~DcReader() = default;
  // As DcLink::Read: OK when every request has an answer of its own.
  virtual Status Read(absl::Span<DataRequest* const> requests, Deadline deadline) = 0;
  // As DcLink::TryAsk, DcLink::Take.
  virtual bool TrySubmitReads(absl::Span<DataRequest* const> requests) = 0;
  virtual void CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline) = 0;
  // As DcLink::OpenScan.
  virtual Result<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, Deadline deadline) = 0;
  virtual Position applied() const = 0;
  // X7: whether the DC has room for `bytes` more. A write passes the bytes that its transaction has written, so that
  // it is refused early. A commit passes 0, after its claim in the redo log.
  virtual bool HasSpace(uint64_t bytes) const = 0;
  // As DcLink::KnowsTableOptions.
  virtual bool KnowsTableOptions() const = 0;
};

struct EngineCounters {
  // Counted by all transactions, or by most.
  Counter begun;
  Counter committed;
  Counter dc_reads;
  Counter dc_scans;
  Counter reads_from_versions;  // point reads answered by the TC
  Counter cache_reads;          // those of them answered by the read cache
  Counter gathered_keys;

  std::array<std::atomic<uint64_t>, kAbortReasonCount> aborts{};
  std::atomic<uint64_t> one_shots_rerun{0};  // re-runs of one-shot transactions
  std::atomic<uint64_t> bulk_scans{0};       // bulk scans of the DC, opened by scans that went on
  std::atomic<uint64_t> bulk_batches{0};     // batches taken from bulk scans
  std::atomic<uint64_t> log_reads{0};        // paged-out values that point reads and scans read back (S9)
  std::atomic<uint64_t> spilled_reads{0};    // versions found in spilled runs (S9)
  std::atomic<uint64_t> writers_passed{
      0};  // R8: looks at an earlier uncommitted writer of the range that had no key in the bounds
  std::atomic<uint64_t> stretches_cut_by_pending_key{0};  // R8: stretches that end before an uncommitted writer's key
  std::atomic<uint64_t> waits{0};                         // R9: waits for a committing transaction
  std::atomic<uint64_t> waits_ended{0};                   // R9: waits that ended with that commit in time
  std::atomic<uint64_t> shared_floors{0};                 // R6: reads remembered as reads of every key of their bucket
  std::atomic<uint64_t> keys_reasked{0};  // S5: keys whose versions were collected between gather and merge
  // S9: bytes pinned by transactions that are neither folded nor collected. Collector::folded_bytes has the rest.
  std::atomic<uint64_t> pinned_bytes{0};
};

struct Engine {
  Runtime& runtime;
  ReclamationDomain& domain;
  ActiveTransactions& active;
  RecordTable& records;
  Catalogue& catalogue;
  Collector& collector;
  RedoLog& log;
  DcReader& dc;
  uint64_t version_budget_bytes = uint64_t{1} << 30;
  // Its limit for versions holds instead of version_budget_bytes, which is at least as much. Null: no such limit.
  const ProcessBudget* version_limit = nullptr;
  uint64_t max_transaction_bytes = uint64_t{2} << 30;  // of updates, as they are logged
  // S9: the budget of large transactions: as much again as the version budget, plus one transaction
  // (tc/txn/bulk_bytes.h).
  std::shared_ptr<BulkBytes> bulk = std::make_shared<BulkBytes>();
  OutcomeTable* outcomes = nullptr;  // null: names of transactions are not remembered
  ReadCache* read_cache = nullptr;   // null: answers of the DC are not kept
  SpilledRuns* spilled = nullptr;    // S9; null: nothing is spilled
  ConflictOptions conflicts = {};
  ScanAheadBudget scan_ahead{256 << 20};
  // Open bulk scans of the DC. Each holds a thread there and a place on the connection. Scans without a permit ask
  // batch by batch.
  ScanPermits scan_streams{256};
  // Transactions that were begun ahead and that no session runs yet (prefetched_scan.h): a part of those that may be
  // open.
  ScanPermits prefetched_scans{active.capacity() / 8};
  EngineCounters counters{};

  // S9: the version budget of this moment.
  uint64_t version_budget() const {
    return version_limit == nullptr ? version_budget_bytes : version_limit->limit(MemoryPart::kVersions);
  }
};

// Every operation that needs ranges calls it. WRONG_STATE: the engine has no ranges.
inline Status CheckRangeControl(const Engine& engine) {
  if (engine.conflicts.range_control == RangeControl::kRanges) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kWrongState, "this store was opened without range control: it has point operations only");
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_ENGINE_H_
