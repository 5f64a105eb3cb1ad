// ClientCore: what a client shares with its transactions: the service, the idle sessions, deadlines, and which failures leave a
// session fit for reuse. Not part of the public interface.
// Thread-safety: all methods from any thread. Ownership: the service is the caller's (client.h may own it); outlives all transactions.
#ifndef TC_CLIENT_CLIENT_CORE_H_
#define TC_CLIENT_CLIENT_CORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/one_shot_channel.h"
#include "protocol/transaction_service.h"
#include "tc/client/client_session.h"
#include "tc/client/options.h"
#include "tc/client/session_pool.h"

namespace deut {

// True for an operation's status that leaves its transaction open (TransactionSession::Execute).
inline bool LeavesOpen(const Status& status) {
  return status.ok() || status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound ||
         status == ErrorCode::kInvalidArgument || status == ErrorCode::kConditionFailed;
}

// Whether an operation that succeeded has something to tell, beside that.
inline bool Tells(const Operation& operation) {
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

  TransactionService& service() { return *service_; }
  Runtime& runtime() { return runtime_; }
  Duration default_timeout() const { return default_timeout_; }

  // The end of a call that begins now: its own or the default timeout, but not beyond `limit`.
  Deadline DeadlineFor(const CallOptions& call, Deadline limit = kNoDeadline);

  struct Begun {
    std::unique_ptr<ClientSession> session;
    Timestamp timestamp;
    TransactionName name;  // of one that may write
  };
  // Begins a transaction on an idle session or a new one. An idle session whose connection has died meanwhile (UNAVAILABLE: nothing
  // was done) is replaced, once.
  Result<Begun> Begin(const TransactionOptions& options, Deadline deadline);

  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline);

  // Begins a transaction that is one scan, with its first batch in (*session)->batch. The session is the caller's, to be released: with its
  // transaction open, unless the scan is over.
  Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan, Deadline deadline,
                              std::unique_ptr<ClientSession>* session);

  // Each transaction by itself and side by side, as far as the service can do that; returns when all have ended. The answers are as of
  // ExecuteOneShot.
  void ExecuteOneShots(absl::Span<OneShotTransaction> transactions, Deadline deadline);

  // What became of a transaction whose commit ended with `lost` (OUTCOME_UNKNOWN): asks until it is told, or the time is up. OK: it is committed.
  // UNAVAILABLE: it is not, and never will be. Else `lost`, with why nobody knows.
  Result<CommitAnswer> Settle(const TransactionName& name, const Status& lost, Deadline deadline);

  // A session whose last transaction ended with `last`: kept if that was an outcome and not a failure, else closed.
  // REQUIRES: no transaction is open on it.
  void Release(std::unique_ptr<ClientSession> session, const Status& last);

 private:
  // Runs `call(session)` as described at Begin; on success hands the session to `*kept`.
  template <typename Call>
  auto OnSession(Deadline deadline, std::unique_ptr<ClientSession>* kept, Call call);

  // A name that nothing had before, for a transaction that is about to begin on the session, or where nothing has a timestamp below `not_before`.
  TransactionName NewName(ClientSession& session);
  TransactionName NewName(Timestamp not_before);
  // Whether a one-shot transaction is given one: it costs its remembering, and is for who has lost the answer.
  bool IsNamed(const TransactionOptions& options) const;
  Result<CommitAnswer> OneShotOnSession(const TransactionOptions& options, absl::Span<const Operation> operations,
                                        std::vector<OperationResult>* results, Deadline deadline);
  // The answer after asking, by the name it had, what became of it where that is needed.
  Result<CommitAnswer> SettleOneShot(const OneShotTransaction& transaction, const TransactionName& name,
                                     Deadline deadline);

  TransactionService* const service_;
  OneShotChannel* const channel_;
  Runtime& runtime_;
  const Duration default_timeout_;
  SessionPool pool_;
  // Ids: random, and counted from there.
  const TransactionId first_id_;
  std::atomic<uint64_t> names_{0};
  std::atomic<int> one_shots_{0};  // under way
};

}  // namespace deut

#endif  // TC_CLIENT_CLIENT_CORE_H_
