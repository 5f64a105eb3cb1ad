// TransactionService: the interface between clients and a transaction component. Implementations: the TC itself (tc/server), and a
// gRPC client to a TC in another process (grpc_transaction_service.h). tc/client is written against it, so embedded and networked
// use are the same code.
//
// A session carries one transaction at a time, in order, and belongs to one thread at a time. A session that ends (its object
// destroyed, its connection lost) aborts its open transaction. One-shot transactions bring all their operations in one call.
// Everything shown before the commit is acknowledged is provisional (D1).
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
#include "protocol/record_batch.h"

namespace deut {

enum class Isolation : uint8_t {
  kSerializable = 0,  // strict: ordered after everything that was acknowledged before it began
  kSnapshot =
      1,  // read-only; tracks nothing, never aborts, never causes an abort; as stale as the oldest writer is old (L2)
};

enum class Durability : uint8_t {
  kDurable = 0,   // acknowledged when it, and all it has read, is on stable storage
  kBuffered = 1,  // acknowledged when ordered; lost if the TC dies within the next moments
};

// What a transaction is called, so that its outcome can be asked for (AskOutcome). The client library makes one for each.
struct TransactionName {
  TransactionId id;  // not given: no name
  // The transaction's timestamp is not below this: TransactionSession::not_before() when the name was made. The later it is, the longer the
  // question can be answered.
  Timestamp not_before;
};

struct DeclaredKey {
  TableId table;
  std::string key;
};

struct TransactionOptions {
  Isolation isolation = Isolation::kSerializable;
  Durability durability = Durability::kDurable;
  // Snapshot only: wait (to the deadline) until the snapshot contains this commit (the client's own last one).
  Timestamp min_timestamp;
  // Keys the transaction is going to write (R11): protects a retried transaction against later readers of their ranges.
  std::vector<DeclaredKey> declared;
  TransactionName name = {};
};

enum class OperationKind : uint8_t {
  kGet = 0,
  kPut = 1,     // blind: writes whether the key is there or not
  kInsert = 2,  // ALREADY_EXISTS if the key is there
  kUpdate = 3,  // NOT_FOUND if it is not
  kRemove = 4,  // blind: absent afterwards; reports nothing
  kScan = 5,    // one batch of [low, high)
  // Atomic changes of a number (number.h): `value` is the operand, eight bytes. The result's record is what the key has then.
  // INVALID_ARGUMENT if the key has a value of another length.
  kAdd = 6,  // wraps; an absent key counts as 0
  kMin = 7,  // the lesser of both, signed; an absent key becomes the operand
  kMax = 8,  // the greater of both
  kCompareAndSet =
      9,  // writes `value` if the key has `expected` (or is absent, with expect_absent), else CONDITION_FAILED; the result's record
          // is then what it has
  kRemoveRange =
      10,  // removes the keys of one batch of [low, high); limits, complete and resume as of a scan, the records are not sent
};

// Where the transaction's timestamp is written into an operation's bytes: eight bytes, most significant first, so that they sort by commit order.
enum class Stamp : uint8_t {
  kNone = 0,
  kKey = 1,
  kValue = 2,
};
constexpr uint32_t kStampBytes = 8;

struct Operation {
  OperationKind kind = OperationKind::kGet;
  TableId table = {};
  std::string_view key = {};
  std::string_view value = {};
  // kScan: as DataRequest. At most limit_records records (0 = no limit but bytes) and about limit_bytes bytes.
  std::string_view low = {};
  std::string_view high = {};
  Direction direction = Direction::kAscending;
  uint32_t limit_records = 0;
  uint32_t limit_bytes = 256 << 10;
  // The scan announces updates of what it reads (SIX, R3).
  bool for_update = false;
  // 0 opens a scan; a scan that goes on passes OperationResult::scan_sequence of its first batch: of the transaction's own writes
  // it sees those made before the scan was opened (R10).
  uint32_t scan_sequence = 0;
  // kScan: nobody waits for this batch yet, and perhaps nobody will. If it fails, whatever the reason, the transaction stays open as if it had not
  // been asked for; who wants it then asks again, without this.
  bool ahead = false;
  // kCompareAndSet.
  std::string_view expected = {};
  bool expect_absent = false;
  // kPut, kInsert: bytes [stamp_offset, stamp_offset + 8) of the key or the value are replaced by the timestamp. The result's record then has
  // the key as written, and no value.
  Stamp stamp = Stamp::kNone;
  uint32_t stamp_offset = 0;
};

struct OperationResult {
  Status status;
  // kGet, atomic operations, stamped ones: 0 or 1 record; kScan: the batch. Versions are those of the records (or upper bounds).
  RecordBatch records;
  // kRemoveRange: how many keys were there.
  uint32_t removed = 0;
  // kScan, kRemoveRange: complete, or the resume key: ascending, the next low; descending, the next high.
  bool complete = false;
  std::string resume;
  uint32_t scan_sequence = 0;
  // Of a one-shot transaction that this operation's failure has ended: its timestamp. There, in the serial order, the failed precondition did not
  // hold (D1). 0 in all other results; an interactive transaction knows its timestamp from its begin.
  Timestamp refused_at = {};
};

// Of a one-shot transaction's results: the timestamp that one of them tells; 0 = none does.
inline Timestamp RefusedAt(absl::Span<const OperationResult> results) {
  for (const OperationResult& result : results) {
    if (result.refused_at != Timestamp{0}) return result.refused_at;
  }
  return Timestamp{0};
}

// `timestamp` is that of the one-shot transaction with these results, or 0: its first failed operation has ended it.
inline void SetRefusedAt(Timestamp timestamp, absl::Span<OperationResult> results) {
  if (timestamp == Timestamp{0}) return;
  for (OperationResult& result : results) {
    if (result.status.ok()) continue;
    result.refused_at = timestamp;
    return;
  }
}

struct CommitAnswer {
  Timestamp timestamp;  // the transaction's place in the serial order
  Lsn commit_lsn;       // 0 for a transaction that wrote nothing
};

enum class TransactionOutcome : uint8_t {
  kCommitted = 0,
  kNotCommitted = 1,  // and it never will be
  kTooOld = 2,        // unknown: longer ago than outcomes are remembered
};

struct OutcomeAnswer {
  TransactionOutcome outcome = TransactionOutcome::kTooOld;
  CommitAnswer commit = {};  // kCommitted
};

// `batch` is the last of the scan: nothing is left of its range, or it has as many records as were asked for.
inline bool IsOver(const Operation& scan, const OperationResult& batch) {
  return batch.complete || (scan.limit_records != 0 && batch.records.size() >= scan.limit_records);
}

// What became of a transaction that is one scan.
struct ScanBegun {
  bool over = false;    // and the transaction has committed; else it is open
  CommitAnswer answer;  // while it is open, the timestamp alone
};

// A transaction that has been begun before its thread comes to it (TransactionSession::BeginAhead). Who destroys it ends it; nothing was shown.
class BegunOneShot {
 public:
  virtual ~BegunOneShot() = default;
};

class TransactionSession {
 public:
  virtual ~TransactionSession() = default;

