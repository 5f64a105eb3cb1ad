// FakeTransactionService: a TransactionService for tests of the layers above it (client library, programs). It is a
// map in memory under one mutex, with transactions that are validated when they commit. Tests make its calls fail
// through `on_call`, and look at the requests that it got. It is no model of the real concurrency control: it never
// blocks, and conflicts show at the commit.
// Thread-safety: as the interface. The public fields are set before other threads use it, and read afterwards.
#ifndef TC_CLIENT_FAKE_TRANSACTION_SERVICE_H_
#define TC_CLIENT_FAKE_TRANSACTION_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/transaction_service.h"

namespace deut::testing {

enum class FakeCall : uint8_t {
  kNewSession,
  kBegin,
  kExecute,
  kCommit,
  kAbort,
  kOneShot,
  kOpenTable,
  kStatus,
  kDropCaches,
  kAskOutcome
};

struct FakeFault {
  Status status;         // returned in place of the call's own, unless OK
  bool applied = false;  // kCommit, kOneShot: the transaction is committed nevertheless (its answer is lost)
};

class FakeTransactionService final : public TransactionService {
 public:
  explicit FakeTransactionService(Runtime& runtime) : mutex_(runtime) {}

  // Called before each call, on its thread, without locks; `deadline` as passed.
  std::function<FakeFault(FakeCall call, Deadline deadline)> on_call;
  // Called with the options of every Begin and one-shot.
  std::function<void(const TransactionOptions& options)> on_begin;
  // Changes the answer of GetStatus.
  std::function<void(ServiceStatus* status)> on_status;
  // Makes AskOutcome answer that the transaction is too long ago.
  bool forgets_outcomes = false;
  // Makes sessions send ahead. They run the operation at once; the answer waits.
  bool sends_ahead = false;
  std::atomic<int> sent_ahead{0};
  // Makes AwaitPipelined fail, as at its deadline.
  std::atomic<bool> loses_ahead{false};
  std::atomic<Deadline> await_pipelined_deadline{kNoDeadline};  // of the last AwaitPipelined
  // The most records in a batch of a scan.
  uint32_t max_batch_records = 1000;

  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override;
  Status DropCaches(Deadline deadline) override;

  int sessions_opened() const { return sessions_opened_.load(); }
  int sessions_open() const { return sessions_open_.load(); }
  int transactions_open() const { return transactions_open_.load(); }
  int tables_opened() const { return tables_opened_.load(); }
  int outcomes_asked() const { return outcomes_asked_.load(); }

  // Read and change the committed state directly.
  std::optional<std::string> Peek(TableId table, const std::string& key);
  void Poke(TableId table, const std::string& key, std::optional<std::string> value);
  size_t Records(TableId table);

 private:
  friend class FakeSession;
  struct Record {
    std::optional<std::string> value;  // nothing: the record was removed
    Version version;
  };
  struct Table {
    std::string name;
    bool dropped = false;
    Timestamp last_change;
    std::map<std::string, Record> records;
  };

  // Null if the id is unknown or the table dropped.
  Table* FindTable(TableId id) DEUT_REQUIRES(mutex_);
  FakeFault Fault(FakeCall call, Deadline deadline) { return on_call ? on_call(call, deadline) : FakeFault{}; }

  mutable Mutex mutex_;
  std::map<uint32_t, Table> tables_ DEUT_GUARDED_BY(mutex_);
  std::map<TransactionId, OutcomeAnswer> outcomes_ DEUT_GUARDED_BY(mutex_);  // those of transactions that were
                                                                             // committed or asked for
  uint64_t last_timestamp_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t reads_ DEUT_GUARDED_BY(mutex_) = 0;
  std::atomic<int> sessions_opened_{0}, sessions_open_{0}, transactions_open_{0}, tables_opened_{0}, outcomes_asked_{0};
};

// A clock that stands still unless a thread waits: a wait with a deadline jumps to it. Waits without a deadline,
// threads and the rest are real.
class JumpingRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return MonotonicTime(Duration(now_.load())); }
  int64_t WallMicros() override { return now_.load() / 1000; }
  uint64_t RandomSeed() override { return seed_.fetch_add(1); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (deadline == kNoDeadline) return RealRuntime().Wait(word, expected, deadline);
    Advance(deadline - Now());
    return false;
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }

  void Advance(Duration by) { now_.fetch_add(by.count() > 0 ? by.count() : 0); }

 private:
  std::atomic<int64_t> now_{1'000'000'000'000};
  std::atomic<uint64_t> seed_{1};
};

}  // namespace deut::testing

#endif  // TC_CLIENT_FAKE_TRANSACTION_SERVICE_H_
