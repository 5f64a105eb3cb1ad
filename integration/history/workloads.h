// Workloads whose histories the checkers judge, each aimed at an anomaly. Some know a condition of their own that must hold in every state,
// which is then checked besides.
//
//   list_append        reads of and appends to short lists: all dependencies can be read from the values
//   register           blind writes, updates and reads of few keys, snapshots among them
//   bank               transfers; sums by scans up and down, serializable and snapshot
//   ring               records that name their next one; three neighbours change places; the ring stays whole
//   write_skew         of two switches at most one is on: each transaction looks at both and sets one
//   phantom_scan       counts a range and inserts if there is room; limited scans, both directions
//   long_fork          blind writes of single keys, and reads of all of them
//   snapshot_staleness updates, then a snapshot that must hold one's own commit, and is whole
//   deletes            insert, update, compare-and-set, remove, by key and by range, read and scan of few keys
//   bulk               many keys are written in one transaction, so that a commit does not fit into one record of the log, and read as one
//   tables             tables are created, used and dropped; what a table holds is its own
//   starvation         slow writers in a range that is scanned all the time: they get through (R11)
//   monotonic          one counter: its values are in the order of the commit timestamps
//
// Thread-safety: Step from several threads at once, each with its own client and generator. Errors: CORRUPTION if the workload's own
// condition does not hold; INTERNAL if a transaction is starved; otherwise those of RunTransaction.
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
  // What is there before the first Step.
  virtual Status Load(RecordedClient&) { return Status(); }
  // One transaction, with its repetitions.
  virtual Status Step(RecordedClient& client, Random& random) = 0;
  // One transaction that reads all there is, in both directions.
  virtual Status ReadAll(RecordedClient& client) = 0;
};

std::vector<std::string> WorkloadNames();
// Whether the workload of this name judges who gets on, and how fast: then nobody may be held up on purpose.
bool MeasuresProgress(std::string_view name);
// INVALID_ARGUMENT if there is none of this name. The table is empty. A history that goes over a crash of the transaction component needs
// durable commits. A transaction that does not succeed within `patience` is given up.
Result<std::unique_ptr<Workload>> NewWorkload(std::string_view name, TableId table,
                                              Durability durability = Durability::kBuffered,
                                              Duration patience = seconds(20));

struct WorkloadOptions {
  uint32_t threads = 4;
  // The run ends when this time is over, when every thread has made so many steps, or when `stop` is true.
  Duration duration = seconds(2);
  uint64_t steps_per_thread = UINT64_MAX;
  const std::atomic<bool>* stop = nullptr;
  // Other clients of the same store, which the threads use in turn with the first one.
  std::vector<Client*> more_clients = {};
  uint64_t seed = 1;
};

struct WorkloadRun {
  History history;
  // OK, or the workload's own condition that did not hold, or what kept the run from its end.
  Status status;
};

// Loads, runs, then reads the table once more; all of it recorded. `meanwhile` is called again and again while it runs (may pause, do
// harm, or nothing). A Step's failure other than CORRUPTION is part of the history and goes on.
WorkloadRun RunWorkload(Client& client, Workload& workload, const WorkloadOptions& options,
                        absl::FunctionRef<void()> meanwhile);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_WORKLOADS_H_