  // No transaction that begins on this session from now on has a timestamp below this. Sends nothing.
  virtual Timestamp not_before() const = 0;

  // Answers the transaction's timestamp (for a snapshot: the timestamp it reads below).
  virtual Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) = 0;

  // Runs the operations in order; results correspond one to one. An operation that fails with ALREADY_EXISTS, NOT_FOUND, CONDITION_FAILED or
  // INVALID_ARGUMENT leaves the transaction open, and so does a scan that was asked for ahead; after ABORTED (or any other failure of an
  // operation) it is aborted and the operations behind it are not run (their status is WRONG_STATE). Returns the status that ended the call
  // early, else OK.
  // `results` may hold earlier ones, whose buffers are used again.
  virtual Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                         Deadline deadline) = 0;

  // Sends operations of the open transaction whose answer is taken later, so that they are on their way meanwhile; false: nothing was sent, as this
  // session does not do that, or cannot now. REQUIRES: nothing sent ahead is waiting; the operations' views stay until the answer is taken.
  virtual bool SendAhead(absl::Span<const Operation> /*operations*/, Deadline /*deadline*/) { return false; }
  // The answer, as of Execute; waits for it. REQUIRES: SendAhead has answered true, and nothing else was called since.
  virtual Status TakeAhead(std::vector<OperationResult>* /*results*/, Deadline /*deadline*/) {
    return Status(ErrorCode::kWrongState, "nothing was sent ahead");
  }

  virtual Result<CommitAnswer> Commit(Deadline deadline) = 0;
  virtual Status Abort() = 0;

  // Begin, Execute, Commit in one message. Unless every operation succeeded nothing is written: the call then returns the first
  // failure (for a failed precondition after a read-only commit, D1), with the results so far. `results` may hold earlier ones, as for
  // Execute, of which nothing is left.
  virtual Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                              std::vector<OperationResult>* results, Deadline deadline) = 0;

  // A transaction that is one scan: begins it, reads the first batch into results[0], and commits it if the scan is over with that (IsOver). Else
  // the transaction is open, and goes on as any other. If this fails, no transaction is open; a lost conflict may have been tried again, as by
  // ExecuteOneShot.
  virtual Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan,
                                      std::vector<OperationResult>* results, Deadline deadline) {
    DEUT_ASSIGN_OR_RETURN(const Timestamp timestamp, Begin(options, deadline));
    if (Status executed = Execute(absl::MakeConstSpan(&scan, 1), results, deadline); !executed.ok()) {
      (void)Abort();  // not every failure has ended it
      return executed;
    }
    if (results->size() != 1 || !results->front().status.ok()) {
      (void)Abort();  // it is over for the caller either way
      if (results->size() == 1) return results->front().status;
      return DEUT_ERROR(kInternal, "asked for a batch of a scan, got ", results->size(), " results");
    }
    if (!IsOver(scan, results->front())) return ScanBegun{.answer = {.timestamp = timestamp, .commit_lsn = {}}};
    DEUT_ASSIGN_OR_RETURN(const CommitAnswer answer, Commit(deadline));
    return ScanBegun{.over = true, .answer = answer};
  }

  // As ExecuteOneShot, for who answers many and does not wait for the disk with each: where *durable_at is not 0 afterwards, the end of the answer
  // is not to be shown before TransactionService::AwaitDurable has answered a position above it (D1). If that fails, a commit that wrote something
  // ends with OUTCOME_UNKNOWN, anything else with the failure.
  // `begun`: null, or what BeginAhead has begun of it, on any session of the service: its first attempt.
  virtual Result<CommitAnswer> ExecuteOneShotAhead(const TransactionOptions& options,
                                                   absl::Span<const Operation> operations,
                                                   std::vector<OperationResult>* results, Deadline deadline,
                                                   Lsn* durable_at, std::unique_ptr<BegunOneShot> begun) {
    begun.reset();
    *durable_at = Lsn(0);
    return ExecuteOneShot(options, operations, results, deadline);
  }

  // Reading ahead, for who is about to run many transactions one after the other: what their point reads need from elsewhere is asked for together,
  // so that they do not wait for it one by one. A hint; each reads as ever afterwards. WantReads: notes what of these operations would be asked
  // for; true: something. StartReads: asks; false: there is nothing to ask for, or not now, and all is forgotten. FinishReads: returns when the
  // answers are there (true), or the time is up.
  // REQUIRES: after WantReads, any number of times, comes StartReads, which may also come alone; after that, if it was true, FinishReads, and nothing
  // else of this session before it, as low-waters wait for it; the operations' views stay until then.
  // BeginAhead: begins a transaction whose first operation is a scan, and notes what that needs, to be asked for with the rest. It waits for nothing
  // and nobody; null: it is not begun. What FinishReads has no answer for has ended by then, and its transaction is begun when it is run.
  // REQUIRES: as after WantReads; and what was begun stays until StartReads has answered false, or FinishReads is over.
  virtual bool WantReads(absl::Span<const Operation> /*operations*/) { return false; }
  virtual std::unique_ptr<BegunOneShot> BeginAhead(const TransactionOptions& /*options*/,
                                                   absl::Span<const Operation> /*operations*/) {
    return nullptr;
  }
  virtual bool StartReads() { return false; }
  virtual bool FinishReads(Deadline /*deadline*/) { return true; }
};

