// Workloads whose histories the checkers judge. Each one aims at an anomaly. Some have a condition of their own that
// must hold in every state, which they check, too.
//
//   list_append        reads of short lists, and appends to them: the values show all dependencies
//   register           blind writes, updates and reads of few keys, some of them by snapshots
//   bank               transfers; sums by scans in both directions, serializable and snapshot
//   ring               each record names its successor; a transaction reorders three neighbours; the ring stays whole
//   write_skew         at most one of two switches is on: each transaction reads both and sets one
//   phantom_scan       counts a range and inserts if there is room; limited scans in both directions
//   long_fork          blind writes of single keys, and reads of all of them
//   snapshot_staleness updates, then a snapshot that must hold the client's own commit, and is whole
//   deletes            insert, update, compare-and-set, remove (by key and by range), read and scan of few keys
//   bulk               a transaction writes more keys than fit into one log record of a commit; others read them as one
//   tables             creates, uses and drops tables; a table holds only its own records
//   starvation         slow writers in a range that is scanned all the time must succeed (R11)
//   monotonic          one counter, whose values are in the order of the commit timestamps
//
// Thread-safety: several threads may call Step at once, each with its own client and generator. Errors: CORRUPTION if
// the workload's own condition does not hold; INTERNAL if a transaction is starved; otherwise those of
// RunTransaction.
#ifndef INTEGRATION_HISTORY_WORKLOADS_H_
#define INTEGRATION_HISTORY_WORKLOADS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/history/history.h"
#include "integration/history/recorder.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"

namespace deut::history {

class Workload {
 public:
  virtual ~Workload() = default;
  // Writes the state in which the first Step finds the store.
  virtual Status Load(RecordedClient&) { return Status(); }
  // Runs one transaction, with its retries.
  virtual Status Step(RecordedClient& client, Random& random) = 0;
  // Runs one transaction that reads all records of the workload, in both directions.
  virtual Status ReadAll(RecordedClient& client) = 0;
};

std::vector<std::string> WorkloadNames();
// True if the workload of this name judges the progress of its transactions. No thread may then be delayed on
// purpose.
bool MeasuresProgress(std::string_view name);
// INVALID_ARGUMENT if no workload has this name. REQUIRES: the table is empty. A history that spans a crash of the
// transaction component needs durable commits. A transaction that does not succeed within `patience` is given up.
Result<std::unique_ptr<Workload>> NewWorkload(std::string_view name, TableId table,
                                              Durability durability = Durability::kBuffered,
                                              Duration patience = seconds(20));

struct WorkloadOptions {
  uint32_t threads = 4;
  // The run ends when this time is over, when every thread has made steps_per_thread steps, or when `stop` is true.
  Duration duration = seconds(2);
  uint64_t steps_per_thread = UINT64_MAX;
  const std::atomic<bool>* stop = nullptr;
  // Other clients of the same store. The threads are spread over these and the first client.
  std::vector<Client*> more_clients = {};
  uint64_t seed = 1;
};

struct WorkloadRun {
  History history;
  // OK, the workload's own condition that did not hold, or the error that ended the run early.
  Status status;
};

// Loads, runs the steps, then reads the table once more, and records all of it. Calls `meanwhile` repeatedly during
// the run; it may pause, inject faults, or do nothing. A Step's failure other than CORRUPTION is part of the history,
// and the run continues.
WorkloadRun RunWorkload(Client& client, Workload& workload, const WorkloadOptions& options,
                        absl::FunctionRef<void()> meanwhile);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_WORKLOADS_H_
