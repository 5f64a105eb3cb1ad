// Worker: one thread's share of the load phase or of the run phase.
// Every operation is one transaction, repeated by the client's retry loop. Every value read is checked to be a whole value of its
// key (record.h); a scan must begin with the record it was asked to begin with. What is wrong ends the run with an error.
// Thread-safety: a worker belongs to its thread; WorkerCounters may be read by others at any time; results after the thread has ended.
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

// Written by the worker, read by whoever prints progress.
struct alignas(64) WorkerCounters {
  std::atomic<uint64_t> transactions{0};
  std::atomic<uint64_t> scans{0};
  std::atomic<uint64_t> writes{0};   // transactions that wrote, acknowledged
  std::atomic<uint64_t> records{0};  // read or written
  std::atomic<uint64_t> aborts{0};
  std::atomic<uint64_t> errors{0};  // tolerated ones
  // When the operation in progress began: nanoseconds of the client's clock. 0 = none is in progress.
  std::atomic<int64_t> busy_since{0};
};

// An operation with all its repetitions, whatever came of it.
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
  // Unlike the latencies, one that failed counts, too.
  TimedOperation longest;
  struct Tolerated {
    uint64_t count = 0;
    std::string example;  // the last one's message
  };
  std::map<ErrorCode, Tolerated> tolerated;
  // Made of every byte that was returned, so that none can be left unread.
  uint64_t checksum = 0;

  void Add(const WorkerResults& other);
};

// What the workers of a phase share.
struct PhaseState {
  InsertSequence* inserts = nullptr;  // run
  Journal* journal = nullptr;         // may be null
  std::atomic<uint64_t> next{0};      // load: the next record; run: transactions begun
  std::atomic<bool> stop{false};
};

class Worker {
 public:
  // `writer` is the identity in the values it writes: no other worker, of this or another process, has the same.
  Worker(Client& client, TableId table, const BenchmarkOptions& options, PhaseState& state, uint64_t writer,
         uint64_t seed);

  // Until the phase's work is done or state.stop. OK, or what must end the benchmark.
  Status Load();
  Status Run();

  WorkerCounters& counters() { return counters_; }
  const WorkerResults& results() const { return results_; }

 private:
  // Around each operation: what PhaseResult::longest and a watcher of the counters see.
  void Begin(TimedOperation* operation, OperationType type);
  void End(TimedOperation* operation, const Status& outcome);

  // One operation of the run phase; `*records` is what it read or wrote.
  Status RunOperation(OperationType type, uint64_t* records);
  Status Read(uint64_t number);
  Status Scan(uint64_t number, uint64_t wanted, uint64_t* records);
  Status ScanInOneMessage(std::string_view low, uint64_t wanted, bool* whole, uint64_t* records);
  Status ScanInBatches(std::string_view low, uint64_t wanted, uint64_t* records);
  Status ReadModifyWrite(uint64_t number);
  // Puts records number .. number + interactive_records - 1 in one transaction of as many messages.
  Status InteractiveWrite(uint64_t number);
  Status Insert();

  // The operations that put this write's records; they point into keys_ and values_.
  void MakePuts(const JournalWrite& write);
  // Puts records number .. number + count - 1 in one transaction; until it is acknowledged if errors are tolerated.
  Status Write(uint64_t number, uint32_t count);
  // Runs `attempt` (a whole transaction with its repetitions) around the journal's lines; as Write.
  template <typename Attempt>
  Status Journalled(uint64_t number, uint32_t count, Attempt attempt);

  Status CheckRecord(std::string_view key, std::string_view value);
  // The next record of a scan from the existing key `low`: in order, and the first is `low`. `*last` is the one before, `*records` how
  // many there were; both move on.
  Status CheckScanned(std::string_view key, std::string_view value, std::string_view low, std::string* last,
                      uint64_t* records);

  // Counts it and says that the run goes on, if it may.
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

  // Buffers, kept over operations.
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
