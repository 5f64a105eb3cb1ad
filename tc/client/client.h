// Client: the way into a transactional store, from C++. Start here.
//
//   auto client = deut::Client::Connect("127.0.0.1:7701", {});
//   auto table = client.value()->OpenTable("accounts");
//   deut::Status done = deut::RunTransaction(**client, {}, [&](deut::Transaction& t) { return t.Put(*table, "key", "value"); });
//
// The same class serves a store in another process (Connect) and one inside this process (FromService; integration/embedded builds one).
// What transactions promise: transaction.h. Retrying: retry.h. Single-message transactions: one_shot.h.
// Thread-safety: all methods from any thread. One client per process and store is enough: each of its open transactions has a
// session of its own. Ownership: transactions end before their client is destroyed.
// Errors: UNAVAILABLE when the store cannot be reached (nothing was done); DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED with a pause to make.
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
#include "protocol/one_shot_channel.h"
#include "protocol/transaction_service.h"
#include "tc/client/client_core.h"
#include "tc/client/options.h"
#include "tc/client/transaction.h"
#include "tc/client/written_keys.h"

namespace deut {

struct ConnectOptions;

class Client {
 public:
  // `target`: HOST:PORT or unix:/path. INVALID_ARGUMENT if it, or the TLS files, are not right. Nothing is contacted yet: connections
  // are made when they are needed, and made again when they break. (connect.h)
  static Result<std::unique_ptr<Client>> Connect(const std::string& target, const ConnectOptions& options);

  // A client of a store inside this process. The service must outlive the client; or, in the second form, belongs to it.
  static std::unique_ptr<Client> FromService(TransactionService* service, const ClientOptions& options);
  static std::unique_ptr<Client> FromService(std::unique_ptr<TransactionService> service, const ClientOptions& options);
  // With a channel that the service owns, and that one-shot transactions go by where several are under way.
  static std::unique_ptr<Client> FromService(std::unique_ptr<TransactionService> service, OneShotChannel* one_shots,
                                             const ClientOptions& options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // NOT_FOUND if there is no such table. The answer is remembered; a table dropped and created again by another client has another
  // id, and operations on the old one fail: ForgetTable makes the next OpenTable ask again.
  Result<TableId> OpenTable(std::string_view name, const CallOptions& call = {});
  // ALREADY_EXISTS if there is one.
  // OUTCOME_UNKNOWN: the answer was lost. It may have happened, or may yet, until the time of the call is up. The library does not ask again, as it
  // could not tell this call's doing from another client's in between. Who knows that nobody else makes and drops tables of this name calls it again
  // when that time is up, until it answers: then OK and ALREADY_EXISTS both mean that the table is there, and OpenTable has its id.
  Result<TableId> CreateTable(std::string_view name, const CallOptions& call = {});
  // NOT_FOUND if there is none. OUTCOME_UNKNOWN: as above; called again, OK and NOT_FOUND both mean that it is gone. A table that another client has
  // made under the name since would be dropped by that.
  Status DropTable(std::string_view name, const CallOptions& call = {});
  Result<std::vector<TableInfo>> ListTables(const CallOptions& call = {});
  void ForgetTable(std::string_view name);

  Result<Transaction> Begin(const TransactionOptions& options = {}, const CallOptions& call = {});

  // Begin, the operations, Commit in one message and one round trip. Unless every operation succeeded nothing is written, and the
  // first failure is returned, with the results so far. Errors as in transaction.h (OUTCOME_UNKNOWN included).
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, const CallOptions& call = {});

  // Many of them at once: each is a transaction of its own, and they run side by side, in no order; over a network they share messages. Returns
  // when all have ended, each with its own answer. Their options, operations and results are the caller's until then.
  void ExecuteOneShots(absl::Span<OneShotTransaction> transactions, const CallOptions& call = {});
  void ExecuteOneShotsUntil(absl::Span<OneShotTransaction> transactions, Deadline limit);

  // What became of the transaction of that name (Transaction::name). Commit asks by itself when its answer is lost; this is for later, or for another
  // process. Asking ends a transaction that is still open. (TransactionService::AskOutcome)
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, const CallOptions& call = {});

  // Names and values of what the store does and holds, of both components (tc/README.md, dc/README.md).
  Result<ServiceStatus> GetStatus(const CallOptions& call = {});
  // Empties the transaction component's caches, so that reads go to the data component. For tests and measurements.
  Status DropCaches(const CallOptions& call = {});

  Runtime& runtime() { return core_.runtime(); }
  // The end of a call that begins now.
  Deadline DeadlineFor(const CallOptions& call) { return core_.DeadlineFor(call); }

  // For RunTransaction: no call of the transaction goes beyond `limit`; keys written are added to `trail` (may be null).
  Result<Transaction> BeginUntil(const TransactionOptions& options, Deadline limit, WrittenKeys* trail);
  Result<CommitAnswer> ExecuteOneShotUntil(const TransactionOptions& options, absl::Span<const Operation> operations,
                                           std::vector<OperationResult>* results, Deadline limit);

 private:
  friend class OneScan;

  Client(std::unique_ptr<TransactionService> owned, TransactionService* service, OneShotChannel* one_shots,
         const ClientOptions& options);

  const std::unique_ptr<TransactionService>
      owned_;  // null if the service is the caller's; outlives the sessions in core_
  ClientCore core_;

  // Names seen before. Not on the path of transactions: those carry ids.
  Mutex tables_mutex_;
  std::map<std::string, TableId, std::less<>> tables_ DEUT_GUARDED_BY(tables_mutex_);
};

}  // namespace deut

#endif  // TC_CLIENT_CLIENT_H_
