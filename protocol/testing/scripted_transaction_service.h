// ScriptedTransactionService: a transaction service for tests of the code around one. It has one map behind a lock, and
// sessions that follow the rules of calls (not those of isolation). With its hooks a test decides the outcome.
// Thread-safety: as in transaction_service.h; hooks are set before the first call.
#ifndef PROTOCOL_TESTING_SCRIPTED_TRANSACTION_SERVICE_H_
#define PROTOCOL_TESTING_SCRIPTED_TRANSACTION_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/transaction_service.h"

namespace deut::testing {

class ScriptedTransactionService : public TransactionService {
 public:
  explicit ScriptedTransactionService(Runtime& runtime) : mutex_(runtime) {}

  // Runs before each call of a session ("begin", "execute", "commit", "abort", "one_shot"), before each call of the
  // service ("new_session", "create_table", ...), and before each operation ("operation"). A status that is not OK
  // becomes the call's answer.
  std::function<Status(std::string_view call, Deadline deadline)> before = [](std::string_view, Deadline) {
    return Status::Ok();
  };

  // If set, callers must wait for commits that wrote something (ExecuteOneShotWithoutWait). Each wait ("await_durable")
  // covers all commits before it began.
  std::atomic<bool> withholds{false};
  // If not empty, sessions want to prefetch the keys that begin with this: "start_prefetch", "await_prefetch". Scans that
  // begin there are begun ahead. "take_begun" is called when one of them is run. It fails if the scan of its call begins
  // elsewhere.
  std::string reads_ahead;
  // The number of transactions that are begun and not run yet.
  int begun() { return begun_.load(); }

  size_t sessions();      // number of open ones
  size_t transactions();  // number of open ones
  size_t aborts();
  size_t commits();
  TransactionOptions last_options();
  TableOptions last_table_options();  // of the table that was created last
  std::string Value(TableId table, const std::string& key);
  // The answer of AskOutcome from now on, and the name of the last question.
  void set_outcome(const OutcomeAnswer& outcome);
  TransactionName last_asked();

  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<Lsn> AwaitDurable(Lsn at, Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override;
  Status DropCaches(Deadline deadline) override;

 private:
  class Session;
  using Key = std::pair<TableId, std::string>;

  std::atomic<int> begun_{0};
  Mutex mutex_;
  std::map<Key, std::string> records_ DEUT_GUARDED_BY(mutex_);
  std::map<std::string, TableId, std::less<>> tables_ DEUT_GUARDED_BY(mutex_);
  TableOptions last_table_options_ DEUT_GUARDED_BY(mutex_);
  TransactionOptions last_options_ DEUT_GUARDED_BY(mutex_);
  OutcomeAnswer outcome_ DEUT_GUARDED_BY(mutex_);
  TransactionName last_asked_ DEUT_GUARDED_BY(mutex_);
  uint64_t clock_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t sessions_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t transactions_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t aborts_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t commits_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut::testing

#endif  // PROTOCOL_TESTING_SCRIPTED_TRANSACTION_SERVICE_H_
