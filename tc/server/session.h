// Session: one client's transactions, one at a time (protocol/transaction_service.h).
//
// S9: another thread names in `evicted_` the transaction that is to be aborted because it holds back too much memory.
//   The thread that has the claim aborts it: that thread, or the next call.
// The claim word: 0 free, 1 in use, 2 in use and waited for. A call claims the session for its duration. Other
//   threads claim it for a moment, if it is free: the reaper, EndIdleStreams, and Evict. (The reaper aborts a
//   transaction that was not used for the idle timeout.) A call may have to wait only for them, and for AbortNow.
// Thread-safety: calls by one thread at a time, as the interface says; ReapIfIdle, EndIdleStreams, Evict and AbortNow
//   also from other threads. Ownership: borrows everything that it is given.
#ifndef TC_SERVER_SESSION_H_
#define TC_SERVER_SESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "protocol/prefetch.h"
#include "protocol/transaction_service.h"
#include "tc/record_manager/record_manager.h"

namespace deut::tc {

class SessionRegistry;

// The most bytes that the results of a one-shot transaction may hold together, because they are kept until it has
// committed. The results of an interactive transaction are sent while it goes on.
constexpr size_t kMaxOneShotResultBytes = 64 << 20;

class Session final : public TransactionSession, private PrefetchSteps {
 public:
  // `serving` returns OK, or why the TC does not serve.
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
  Result<CommitAnswer> ExecuteOneShotWithoutWait(const TransactionOptions& options,
                                                 absl::Span<const Operation> operations,
                                                 std::vector<OperationResult>* results, Deadline deadline,
                                                 Lsn* durable_at, std::unique_ptr<BegunOneShot> begun) override {
    return RunOneShot(options, operations, results, deadline, durable_at, static_cast<PrefetchedScan*>(begun.get()));
  }
  PrefetchSteps* prefetch_steps() override { return this; }
  Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan,
                              std::vector<OperationResult>* results, Deadline deadline) override;

  // Aborts the open transaction if its last use ended before `used_before`.
  void ReapIfIdle(MonotonicTime used_before);
  // A scan that was not used for this long gives up its stream of the DC, which would cut it off some time later.
  static constexpr Duration kStreamIdleTimeout = seconds(8);
  // Calls RecordManager::EndIdleStreams for the open transaction, unless the session is in use. A session in use does
  // so itself, before each operation.
  void EndIdleStreams(MonotonicTime used_before);
  void AbortNow(AbortReason reason);
  // S9: aborts the open transaction if it has this timestamp: now, or, if the session is in use, before its next
  // operation. To be called again until the transaction is gone.
  void Evict(Timestamp timestamp);

 private:
  class Claim;

  bool NotePrefetch(Token token, absl::Span<const Operation> operations) override;
  std::unique_ptr<BegunOneShot> BeginForPrefetch(Token token, const TransactionOptions& options,
                                                 absl::Span<const Operation> operations) override;
  bool StartPrefetch(Token /*token*/) override { return read_ahead_ != nullptr && read_ahead_->Start(); }
  bool AwaitPrefetch(Token /*token*/, Deadline deadline) override { return read_ahead_->Finish(deadline); }

  // For other threads than that of the calls: claims the session if it is free, and gives it back.
  bool TryClaim();
  void Unclaim();
  Status CheckMayBegin();
  // `begun`: null, or the begun transaction to continue, if it is still there.
  Status BeginLocked(const TransactionOptions& options, Deadline deadline, PrefetchedScan* begun = nullptr);
  // Begins the transaction in spare_transaction_, where it remains if it ends within the call. REQUIRES: nothing is
  // declared.
  Status BeginUndeclaredLocked(const TransactionOptions& options, Deadline deadline);
  // Runs `attempt`, and repeats it after lost conflicts, as Restarts says. REQUIRES: a failed attempt leaves no
  // transaction open.
  template <typename Attempt>
  auto WithRestarts(Deadline deadline, const Attempt& attempt) -> decltype(attempt());
  // `durable_at`: null, or as for ExecuteOneShotWithoutWait.
  Result<CommitAnswer> RunOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                  std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                  PrefetchedScan* begun);
  // Runs one attempt.
  Result<CommitAnswer> OneShotLocked(const TransactionOptions& options, absl::Span<const Operation> operations,
                                     std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                     PrefetchedScan* begun);
  // Runs one attempt of a transaction that is one point read.
  Result<CommitAnswer> ReadAloneLocked(const TransactionOptions& options, const Operation& get,
                                       std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at);
  Result<ScanBegun> BeginScanLocked(const TransactionOptions& options, const Operation& scan,
                                    std::vector<OperationResult>* results, Deadline deadline);
  Status ExecuteLocked(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                       Deadline deadline);
  // Runs the operations of the open transaction, into results made for them. Returns the error that has ended the
  // transaction, or OK.
  Status RunLocked(absl::Span<const Operation> operations, std::vector<OperationResult>* results, Deadline deadline,
                   size_t room);
  // Subtracts the bytes of the results from `room`. The first result that does not fit loses its records. Its error
  // is returned, and ends the transaction.
  static Status ChargeResults(absl::Span<OperationResult> results, size_t* room);
  Status RunOne(const Operation& operation, OperationResult* result, Deadline deadline);
  Status NoTransaction() const;
  // Aborts the open transaction if it is to be evicted (Evict). Returns whether it did.
  bool EvictedLocked();
  void AbortLocked(AbortReason reason);
  // Commits the open transaction, which has ended afterwards in any case.
  Result<CommitAnswer> CommitLocked(Deadline deadline, Lsn* durable_at = nullptr);

  RecordManager& records_;
  Runtime& runtime_;
  const std::function<Status()> serving_;
  SessionRegistry& registry_;
  std::atomic<uint32_t> claim_{0};
  std::atomic<uint64_t> evicted_{0};  // timestamp of the transaction to abort; 0: none
  MonotonicTime last_use_;
  std::unique_ptr<Transaction> txn_;
  // The last transaction, kept for its memory. While a call holds the claim, also one that the call begins and ends,
  // and of which no other thread need know.
  std::unique_ptr<Transaction> spare_transaction_;
  std::unique_ptr<ReadAhead> read_ahead_;  // made when it is first wanted
  Status unreported_end_;                  // why the last transaction is gone, if the client was not told yet
};

}  // namespace deut::tc

#endif  // TC_SERVER_SESSION_H_
