// Recorder: a client whose transactions record their operations and results. Each thread has a RecordedClient with
// memory of its own, so recording an operation costs two clock readings and an append, and shares nothing.
//
//   Recorder recorder(client);
//   RecordedClient* mine = recorder.NewClient();
//   const Status done = mine->Run({}, [&](RecordedTransaction& t) { return t.Put(table, "key", "950"); });
//   ...
//   History history = recorder.Take();
//
// Values. The recorder makes each stored value. It begins with the write's identity (history_text.h: ToText of a
// Value). A blank and the caller's payload follow if there is one, then a blank and padding if that is wanted. A
// stored value of any other form is recorded as WriteId{0, 0}, which no transaction wrote.
//
// Attempts and outcomes. Every attempt of a retried transaction is a transaction of the history. OUTCOME_UNKNOWN is
// recorded as unknown; every other failure promises that nothing was written. A one-shot transaction of unknown
// outcome has no timestamp, and its reads are not known.
//
// Dropped tables (WatchTables). A table's end is a key of table 0, absent until the drop writes it, and every
// operation on the table reads it. An answer that a table was dropped is a read of the drop that succeeded (ids are
// never used again). Drops are untimed.
//
// A buffered commit is recorded as committed. A history that spans a crash of the transaction component therefore
// needs durable commits.
// Thread-safety: any thread may call NewClient, and Take once the clients' threads have ended. One thread at a time
// uses a RecordedClient.
// Ownership: the Client outlives the Recorder, which owns the RecordedClients.
#ifndef INTEGRATION_HISTORY_RECORDER_H_
#define INTEGRATION_HISTORY_RECORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/history/history.h"
#include "tc/client/client.h"
#include "tc/client/options.h"
#include "tc/client/retry.h"
#include "tc/client/transaction.h"

namespace deut::history {

// A value as parsed when it is read back.
struct StoredValue {
  Value value;
  std::string payload;
};
// StoredText makes the text to store; ParseStored takes a stored text apart.
std::string StoredText(const Value& value, std::string_view payload, size_t longest_padding = 0);
StoredValue ParseStored(std::string_view text);

struct StoredRecord {
  std::string key;
  StoredValue value;
};

// One attempt of a transaction. The methods are those of Transaction (tc/client/transaction.h).
class RecordedTransaction {
 public:
  RecordedTransaction(Runtime& runtime, Transaction* transaction, TransactionRecord* record,
                      bool watches_tables = false, size_t padding = 0)
      : runtime_(runtime),
        transaction_(transaction),
        record_(record),
        watches_tables_(watches_tables),
        padding_(padding) {}

  Result<std::optional<StoredValue>> Get(TableId table, std::string_view key);
  Status Put(TableId table, std::string_view key, std::string_view payload = {});
  // A refused Insert or Update is recorded as a read: it tells that the key is there, or is not.
  Status Insert(TableId table, std::string_view key, std::string_view payload = {});
  Status Update(TableId table, std::string_view key, std::string_view payload = {});
  // Reads the list and writes it with one more element. Both operations are recorded.
  Status Append(TableId table, std::string_view key);
  Status Remove(TableId table, std::string_view key);
  // Expects the key to be absent; if it is not, expects the value just found. Recorded as an insert, or as a read and
  // an update.
  Status CompareAndSet(TableId table, std::string_view key, std::string_view payload = {});
  // Scans [low, high), then removes the range as a whole. Recorded as the scan and a delete for each key that it saw.
  // CORRUPTION if the number of removed records differs.
  Status RemoveRange(TableId table, const std::string& low, const std::string& high);
  Result<std::vector<StoredRecord>> Scan(TableId table, const ScanOptions& options);
  // As Scan, but by a scanner: calls `between` after each record. `between` may use the transaction; the scan does
  // not see its writes (R10).
  Result<std::vector<StoredRecord>> ScanSlowly(TableId table, const ScanOptions& options,
                                               absl::FunctionRef<Status()> between);

  Timestamp timestamp() const { return transaction_->timestamp(); }

 private:
  OperationRecord Begin(OperationKind kind, TableId table, std::string_view key);
  void End(OperationRecord operation);
  Status Write(OperationKind kind, TableId table, std::string_view key, std::string_view payload);
  // Called with the status of each finished operation on the table. Records whether the operation found the table
  // dropped.
  Status NoteTableStatus(TableId table, Status status);
  Value NextValue() const { return {.id = {.writer = record_->id, .sequence = sequence_ + 1}, .before = {}}; }

  Runtime& runtime_;
  Transaction* const transaction_;
  TransactionRecord* const record_;
  const bool watches_tables_;
  const size_t padding_;
  std::map<uint32_t, bool> seen_there_;  // by id of each table that was used: whether it was last found to exist
  uint32_t sequence_ = 0;
};

// One operation of a one-shot transaction: kRead, kWrite, kInsert, kUpdate, kDelete (key, payload), or kScan (one
// batch).
struct Step {
  OperationKind kind = OperationKind::kRead;
  TableId table = {};
  std::string key = {};
  std::string payload = {};
  ScanOptions scan = {};
};
struct StepResult {
  std::optional<StoredValue> value;   // kRead
  std::vector<StoredRecord> records;  // kScan
};

class RecordedClient {
 public:
  // Called only by Recorder.
  RecordedClient(Client& client, uint32_t number, size_t padding = 0)
      : client_(client), number_(number), padding_(padding) {}

  Client& client() { return client_; }
  // As RunTransaction, but it gives up only when the time is over.
  Status Run(const RetryOptions& options, absl::FunctionRef<Status(RecordedTransaction&)> body,
             RetryReport* report = nullptr);
  // The same in one message. If a step fails with ALREADY_EXISTS or NOT_FOUND, nothing was written, and the attempt
  // is recorded as aborted. `results` may be null.
  Result<CommitAnswer> RunOneShot(const RetryOptions& options, absl::Span<const Step> steps,
                                  std::vector<StepResult>* results = nullptr);

  // From now on, the client records which tables its transactions find dropped.
  void WatchTables() { watches_tables_ = true; }
  // Calls Client::DropTable. REQUIRES: if a table has this name, it is the one with this id.
  Status DropTable(std::string_view name, TableId table, Duration timeout);

 private:
  friend class Recorder;
  TransactionRecord NewRecord(const RetryOptions& options, int64_t invoke);
  Result<CommitAnswer> TryOneShot(const RetryOptions& options, absl::Span<const Step> steps, Deadline limit,
                                  std::vector<StepResult>* results);
  Client& client_;
  const uint32_t number_;
  const size_t padding_;
  bool watches_tables_ = false;
  uint64_t transactions_ = 0;
  std::vector<TransactionRecord> records_;
};

class Recorder {
 public:
  static constexpr uint32_t kMaxClients = 1000;

  explicit Recorder(Client& client) : client_(client), mutex_(client.runtime()) {}

  // REQUIRES: fewer than kMaxClients clients were made.
  RecordedClient* NewClient() DEUT_EXCLUDES(mutex_) { return NewClient(client_); }
  // The same for another client of the same store.
  RecordedClient* NewClient(Client& client) DEUT_EXCLUDES(mutex_);
  // Clients made from now on store values that are up to `longest` bytes longer.
  void SetPadding(size_t longest) DEUT_EXCLUDES(mutex_);
  // Returns everything recorded since the last Take, and clears it.
  History Take() DEUT_EXCLUDES(mutex_);

 private:
  Client& client_;
  Mutex mutex_;
  size_t padding_ DEUT_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<RecordedClient>> clients_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_RECORDER_H_
