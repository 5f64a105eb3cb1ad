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
};

enum class OperationKind : uint8_t {
  kGet = 0,
  kPut = 1,     // blind: writes whether the key is there or not
  kInsert = 2,  // ALREADY_EXISTS if the key is there
  kUpdate = 3,  // NOT_FOUND if it is not
  kRemove = 4,  // blind: absent afterwards; reports nothing
  kScan = 5,    // one batch of [low, high)
};

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
};

struct OperationResult {
  Status status;
  // kGet: 0 or 1 record; kScan: the batch. Versions are those of the records (or upper bounds).
  RecordBatch records;
  // kScan: complete, or the resume key: ascending, the next low; descending, the next high.
  bool complete = false;
  std::string resume;
  uint32_t scan_sequence = 0;
};

struct CommitAnswer {
  Timestamp timestamp;  // the transaction's place in the serial order
  Lsn commit_lsn;       // 0 for a transaction that wrote nothing
};

class TransactionSession {
 public:
  virtual ~TransactionSession() = default;

  // Answers the transaction's timestamp (for a snapshot: the timestamp it reads below).
  virtual Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) = 0;

  // Runs the operations in order; results correspond one to one. An operation that fails with ALREADY_EXISTS, NOT_FOUND or
  // INVALID_ARGUMENT leaves the transaction open; after ABORTED (or any other failure of an operation) it is aborted and the
  // operations behind it are not run (their status is WRONG_STATE). Returns the status that ended the call early, else OK.
  virtual Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                         Deadline deadline) = 0;

  virtual Result<CommitAnswer> Commit(Deadline deadline) = 0;
  virtual Status Abort() = 0;

  // Begin, Execute, Commit in one message. Unless every operation succeeded nothing is written: the call then returns the first
  // failure (for a failed precondition after a read-only commit, D1), with the results so far.
  virtual Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                              std::vector<OperationResult>* results, Deadline deadline) = 0;
};

// What `deut status` shows. Sections are free-form name/value pairs with documented names (tc/README.md, dc/README.md).
struct ServiceStatus {
  std::vector<CounterValue> tc;
  std::vector<CounterValue> dc;
};

class TransactionService {
 public:
  virtual ~TransactionService() = default;
  virtual Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) = 0;
  virtual Result<TableId> OpenTable(std::string_view name, Deadline deadline) = 0;
  virtual Result<TableId> CreateTable(std::string_view name, Deadline deadline) = 0;
  virtual Status DropTable(std::string_view name, Deadline deadline) = 0;
  virtual Result<std::vector<TableInfo>> ListTables(Deadline deadline) = 0;
  virtual Result<ServiceStatus> GetStatus(Deadline deadline) = 0;
  // Empties the TC's caches of versions the DC holds (waits until the backlog is applied and collected), so that reads go to the
  // DC. For tests and measurements.
  virtual Status DropCaches(Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTION_SERVICE_H_
