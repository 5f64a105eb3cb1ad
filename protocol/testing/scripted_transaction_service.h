// ScriptedTransactionService: a transaction service for tests of what stands around one: one map behind a lock, sessions that follow the
// rules of calls (not those of isolation), and hooks by which a test decides what happens.
// Thread-safety: as transaction_service.h; hooks are set before the first call.
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

  // Called before each call of a session ("begin", "execute", "commit", "abort", "one_shot"), of the service ("new_session",
  // "create_table", ...), and before each operation ("operation"). A status that is not OK is the call's answer.
  std::function<Status(std::string_view call, Deadline deadline)> before = [](std::string_view, Deadline) {
    return Status::Ok();
  };

  // Commits that wrote something are to be waited for (ExecuteOneShotAhead). Each wait ("await_durable") is for all that was committed before it
  // began.
  std::atomic<bool> withholds{false};
  // Sessions want to read ahead the keys that begin with this, if it is not empty: "start_reads", "finish_reads". Scans that begin there are begun;
  // "take_begun" is called when one is run.
  std::string reads_ahead;
  // Begun and not run.
  int begun() { return begun_.load(); }

  size_t sessions();      // open ones
  size_t transactions();  // open ones
  size_t aborts();
  size_t commits();
  TransactionOptions last_options();
  std::string Value(TableId table, const std::string& key);
  // What AskOutcome answers from now on; the name it was last asked for.
  void set_outcome(const OutcomeAnswer& outcome);
  TransactionName last_asked();

  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<Lsn> AwaitDurable(Lsn at, Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, Deadline deadline) override;
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
