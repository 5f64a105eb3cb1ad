// Engine: what the paths of the record manager share: the parts of a TC, borrowed, and its figures. Built by the server (tc/server).
#ifndef TC_RECORD_MANAGER_ENGINE_H_
#define TC_RECORD_MANAGER_ENGINE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/abort_reason.h"
#include "common/base/status.h"
#include "common/observe/metrics.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "protocol/data_component.h"
#include "tc/catalogue/catalogue.h"
#include "tc/mvcc/collector.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/outcomes/outcome_table.h"
#include "tc/record_manager/conflict_options.h"
#include "tc/record_manager/scan_ahead_budget.h"
#include "tc/redo_log/redo_log.h"
#include "tc/spill/spilled_runs.h"
#include "tc/txn/active_transactions.h"
#include "tc/txn/bulk_bytes.h"

namespace deut::tc {

// What the record manager asks of the DC; implemented over the dc link (tc/server), and by tests.
class DcReader {
 public:
  virtual ~DcReader() = default;
  // As DcLink::Read: OK when every request has its own answer.
  virtual Status Read(absl::Span<DataRequest* const> requests, Deadline deadline) = 0;
  // As DcLink::TryAsk, DcLink::Take.
  virtual bool TryAsk(absl::Span<DataRequest* const> requests) = 0;
  virtual void Take(absl::Span<DataRequest* const> requests, Deadline deadline) = 0;
  // As DcLink::OpenScan.
  virtual Result<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, Deadline deadline) = 0;
  virtual Position applied() const = 0;
  // X7. Writes ask it for what their transaction has put, so that it is refused early; commits with 0, after their claim in the redo log.
  virtual bool HasSpace(uint64_t bytes) const = 0;
};

struct EngineCounters {
  // Counted by every transaction, or most.
  Counter begun;
  Counter committed;
  Counter dc_reads;
  Counter dc_scans;
  Counter chain_reads;  // point reads answered by the TC
  Counter cache_reads;  // ... from the read cache
  Counter gathered_keys;

  std::array<std::atomic<uint64_t>, kAbortReasonCount> aborts{};
  std::atomic<uint64_t> restarted{0};      // one-shot transactions, each time they were run again
  std::atomic<uint64_t> bulk_scans{0};     // of the DC, opened by scans that went on
  std::atomic<uint64_t> bulk_batches{0};   // taken from them
  std::atomic<uint64_t> log_reads{0};      // values, by point reads and scans, that were paged out (S9)
  std::atomic<uint64_t> spilled_reads{0};  // versions that were found in spilled runs (S9)
  std::atomic<uint64_t> writers_passed{
      0};  // R8: looks at an earlier uncommitted writer of the range without a key in the bounds
  std::atomic<uint64_t> pending_keys{0};   // R8: stretches that end before an uncommitted writer's key
  std::atomic<uint64_t> waits{0};          // R9: for a committing transaction
  std::atomic<uint64_t> waits_ended{0};    // ... that was committed within the time
  std::atomic<uint64_t> shared_floors{0};  // R6: reads that were remembered as reads of all keys of their bucket
  std::atomic<uint64_t> asked_again{0};    // S5: keys whose versions were collected between gather and merge
  // S9: of what transactions have pinned that are neither folded nor collected; the rest is Collector::folded_bytes.
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
  uint64_t max_transaction_bytes = uint64_t{2} << 30;  // of updates as they are logged
  // S9: of large transactions; as much again as the version budget, and one transaction (tc/txn/bulk_bytes.h).
  std::shared_ptr<BulkBytes> bulk = std::make_shared<BulkBytes>();
  OutcomeTable* outcomes = nullptr;  // none: names of transactions are not remembered
  ReadCache* read_cache = nullptr;   // none: what the DC answers is not kept
  SpilledRuns* spilled = nullptr;    // S9; none: nothing is spilled
  RangePrecision range_precision = RangePrecision::kKeys;
  Duration conflict_wait{0};  // R9; 0 = none
  RangeControl range_control = RangeControl::kRanges;
  ScanAheadBudget scan_ahead{256 << 20};
  // Streams of the DC that are open: each holds a thread there, and a place on the connection. The others ask batch by batch.
  ScanPermits scan_streams{256};
  // Transactions that were begun ahead, and nobody runs yet (begun_scan.h): a part of those that may be open.
  ScanPermits begun_scans{active.capacity() / 8};
  EngineCounters counters{};
};

// For operations that need ranges. WRONG_STATE: the engine has none.
inline Status CheckRangeControl(const Engine& engine) {
  if (engine.range_control == RangeControl::kRanges) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kWrongState, "this store was opened without range control: it has point operations only");
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_ENGINE_H_
