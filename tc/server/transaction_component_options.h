// TransactionComponentOptions: the options of a whole TC (transaction_component.h), grouped by subject. tc_flags.h has
// the flags that set them.
#ifndef TC_SERVER_TRANSACTION_COMPONENT_OPTIONS_H_
#define TC_SERVER_TRANSACTION_COMPONENT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/runtime/time.h"
#include "common/sync/process_budget.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/record_manager/conflict_options.h"
#include "tc/record_manager/over_budget_policy.h"
#include "tc/redo_log/redo_log.h"
#include "tc/server/range_options.h"

namespace deut::tc {

// S9: the memory for updates that the DC has not applied yet.
// Fields without a value follow the process's budget (common/sync/process_budget.h); without that, the defaults here.
struct VersionMemoryOptions {
  static constexpr uint64_t kDefaultVersionBudgetBytes = uint64_t{1} << 30;
  static constexpr uint64_t kDefaultMaxTransactionBytes = uint64_t{2} << 30;

  std::optional<uint64_t> version_budget_bytes;
  // The most that one transaction may write: keys, values and 16 bytes per update. A write beyond it is refused for
  // good.
  std::optional<uint64_t> max_transaction_bytes;
  OverBudgetPolicy over_budget = OverBudgetPolicy::kRefuse;
  uint32_t log2_record_buckets = 0;  // initial size of the record table, at most 30; 0: by the version budget
  // S8: commits that have waited longer than this to be applied, and are at least this many, are folded into sorted
  // runs.
  Duration fold_after = milliseconds(10);
  size_t fold_at_least = 32;
};

// S9: the files into which committed updates that wait for the DC are spilled when they take too much memory.
struct SpillOptions {
  // Empty: "spill" in the log's directory. Files of an earlier process are removed from it at the start.
  std::string directory;
  // An operation on the files that takes longer than this is logged and counted.
  Duration slow_after = seconds(5);
};

// S7.
struct ReadCacheOptions {
  std::optional<uint64_t> bytes;  // 0: no read cache. Without a value the process's budget sets it; without that, 0
  bool written = true;            // keeps written values as well as read ones
};

// Limits on the remembered outcomes of named transactions: their number, their age, and the bytes of the log kept for
// them.
struct OutcomeOptions {
  uint64_t max_outcomes = uint64_t{1} << 20;
  Duration window = seconds(600);
  uint64_t log_bytes = uint64_t{256} << 20;
};

struct TransactionComponentOptions {
  RedoLogOptions log;  // log.directory is the TC's data directory
  DcLinkOptions dc_link;
  VersionMemoryOptions memory;
  SpillOptions spill;
  ReadCacheOptions read_cache;
  ConflictOptions conflicts = {.wait = milliseconds(1)};
  OutcomeOptions outcomes;
  RangeOptions ranges;
  // Memory for log, in place of log.ring_bytes. Without a value it is log.ring_bytes, or less with a small process budget.
  std::optional<uint64_t> log_buffer_bytes;
  // The budget of the process that this component takes part in; may be null. It outlives the component.
  ProcessBudget* process_budget = nullptr;
  uint32_t max_transactions = 4096;
  // Limit on the tables that exist at once, and on dropped tables that are not freed yet.
  uint32_t max_tables = 1 << 16;
  // An open transaction that was not used for this long is aborted.
  Duration idle_timeout = seconds(60);
  // Called once when this TC can never serve again, for a reason other than a failed log
  // (RedoLogOptions::on_failure).
  std::function<void(const Status&)> on_refused;
};

}  // namespace deut::tc

#endif  // TC_SERVER_TRANSACTION_COMPONENT_OPTIONS_H_
