// Session: one client's transactions, one at a time (protocol/transaction_service.h).
//
// S9: who is to be aborted because he holds back more than there is room for is named in `evicted_` by another thread; whoever has the claim does it:
//   that thread, or the next call.
// The claim word: 0 free, 1 in use, 2 in use and waited for. A call claims it for its duration. So does the reaper, for the moment in
// which it aborts a transaction that nobody has used for the idle timeout; that is the only thing a call may have to wait for.
// Thread-safety: calls by one thread at a time, as the interface says; ReapIfIdle from the reaper's thread.
#ifndef TC_SERVER_SESSION_H_
#define TC_SERVER_SESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "protocol/transaction_service.h"
#include "tc/record_manager/record_manager.h"

namespace deut::tc {

class SessionRegistry;

// What the results of a one-shot transaction may hold together: they are kept until it has committed. Those of an interactive one travel
// while it goes on.
constexpr size_t kMaxOneShotResultBytes = 64 << 20;

class Session final : public TransactionSession {
 public:
  // `serving` answers why the TC does not serve, or OK.
  Session(RecordManager& records, Runtime& runtime, std::function<Status()> serving, SessionRegistry& registry);
  ~Session() override;

  Timestamp not_before() const override;
  Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) override;
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 Deadline deadline) override;
  Result<CommitAnswer> Commit(Deadline deadline) override;
  Status Abort() override;
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline) override {
    return RunOneShot(options, operations, results, deadline, nullptr, nullptr);
  }
  Result<CommitAnswer> ExecuteOneShotAhead(const TransactionOptions& options, absl::Span<const Operation> operations,
                                           std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                           std::unique_ptr<BegunOneShot> begun) override {
    return RunOneShot(options, operations, results, deadline, durable_at, static_cast<BegunScan*>(begun.get()));
  }
  bool WantReads(absl::Span<const Operation> operations) override;
  std::unique_ptr<BegunOneShot> BeginAhead(const TransactionOptions& options,
                                           absl::Span<const Operation> operations) override;
  bool StartReads() override { return read_ahead_ != nullptr && read_ahead_->Start(); }
  bool FinishReads(Deadline deadline) override { return read_ahead_->Finish(deadline); }
  Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan,
                              std::vector<OperationResult>* results, Deadline deadline) override;

  // Aborts the open transaction if its last use ended before `used_before`.
  void ReapIfIdle(MonotonicTime used_before);
  // A scan that was not used for so long gives up its stream of the DC, which would cut it off some time later.
  static constexpr Duration kScansRestAfter = seconds(8);
  // RecordManager::RestScans for the open transaction, unless the session is in use: then it does so itself, before each operation.
  void RestScans(MonotonicTime used_before);
  void AbortNow(AbortReason reason);
  // S9: aborts the open transaction if it is this one: now, unless the session is in use; then before its next operation. To be called again until
  // it has gone.
  void Evict(Timestamp timestamp);

 private:
  class Claim;

  Status CheckMayBegin();
  // `begun`: null, or what is to be gone on with, if it is still there.
  Status BeginLocked(const TransactionOptions& options, Deadline deadline, BegunScan* begun = nullptr);
  // In ended_, where it remains if it ends within the call. REQUIRES: nothing is declared.
  Status BeginUndeclaredLocked(const TransactionOptions& options, Deadline deadline);
  // Runs `attempt`, and again while it has lost a conflict, as Restarts says. REQUIRES: an attempt that fails leaves no transaction open.
  template <typename Attempt>
  auto WithRestarts(Deadline deadline, const Attempt& attempt) -> decltype(attempt());
  // `durable_at`: null, or as ExecuteOneShotAhead.
  Result<CommitAnswer> RunOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                  std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                  BegunScan* begun);
  // One attempt.
  Result<CommitAnswer> OneShotLocked(const TransactionOptions& options, absl::Span<const Operation> operations,
                                     std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                     BegunScan* begun);
  // The same of a point read alone.
  Result<CommitAnswer> ReadAloneLocked(const TransactionOptions& options, const Operation& get,
                                       std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at);
  Result<ScanBegun> BeginScanLocked(const TransactionOptions& options, const Operation& scan,
                                    std::vector<OperationResult>* results, Deadline deadline);
  Status ExecuteLocked(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                       Deadline deadline);
  // The operations of the open transaction, into results made for them. What ends the transaction is answered.
  Status RunLocked(absl::Span<const Operation> operations, std::vector<OperationResult>* results, Deadline deadline,
                   size_t room);
  // Takes what the results hold from `room`. The first that does not fit loses its records, and ends the transaction with its status.
  static Status TakeRoom(absl::Span<OperationResult> results, size_t* room);
  Status RunOne(const Operation& operation, OperationResult* result, Deadline deadline);
  Status NoTransaction() const;
  // The open transaction is to go (Evict), and has gone.
  bool EvictedLocked();
  void AbortLocked(AbortReason reason);
  // Commits the open transaction; it has ended afterwards, however this ends.
  Result<CommitAnswer> CommitLocked(Deadline deadline, Lsn* durable_at = nullptr);

  RecordManager& records_;
  Runtime& runtime_;
  const std::function<Status()> serving_;
  SessionRegistry& registry_;
  std::atomic<uint32_t> claim_{0};
  std::atomic<uint64_t> evicted_{0};  // the timestamp of a transaction that is to be aborted; 0 = none
  MonotonicTime last_use_;
  std::unique_ptr<Transaction> txn_;
  // The last one, for its memory; and, while a call holds the claim that begins and ends it, one that nobody else need know of.
  std::unique_ptr<Transaction> ended_;
  std::unique_ptr<ReadAhead> read_ahead_;  // once it was wanted
  Status ended_by_;                        // why the last transaction is gone, where the client has not been told yet
};

}  // namespace deut::tc

#endif  // TC_SERVER_SESSION_H_
