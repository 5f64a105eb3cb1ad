// Worker: one thread's share of the load phase or of the run phase.
// Every operation is one transaction, which the client's retry loop repeats. Every value read must be a whole value
// of its key (record.h), and a scan must begin with the requested record. Any violation ends the run with an error.
// Thread-safety: a worker belongs to its thread. Any thread may read its WorkerCounters at any time, and its results
// after the worker's thread has ended.
#ifndef INTEGRATION_YCSB_WORKER_H_
#define INTEGRATION_YCSB_WORKER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/observe/histogram.h"
#include "common/runtime/random.h"
#include "integration/ycsb/benchmark_options.h"
#include "integration/ycsb/insert_sequence.h"
#include "integration/ycsb/journal.h"
#include "integration/ycsb/key_chooser.h"
#include "integration/ycsb/record.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"

namespace deut::ycsb {

// The worker writes these counters; the thread that prints progress reads them.
struct alignas(64) WorkerCounters {
  std::atomic<uint64_t> transactions{0};
  std::atomic<uint64_t> scans{0};
  std::atomic<uint64_t> writes{0};   // acknowledged transactions that wrote
  std::atomic<uint64_t> records{0};  // read or written
  std::atomic<uint64_t> aborts{0};
  std::atomic<uint64_t> errors{0};  // tolerated errors
  // Begin of the operation in progress: nanoseconds of the client's clock. 0 = no operation is in progress.
  std::atomic<int64_t> busy_since{0};
};

// An operation with all its retries, whatever its outcome.
struct TimedOperation {
  Duration took{0};
  MonotonicTime begun;
  OperationType type = OperationType::kRead;
  uint64_t attempts = 0;
  ErrorCode outcome = ErrorCode::kOk;
};

struct WorkerResults {
  RetryReport report;
  Histogram latency_ns;
  std::array<Histogram, kOperationTypes> latency_ns_by_type;
  // Unlike the latencies, this includes failed operations.
  TimedOperation longest;
  struct Tolerated {
    uint64_t count = 0;
    std::string example;  // message of the last one
  };
  std::map<ErrorCode, Tolerated> tolerated;
  // Computed from the identity of every value read, so that no read can be optimised away.
  uint64_t checksum = 0;

  void Add(const WorkerResults& other);
};

// State that the workers of a phase share.
struct PhaseState {
  InsertSequence* inserts = nullptr;  // run phase only
  Journal* journal = nullptr;         // may be null
  std::atomic<uint64_t> next{0};      // load: the next record; run: number of transactions begun
  std::atomic<bool> stop{false};
};

class Worker {
 public:
  // `writer` identifies the worker in the values that it writes. No other worker, of this or another process, has the
  // same.
  Worker(Client& client, TableId table, const BenchmarkOptions& options, PhaseState& state, uint64_t writer,
         uint64_t seed);

  // Both run until the phase's work is done, or until state.stop. They return OK, or the error that must end the
  // benchmark.
  Status Load();
  Status Run();

  WorkerCounters& counters() { return counters_; }
  const WorkerResults& results() const { return results_; }

 private:
  // Called around each operation. They maintain PhaseResult::longest and the counters that other threads read.
  void Begin(TimedOperation* operation, OperationType type);
  void End(TimedOperation* operation, const Status& outcome);

  // Runs one operation of the run phase. `*records` receives the number of records read or written.
  Status RunOperation(OperationType type, uint64_t* records);
  Status Read(uint64_t number);
  Status Scan(uint64_t number, uint64_t wanted, uint64_t* records);
  Status ScanInOneMessage(std::string_view low, uint64_t wanted, bool* whole, uint64_t* records);
  Status ScanInBatches(std::string_view low, uint64_t wanted, uint64_t* records);
  Status ReadModifyWrite(uint64_t number);
  // Puts records number .. number + interactive_records - 1 in one transaction of as many messages.
  Status InteractiveWrite(uint64_t number);
  Status Insert();

  // Fills operations_ with the puts of this write; they point into keys_ and values_.
  void MakePuts(const JournalWrite& write);
  // Puts records number .. number + count - 1 in one transaction. If errors are tolerated, it retries until the write
  // is acknowledged.
  Status Write(uint64_t number, uint32_t count);
  // Runs `attempt` (a whole transaction with its retries) between the journal's lines; retries as Write does.
  template <typename Attempt>
  Status Journalled(uint64_t number, uint32_t count, Attempt attempt);

  Status CheckRecord(std::string_view key, std::string_view value);
  // Checks the next record of a scan from the existing key `low`: the first record is `low`, and all are in order.
  // `*last` is the previous key, `*records` the number of records so far; both are updated.
  Status CheckScanned(std::string_view key, std::string_view value, std::string_view low, std::string* last,
                      uint64_t* records);

  // Counts the error. Returns true if the options tolerate it, so the run continues.
  bool Tolerated(std::string_view what, const Status& status);
  RetryOptions Retrying(bool reads_only) const;
  void CountAborts();

  Client& client_;
  const TableId table_;
  const BenchmarkOptions& options_;
  PhaseState& state_;
  const uint64_t writer_;
  uint32_t sequence_ = 0;
  Random random_;
  KeyChooser chooser_;
  const RetryOptions reading_;
  const RetryOptions writing_;

  // Buffers that operations reuse.
  std::string key_;
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> answers_;

  WorkerCounters counters_;
  uint64_t counted_aborts_ = 0;
  WorkerResults results_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_WORKER_H_
