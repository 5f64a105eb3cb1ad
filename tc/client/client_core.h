// ClientCore: the state that a client shares with its transactions: the service, the idle sessions, and deadlines. It
// also decides which failures leave a session fit for reuse. Not part of the public interface.
// Thread-safety: all methods from any thread. Ownership: borrows the service (Client may own it); outlives all
// transactions.
#ifndef TC_CLIENT_CLIENT_CORE_H_
#define TC_CLIENT_CLIENT_CORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_channel.h"
#include "tc/client/client_session.h"
#include "tc/client/options.h"
#include "tc/client/session_pool.h"

namespace deut {

// Returns whether an operation that ends with this status leaves its transaction open (TransactionSession::Execute).
inline bool KeepsTransactionOpen(const Status& status) {
  return status.ok() || status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound ||
         status == ErrorCode::kInvalidArgument || status == ErrorCode::kConditionFailed;
}

// Returns whether a successful operation has a result beside its status.
inline bool HasResult(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kPut:
    case OperationKind::kInsert:
      return operation.stamp != Stamp::kNone;
    case OperationKind::kUpdate:
    case OperationKind::kRemove:
    case OperationKind::kCompareAndSet:
      return false;
    case OperationKind::kGet:
    case OperationKind::kScan:
    case OperationKind::kAdd:
    case OperationKind::kMin:
    case OperationKind::kMax:
    case OperationKind::kRemoveRange:
      return true;
  }
  return true;
}

class ClientCore {
 public:
  // `one_shots` may be null; it outlives this.
  ClientCore(TransactionService* service, OneShotChannel* one_shots, const ClientOptions& options);
  ~ClientCore();  // REQUIRES: no call is in flight
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  TransactionService& service() { return *service_; }
  Runtime& runtime() { return runtime_; }
  Duration default_timeout() const { return default_timeout_; }

  // The deadline of a call that begins now: after its own or the default timeout, but not beyond `limit`.
  Deadline DeadlineFor(const CallOptions& call, Deadline limit = kNoDeadline);

  struct Begun {
    std::unique_ptr<ClientSession> session;
    Timestamp timestamp;
    TransactionName name;  // none for a snapshot
  };
  // Begins a transaction on an idle session or a new one. If the connection of an idle session has died meanwhile
  // (UNAVAILABLE: nothing was done), the session is replaced, once.
  Result<Begun> Begin(const TransactionOptions& options, Deadline deadline);

  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline);

  // Begins a transaction that is one scan, with its first batch in (*session)->batch. The caller owns the session and
  // must release it. Unless the scan is over, its transaction is open.
  Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan, Deadline deadline,
                              std::unique_ptr<ClientSession>* session);

  // Runs each transaction by itself, side by side as far as the service can do that. Returns when all have ended. The
  // answers are those of ExecuteOneShot.
  void ExecuteOneShots(absl::Span<OneShotTransaction> transactions, Deadline deadline);

  // Finds out the outcome of a transaction whose commit ended with `lost` (OUTCOME_UNKNOWN). It asks until it gets an
  // answer or the time is up. OK: committed. UNAVAILABLE: it is not committed, and never will be. Otherwise returns
  // `lost`, with the reason why the outcome is not known. REQUIRES: `lost` is OUTCOME_UNKNOWN.
  Result<CommitAnswer> AskForOutcome(const TransactionName& name, const Status& lost, Deadline deadline);

  // Takes back a session whose last transaction ended with `last`. The session is kept if that was an outcome, and
  // closed if it was a failure.
  // REQUIRES: no transaction is open on it.
  void Release(std::unique_ptr<ClientSession> session, const Status& last);

 private:
  // Runs `call(session)` as described at Begin; on success hands the session to `*kept`, which is empty before.
  template <typename Call>
  auto OnSession(Deadline deadline, std::unique_ptr<ClientSession>* kept, Call call);

  // Makes a new name, for a transaction that is about to begin: on the session, or where no transaction gets a
  // timestamp below `not_before`.
  TransactionName NewName(ClientSession& session);
  TransactionName NewName(Timestamp not_before);
  // Returns whether a one-shot transaction gets a name. The store must remember names, and a name helps only a client
  // whose answer can be lost.
  bool IsNamed(const TransactionOptions& options) const;
  Result<CommitAnswer> OneShotOnSession(const TransactionOptions& options, absl::Span<const Operation> operations,
                                        std::vector<OperationResult>* results, Deadline deadline);
  // Returns the transaction's answer. If that is OUTCOME_UNKNOWN, it first asks for the outcome by the transaction's
  // name.
  Result<CommitAnswer> ResolveOneShotOutcome(const OneShotTransaction& transaction, const TransactionName& name,
                                             Deadline deadline);

  TransactionService* const service_;
  OneShotChannel* const channel_;
  Runtime& runtime_;
  const Duration default_timeout_;
  SessionPool pool_;
  // Ids of names: a random one, and the numbers counted from there.
  const TransactionId first_id_;
  std::atomic<uint64_t> names_{0};
  std::atomic<int> one_shots_{0};  // in flight
};

}  // namespace deut

#endif  // TC_CLIENT_CLIENT_CORE_H_
