// TransactionComponent: a whole TC: redo log, concurrency control, dc link, ranges, sessions (architecture section 1;
// rule X4 for its start).
//
// States: starting -> serving -> stopped, or -> refused (a final error: fenced, the wrong DC, ...). Open recovers the
//   log and returns. A thread then waits until the DC has applied the content of the log (X4), loads the catalogue,
//   partitions the tables, and serves. Until then, and while refused, every call returns the reason.
// Thread-safety: any thread; Stop once. Ownership: borrows runtime, storage and DC, which outlive it.
#ifndef TC_SERVER_TRANSACTION_COMPONENT_H_
#define TC_SERVER_TRANSACTION_COMPONENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/record_manager/conflict_options.h"
#include "tc/record_manager/over_budget_policy.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

struct TransactionComponentOptions {
  RedoLogOptions log;  // log.directory is the TC's data directory
  DcLinkOptions dc_link;
  uint32_t max_transactions = 4096;
  // Limit on the tables that exist at once, and on dropped tables that are not freed yet.
  uint32_t max_tables = 1 << 16;
  uint32_t log2_record_buckets = 0;  // initial size of the record table; 0: by the version budget
  uint64_t version_budget_bytes = uint64_t{1} << 30;
  // The most that one transaction may write: keys, values and 16 bytes per update. A write beyond it is refused for
  // good.
  uint64_t max_transaction_bytes = uint64_t{2} << 30;
  // S9: the directory into which committed updates that wait for the DC are spilled when they take too much memory.
  // Empty: "spill" in the log's directory. Files of an earlier process are removed from it at the start.
  std::string spill_directory;
  // An operation on those files that takes longer than this is logged and counted.
  Duration spill_slow_after = seconds(5);
  uint64_t read_cache_bytes = 0;  // S7; 0: no read cache
  bool cache_written = true;      // keeps written values as well as read ones
  OverBudgetPolicy over_budget = OverBudgetPolicy::kRefuse;
  // R8: whether a scan loses to every earlier uncommitted writer of a range, or only at that writer's keys.
  RangePrecision range_precision = RangePrecision::kKeys;
  // For measurements; daemons have no flag for it.
  RangeControl range_control = RangeControl::kRanges;
  // R9: how long an operation may wait, in all, for earlier transactions that are committing already; 0: it aborts at
  // once.
  Duration conflict_wait = milliseconds(1);
  // S8: commits that have waited longer than this to be applied, and are at least this many, are folded into sorted
  // runs.
  Duration fold_after = milliseconds(10);
  size_t fold_at_least = 32;
  // An open transaction that was not used for this long is aborted.
  Duration idle_timeout = seconds(60);
  // Limits on the remembered outcomes of named transactions: their number, their age, and the bytes of the log kept
  // for them.
  uint64_t max_outcomes = uint64_t{1} << 20;
  Duration outcome_window = seconds(600);
  uint64_t outcome_log_bytes = uint64_t{256} << 20;
  // A table has one range per records_per_range records, and more where much is updated, up to max_ranges. If
  // fixed_ranges is not 0 every table has that many.
  uint32_t records_per_range = 2000;
  uint32_t max_ranges = 8192;
  uint32_t fixed_ranges = 0;
  Duration repartition_period = milliseconds(500);
  // For tests. If not 0, all tables are cut into ranges at random, from this seed, in every period in which
  // transactions begin.
  uint64_t random_ranges_seed = 0;
  // Called once when this TC can never serve again, for a reason other than a failed log
  // (RedoLogOptions::on_failure).
  std::function<void(const Status&)> on_refused;
};

class TransactionComponent final : public TransactionService {
 public:
  // CORRUPTION, UNAVAILABLE (directory locked), or IO_ERROR from the log. Needs no DC.
  static Result<std::unique_ptr<TransactionComponent>> Open(TransactionComponentOptions options, Runtime& runtime,
                                                            Storage& storage, DataComponent& dc);
  ~TransactionComponent() override;

  // From now on nothing is begun, and every thread that waits for the DC or for collection gets UNAVAILABLE at once.
  // Without this a server that waits for its handlers before Stop would wait as long as they do. Any thread, any
  // number of times.
  void BeginStop();
  // BeginStop; then aborts open transactions and writes the log out. Sessions must have ended, or may only be
  // destroyed afterwards.
  void Stop();

  // Returns OK once the TC serves, the final error if it is refused, and at the deadline UNAVAILABLE, with the state
  // that it is in.
  Status WaitServing(Deadline deadline);

  bool LosesAnswers() const override { return false; }
  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<Lsn> AwaitDurable(Lsn at, Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<std::string> NameOfTable(TableId table) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override;
  Status DropCaches(Deadline deadline) override;

 private:
  struct Parts;
  // Waits until everything that has finished so far is at the DC, and is gone from here except for the read cache.
  Status WaitCollected(Deadline deadline);
  explicit TransactionComponent(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_TRANSACTION_COMPONENT_H_
