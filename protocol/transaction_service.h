// TransactionService: the interface between clients and a transaction component (TC). It has two implementations: the
// TC itself (tc/server), and a gRPC client of a TC in another process (grpc_transaction_service.h). tc/client uses this
// interface alone, so embedded and networked use share one code.
//
// A session runs one transaction at a time. A session that ends, because its object is destroyed or its connection is
// lost, aborts its open transaction. A one-shot transaction brings all its operations in one call. Everything that a
// client sees before its commit is acknowledged is provisional (D1).
// Thread-safety: only one thread at a time may use a session. Any thread may call a TransactionService.
#ifndef PROTOCOL_TRANSACTION_SERVICE_H_
#define PROTOCOL_TRANSACTION_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/transaction_id.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "protocol/operation.h"
#include "protocol/table_options.h"

namespace deut {

enum class Isolation : uint8_t {
  kSerializable = 0,  // strict: ordered after everything acknowledged before it began
  kSnapshot = 1,      // read-only; tracks nothing; no conflict aborts it; as stale as the oldest writer is old (L2)
};

enum class Durability : uint8_t {
  kDurable = 0,   // acknowledged when the transaction, and everything it has read, is on stable storage
  kBuffered = 1,  // acknowledged when its place in the order is fixed; lost if the TC dies within the next moments
};

// The name under which a client can ask for a transaction's outcome (AskOutcome). The client library makes one for each
// transaction.
struct TransactionName {
  TransactionId id;  // unset: the transaction has no name
  // A lower bound of the transaction's timestamp: TransactionSession::not_before() when the name was made. The later it
  // is, the longer AskOutcome can answer for this name.
  Timestamp not_before;
};

struct DeclaredKey {
  TableId table;
  std::string key;
};

struct TransactionOptions {
  Isolation isolation = Isolation::kSerializable;
  Durability durability = Durability::kDurable;
  // Snapshot only: Begin waits, until its deadline, until the snapshot contains this commit (the client's own last
  // one).
  Timestamp min_timestamp;
  // Keys that the transaction is going to write (R11). They protect a retried transaction against later readers of
  // their ranges.
  std::vector<DeclaredKey> declared;
  TransactionName name = {};
};

struct CommitAnswer {
  Timestamp timestamp;  // the transaction's place in the serial order
  Lsn commit_lsn;       // 0 for a transaction that wrote nothing
};

enum class TransactionOutcome : uint8_t {
  kCommitted = 0,
  kNotCommitted = 1,  // and it can never commit afterwards
  kTooOld = 2,        // unknown: the TC does not remember outcomes for that long
};

struct OutcomeAnswer {
  TransactionOutcome outcome = TransactionOutcome::kTooOld;
  CommitAnswer commit = {};  // only with kCommitted
};

// The state of a transaction that consists of one scan, after its first batch.
struct ScanBegun {
  bool over = false;    // true: the transaction has committed; false: it is open
  CommitAnswer answer;  // with `over` = false only its timestamp is set
};

// A transaction that was begun before its thread runs it (PrefetchNotes::Begin). Its destructor ends the transaction, of
// which no client has seen anything.
class BegunOneShot {
 public:
  virtual ~BegunOneShot() = default;
};

class PipelinedSteps;
class PrefetchSteps;

class TransactionSession {
 public:
  virtual ~TransactionSession() = default;

  // A lower bound of the timestamps of all transactions that will begin on this session. Sends nothing.
  virtual Timestamp not_before() const = 0;

  // Returns the transaction's timestamp. A snapshot reads below its timestamp.
  virtual Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) = 0;