// What `deut status` shows. Sections are free-form name/value pairs with documented names (tc/README.md, dc/README.md).
struct ServiceStatus {
  std::vector<CounterValue> tc;
  std::vector<CounterValue> dc;
};

class TransactionService {
 public:
  virtual ~TransactionService() = default;
  // Whether a call may have been carried out and its answer be lost. Not where the component is in the caller's process: there a commit that waits
  // for nothing (buffered) always answers, so nobody will ask what became of it.
  virtual bool LosesAnswers() const { return true; }
  virtual Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) = 0;
  // What became of the transaction of that name: for clients that have lost the answer to its commit. A committed one is durable by then. One that
  // is not committed is kept from it for good; asking for a transaction that is still wanted ends it. Transactions that write nothing
  // leave no trace: they are "not committed". DEADLINE_EXCEEDED: it is committed, or being committed, and not durable yet.
  virtual Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) = 0;
  // For ExecuteOneShotAhead: returns when what is at that position is durable, and up to where (exclusively) all is by then.
  virtual Result<Lsn> AwaitDurable(Lsn /*at*/, Deadline /*deadline*/) {
    return Status(ErrorCode::kWrongState, "this service waits for durability by itself");
  }
  // The name of a table that is there; NOT_FOUND. For rights, which go by names; at once, without asking the DC.
  virtual Result<std::string> NameOfTable(TableId /*table*/) {
    return Status(ErrorCode::kWrongState, "this service does not tell names of tables");
  }
  virtual Result<TableId> OpenTable(std::string_view name, Deadline deadline) = 0;
  virtual Result<TableId> CreateTable(std::string_view name, Deadline deadline) = 0;
  virtual Status DropTable(std::string_view name, Deadline deadline) = 0;
  virtual Result<std::vector<TableInfo>> ListTables(Deadline deadline) = 0;
  virtual Result<ServiceStatus> GetStatus(Deadline deadline) = 0;
  // Empties the TC's caches of versions the DC holds, and waits until what had finished by then is applied and collected, so that reads go to the DC;
  // what comes meanwhile may be kept again. DEADLINE_EXCEEDED says what still waits. For tests and measurements.
  virtual Status DropCaches(Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTION_SERVICE_H_
