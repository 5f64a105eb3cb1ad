// Recorder: a client whose transactions write down what they do and see. Each thread has a RecordedClient with memory of its own, so that
// recording costs two readings of the clock and an append, and shares nothing.
//
//   Recorder recorder(client);
//   RecordedClient* mine = recorder.NewClient();
//   const Status done = mine->Run({}, [&](RecordedTransaction& t) { return t.Put(table, "key", "950"); });
//   ...
//   History history = recorder.Take();
//
// Values are made by the recorder: the write's identity (history_text.h: ToText of a Value), then a blank and the caller's payload if there
// is one, then a blank and padding if that is wanted. A stored value that is not of this form is recorded as WriteId{0, 0}, which nobody
// wrote. Every attempt of a repeated transaction is one of the history. Outcomes: OUTCOME_UNKNOWN is unknown, every other failure promises
// that nothing was written. A one-shot transaction of unknown outcome has no timestamp, and its reads are not known.
// Tables that are dropped (WatchTables): a table's end is a key of table 0, absent until the drop's write; every operation on a table reads it, and
// what a dropped table answers is a read of the drop (the one that succeeded: ids are never used again). Drops are untimed.
// A buffered commit is recorded as committed: a history that goes over a crash of the transaction component uses durable ones.
// Thread-safety: NewClient and Take from any thread, Take when the clients' threads have ended; a RecordedClient by one thread at a time.
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

// A value as it is read back.
struct StoredValue {
  Value value;
  std::string payload;
};
// What is stored, and what a stored value says.
std::string StoredText(const Value& value, std::string_view payload, size_t longest_padding = 0);
StoredValue ParseStored(std::string_view text);

struct StoredRecord {
  std::string key;
  StoredValue value;
};

// One attempt of a transaction. Methods as those of Transaction (tc/client/transaction.h).
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
  // A refused one is recorded as what it says: that the key is there, or is not.
  Status Insert(TableId table, std::string_view key, std::string_view payload = {});
  Status Update(TableId table, std::string_view key, std::string_view payload = {});
  // Reads the list and writes it with one element more; both are recorded.
  Status Append(TableId table, std::string_view key);
  Status Remove(TableId table, std::string_view key);
  // Compares with absence and, where that fails, with what was found instead: an insert, or a read and a write.
  Status CompareAndSet(TableId table, std::string_view key, std::string_view payload = {});
  // A scan of [low, high) and, after it, its removal as a whole: a delete for each key that the scan has seen. CORRUPTION if it was not so many.
  Status RemoveRange(TableId table, const std::string& low, const std::string& high);
  Result<std::vector<StoredRecord>> Scan(TableId table, const ScanOptions& options);
  // As Scan, by a scanner: `between` is called after each record and may use the transaction. What it writes the scan does not see (R10).
  Result<std::vector<StoredRecord>> ScanSlowly(TableId table, const ScanOptions& options,
                                               absl::FunctionRef<Status()> between);

  Timestamp timestamp() const { return transaction_->timestamp(); }

 private:
  OperationRecord Begin(OperationKind kind, TableId table, std::string_view key);
  void End(OperationRecord operation);
  Status Write(OperationKind kind, TableId table, std::string_view key, std::string_view payload);
  // An operation on the table has ended.
  Status Saw(TableId table, Status status);
  Value NextValue() const { return {.id = {.writer = record_->id, .sequence = sequence_ + 1}, .before = {}}; }

  Runtime& runtime_;
  Transaction* const transaction_;
  TransactionRecord* const record_;
  const bool watches_tables_;
  const size_t padding_;
  std::map<uint32_t, bool> seen_there_;  // of the tables that were used
  uint32_t sequence_ = 0;
};

// One operation of a one-shot transaction: kRead, kWrite, kInsert, kUpdate, kDelete (key, payload) or kScan (one batch).
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
  // For Recorder.
  RecordedClient(Client& client, uint32_t number, size_t padding = 0)
      : client_(client), number_(number), padding_(padding) {}

  Client& client() { return client_; }
  // As RunTransaction, without giving up before the time is over.
  Status Run(const RetryOptions& options, absl::FunctionRef<Status(RecordedTransaction&)> body,
             RetryReport* report = nullptr);
  // The same in one message. ALREADY_EXISTS and NOT_FOUND of a step: nothing was written; recorded as aborted. `results` may be null.
  Result<CommitAnswer> RunOneShot(const RetryOptions& options, absl::Span<const Step> steps,
                                  std::vector<StepResult>* results = nullptr);

  // From now on it is recorded which tables transactions find dropped.
  void WatchTables() { watches_tables_ = true; }
  // Client::DropTable. REQUIRES: if the name names a table, it is the one with this id.
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

  // REQUIRES: fewer than kMaxClients were made.
  RecordedClient* NewClient() DEUT_EXCLUDES(mutex_) { return NewClient(client_); }
  // Of another client of the same store.
  RecordedClient* NewClient(Client& client) DEUT_EXCLUDES(mutex_);
  // Values that are stored by clients made from now on are up to so many bytes longer.
  void SetPadding(size_t longest) DEUT_EXCLUDES(mutex_);
  // What was recorded so far; it is recorded no longer.
  History Take() DEUT_EXCLUDES(mutex_);

 private:
  Client& client_;
  Mutex mutex_;
  size_t padding_ DEUT_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<RecordedClient>> clients_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_RECORDER_H_