  // Runs the operations in order, and stores one result for each. These failures leave the transaction open:
  // - ALREADY_EXISTS, NOT_FOUND, CONDITION_FAILED and INVALID_ARGUMENT,
  // - any failure of a scan that has `prefetch` set.
  // After ABORTED, or any other failure, the transaction is aborted. The operations behind the failed one do not run;
  // their status is WRONG_STATE. Returns the status that ended the call early, else OK. `results` may hold earlier
  // results, whose buffers are reused.
  virtual Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                         Deadline deadline) = 0;

  // For PipelinedCall (pipelined_call.h). Null: this session cannot send operations before their caller waits.
  virtual PipelinedSteps* pipelined_steps() { return nullptr; }
  // For PrefetchNotes (prefetch.h). Null: this session does not prefetch.
  virtual PrefetchSteps* prefetch_steps() { return nullptr; }

  virtual Result<CommitAnswer> Commit(Deadline deadline) = 0;
  virtual Status Abort() = 0;

  // Begin, Execute and Commit in one message. Unless every operation succeeds, the transaction writes nothing, and the
  // call returns the first failure with the results so far. For a failed precondition it does so after a read-only
  // commit (D1). `results` may hold earlier results; they are dropped, as in Execute.
  virtual Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                              std::vector<OperationResult>* results, Deadline deadline) = 0;

  // Begins a transaction that consists of one scan, and reads the first batch into results[0]. If that batch is the
  // last one (IsOver), it also commits. Else the transaction stays open, like any other. If the call fails, no
  // transaction is open. As in ExecuteOneShot, the TC may have retried it after a lost conflict.
  virtual Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan,
                                      std::vector<OperationResult>* results, Deadline deadline) {
    DEUT_ASSIGN_OR_RETURN(const Timestamp timestamp, Begin(options, deadline));
    if (Status executed = Execute(absl::MakeConstSpan(&scan, 1), results, deadline); !executed.ok()) {
      (void)Abort();  // some failures leave the transaction open
      return executed;
    }
    if (results->size() != 1 || !results->front().status.ok()) {
      (void)Abort();  // for the caller the transaction is over either way
      if (results->size() == 1) return results->front().status;
      return DEUT_ERROR(kInternal, "asked for a batch of a scan, got ", results->size(), " results");
    }
    if (!IsOver(scan, results->front())) return ScanBegun{.answer = {.timestamp = timestamp, .commit_lsn = {}}};
    DEUT_ASSIGN_OR_RETURN(const CommitAnswer answer, Commit(deadline));
    return ScanBegun{.over = true, .answer = answer};
  }

  // Like ExecuteOneShot, but it does not wait for the disk; for a server that answers many calls. If *durable_at is not
  // 0 afterwards, the caller must not show the end of the answer yet. It first waits until
  // TransactionService::AwaitDurable has returned a position above *durable_at (D1). If that fails, a commit that wrote
  // something ends with OUTCOME_UNKNOWN, and any other call with the failure.
  // `begun`: null, or the transaction's first attempt, begun by PrefetchNotes::Begin on any session of the service.
  virtual Result<CommitAnswer> ExecuteOneShotWithoutWait(const TransactionOptions& options,
                                                         absl::Span<const Operation> operations,
                                                         std::vector<OperationResult>* results, Deadline deadline,
                                                         Lsn* durable_at, std::unique_ptr<BegunOneShot> begun) {
    begun.reset();
    *durable_at = Lsn(0);
    return ExecuteOneShot(options, operations, results, deadline);
  }
};

// The counters that `deut status` shows: free-form name/value pairs. tc/README.md and dc/README.md document the names.
struct ServiceStatus {
  std::vector<CounterValue> tc;
  std::vector<CounterValue> dc;
};

class TransactionService {
 public:
  virtual ~TransactionService() = default;
  // Whether a call may have been carried out although its answer was lost. False where the component is in the caller's
  // process. There, a buffered commit, which waits for nothing, always answers, so no client asks for its outcome.
  virtual bool LosesAnswers() const { return true; }
  virtual Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) = 0;
  // The outcome of the named transaction, for a client that has lost the answer to its commit. A transaction reported
  // as committed is durable. A transaction that has not committed can never commit afterwards, so the question ends a
  // transaction that still runs. A transaction that wrote nothing leaves no trace: it is "not committed".
  // DEADLINE_EXCEEDED: the transaction is committed, or about to be, but not durable yet.
  virtual Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) = 0;
  // For ExecuteOneShotWithoutWait: waits until the log at position `at` is durable, and returns the LSN before which
  // everything is durable by then.
  virtual Result<Lsn> AwaitDurable(Lsn /*at*/, Deadline /*deadline*/) {
    return Status(ErrorCode::kWrongState, "this service waits for durability by itself");
  }
  // Returns the name of an existing table, else NOT_FOUND. The rights check uses it, because rights name tables. It
  // returns at once and does not ask the DC.
  virtual Result<std::string> NameOfTable(TableId /*table*/) {
    return Status(ErrorCode::kWrongState, "this service does not tell names of tables");
  }
  virtual Result<TableId> OpenTable(std::string_view name, Deadline deadline) = 0;
  virtual Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) = 0;
  virtual Status DropTable(std::string_view name, Deadline deadline) = 0;
  virtual Result<std::vector<TableInfo>> ListTables(Deadline deadline) = 0;
  virtual Result<ServiceStatus> GetStatus(Deadline deadline) = 0;
  // Empties the TC's caches of versions that the DC has, so that reads go to the DC. It waits until all transactions
  // finished before the call are applied and collected; the caches may keep later versions again. DEADLINE_EXCEEDED
  // says what the call still waited for. For tests and measurements.
  virtual Status DropCaches(Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTION_SERVICE_H_
