// Client: the way into a transactional store, from C++. Start here.
//
//   auto client = deut::Client::Connect("127.0.0.1:7701", {});
//   auto table = client.value()->OpenTable("accounts");
//   deut::Status done = deut::RunTransaction(**client, {}, [&](deut::Transaction& t) { return t.Put(*table, "key", "value"); });
//
// The same class serves a store in another process (Connect) and one inside this process (FromService;
// integration/product/embedded builds one). Read on in transaction.h (the promises of a transaction), retry.h (retries), and
// one_shot.h (transactions of a single message).
// Thread-safety: all methods from any thread. One client per process and store is enough, because each of its open
// transactions has a session of its own. Ownership: transactions end before their client is destroyed.
// Errors: UNAVAILABLE if the store cannot be reached (nothing was done); DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED with a
// hint how long to pause.
#ifndef TC_CLIENT_CLIENT_H_
#define TC_CLIENT_CLIENT_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sync/mutex.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_channel.h"
#include "tc/client/client_core.h"
#include "tc/client/options.h"
#include "tc/client/transaction.h"
#include "tc/client/written_keys.h"

namespace deut {

struct ConnectOptions;

class Client {
 public:
  // `target`: HOST:PORT or unix:/path. INVALID_ARGUMENT if the target or the TLS files are wrong. Connect contacts
  // nothing yet: connections are made when they are needed, and again after they break. ConnectOptions is in
  // connect.h.
  static Result<std::unique_ptr<Client>> Connect(const std::string& target, const ConnectOptions& options);

  // A client of a store inside this process. In the first form the service must outlive the client; in the others the
  // client owns it.
  static std::unique_ptr<Client> FromService(TransactionService* service, const ClientOptions& options);
  static std::unique_ptr<Client> FromService(std::unique_ptr<TransactionService> service, const ClientOptions& options);
  // `one_shots` is a channel that the service owns. One-shot transactions use it while several are in flight.
  static std::unique_ptr<Client> FromService(std::unique_ptr<TransactionService> service, OneShotChannel* one_shots,
                                             const ClientOptions& options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // NOT_FOUND if there is no such table. The client remembers the id. If another client drops the table and creates
  // it again, it gets another id, and operations on the old one fail. ForgetTable makes the next OpenTable ask the
  // store again.
  Result<TableId> OpenTable(std::string_view name, const CallOptions& call = {});
  // ALREADY_EXISTS if there is a table of that name.
  // OUTCOME_UNKNOWN: the answer was lost. The table may have been created, or may still be, until the deadline of the
  // call. The library does not ask again, because it could not tell this call's effect from another client's. If no
  // other client creates or drops tables of this name, call CreateTable again after that deadline, until there is an
  // answer. OK and ALREADY_EXISTS then both mean that the table exists, and OpenTable has its id.
  Result<TableId> CreateTable(std::string_view name, const CallOptions& call = {});
  // The same with options, such as {.compression = Compression::kZstd}. They hold as long as the table exists. A server
  // of an earlier version ignores them.
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, const CallOptions& call = {});
  // NOT_FOUND if there is no such table. OUTCOME_UNKNOWN: as for CreateTable. After a repeated call OK and NOT_FOUND
  // both mean that the table is gone. A repeated call would also drop a table that another client has created under
  // the name since.
  Status DropTable(std::string_view name, const CallOptions& call = {});
  Result<std::vector<TableInfo>> ListTables(const CallOptions& call = {});
  void ForgetTable(std::string_view name);

  // Begins an interactive transaction (transaction.h).
  Result<Transaction> Begin(const TransactionOptions& options = {}, const CallOptions& call = {});

  // Runs Begin, the operations and Commit in one message and one round trip. Unless every operation succeeds nothing
  // is written, and the first failure is returned, with the results so far. Errors as in transaction.h
  // (OUTCOME_UNKNOWN included).
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, const CallOptions& call = {});

  // Runs many one-shot transactions at once. Each is a transaction of its own, and they run side by side, in no
  // order. Over a network they share messages. Returns when all have ended, each with its own answer. Their options,
  // operations and results must stay valid until then.
  void ExecuteOneShots(absl::Span<OneShotTransaction> transactions, const CallOptions& call = {});

  // Returns the outcome of the transaction of that name (Transaction::name). Commit asks by itself when its answer is
  // lost; this is for later, or for another process. A transaction that is still open is aborted by the question.
  // (TransactionService::AskOutcome)
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, const CallOptions& call = {});

  // Returns counters and gauges of both components, by name (tc/README.md and dc/README.md list them).
  Result<ServiceStatus> GetStatus(const CallOptions& call = {});
  // Empties the transaction component's caches, so that reads go to the data component. For tests and measurements.
  Status DropCaches(const CallOptions& call = {});

  Runtime& runtime() { return core_.runtime(); }
  // The deadline of a call that begins now.
  Deadline DeadlineFor(const CallOptions& call) { return core_.DeadlineFor(call); }

  // For RunTransaction. No call of the transaction goes beyond `limit`. Written keys are added to `written_keys`, which
  // may be null.
  Result<Transaction> BeginUntil(const TransactionOptions& options, Deadline limit, WrittenKeys* written_keys);
  Result<CommitAnswer> ExecuteOneShotUntil(const TransactionOptions& options, absl::Span<const Operation> operations,
                                           std::vector<OperationResult>* results, Deadline limit);

 private:
  friend class OneScan;

  Client(std::unique_ptr<TransactionService> owned, TransactionService* service, OneShotChannel* one_shots,
         const ClientOptions& options);

  const std::unique_ptr<TransactionService>
      owned_;  // null if the service is the caller's; outlives the sessions in core_
  ClientCore core_;

  // Names seen before. Transactions do not use them, because they carry ids.
  Mutex tables_mutex_;
  std::map<std::string, TableId, std::less<>> tables_ DEUT_GUARDED_BY(tables_mutex_);
};

}  // namespace deut

#endif  // TC_CLIENT_CLIENT_H_
