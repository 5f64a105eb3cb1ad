// Transaction: one interactive transaction of a Client. Its operations run in order, each seeing what the ones before it wrote.
//
// What is promised
//   - Serializable (the default): the committed transactions behave as if run one after the other, in the order of their timestamps;
//     one that begins after another was acknowledged comes after it. Scans are covered: no phantoms.
//   - Snapshot (read-only): never aborts, never makes others abort, reads the state before timestamp(). That state is consistent but
//     stale by as much as the oldest open writer is old (L2). TransactionOptions::min_timestamp, given the timestamp of one's own
//     last commit, makes it wait until that commit is inside.
//   - Everything read is *provisional until Commit is acknowledged* (D1): values, batches, "the key exists". Do not act on it outside
//     the transaction before that.
//   - A durable commit (the default) is on stable storage, with all it depended on, when Commit returns OK. A buffered one is ordered
//     and visible to others, and is lost if the transaction component dies within the next moments.
// Errors
//   - NOT_FOUND (Update), ALREADY_EXISTS (Insert), CONDITION_FAILED (CompareAndSet), INVALID_ARGUMENT: this operation did nothing; the
//     transaction goes on.
//   - ABORTED: a conflict ended it; nothing was written; run it again (retry.h does). status() says why.
//   - every other error ends it too, and nothing was written; except OUTCOME_UNKNOWN from Commit: the answer was lost and nobody could tell, to
//     the deadline, what became of it: the transaction may or may not be committed. (Commit asks the store first, which remembers for
//     minutes, over restarts too. AskOutcome asks again.) It is never repeated on its own: look before repeating.
// Atomic operations (Add, Min, Max, CompareAndSet) are a read and a write of this transaction, in one message: two of them on one key
//   conflict like any others. Their results are provisional like reads; a repeated transaction does them anew, once.
//   - after its end each operation answers with the error that ended it, or WRONG_STATE after Commit or Abort.
// Thread-safety: one thread at a time. Ownership: move-only; must end before its Client does. The destructor aborts it if open.
// Views passed in are used during the call only.
#ifndef TC_CLIENT_TRANSACTION_H_
#define TC_CLIENT_TRANSACTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/client/options.h"
#include "tc/client/scanner.h"

namespace deut {

class TransactionState;

class Transaction {
 public:
  explicit Transaction(std::unique_ptr<TransactionState> state);  // for Client
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();

  // The place in the serial order; for a snapshot the timestamp it reads below.
  Timestamp timestamp() const;
  // What Client::AskOutcome takes. None for a snapshot.
  const TransactionName& name() const;
  // True until Commit, Abort, or an error that ended it.
  bool open() const;
  // OK while open, and after its owner's Commit or Abort; else the error that ended it.
  const Status& status() const;

  // Nothing if the key is absent.
  Result<std::optional<std::string>> Get(TableId table, std::string_view key, const CallOptions& call = {});
  // Several keys in one message (or a few, if they are many); `values` corresponds to `keys` one to one.
  Status MultiGet(TableId table, absl::Span<const std::string_view> keys,
                  std::vector<std::optional<std::string>>* values, const CallOptions& call = {});

  // Writes whether the key is there or not; reads nothing.
  Status Put(TableId table, std::string_view key, std::string_view value, const CallOptions& call = {});
  // ALREADY_EXISTS if the key is there.
  Status Insert(TableId table, std::string_view key, std::string_view value, const CallOptions& call = {});
  // NOT_FOUND if the key is absent.
  Status Update(TableId table, std::string_view key, std::string_view value, const CallOptions& call = {});
  // The key is absent afterwards, whether it was there or not (that is asked by Get).
  Status Remove(TableId table, std::string_view key, const CallOptions& call = {});

  // The number that the key has, changed (number.h); what it is then. A key that is absent counts as 0 (Add, which wraps), or becomes the
  // operand. INVALID_ARGUMENT if the key has a value that is no number.
  Result<int64_t> Add(TableId table, std::string_view key, int64_t by, const CallOptions& call = {});
  Result<int64_t> Min(TableId table, std::string_view key, int64_t with, const CallOptions& call = {});
  Result<int64_t> Max(TableId table, std::string_view key, int64_t with, const CallOptions& call = {});
  // Writes the value if the key has the expected one (nothing: is absent). CONDITION_FAILED if not; `found` (may be null) is then what it has.
  Status CompareAndSet(TableId table, std::string_view key, std::optional<std::string_view> expected,
                       std::string_view value, std::optional<std::string>* found = nullptr,
                       const CallOptions& call = {});

  // Puts with this transaction's timestamp written into eight bytes of the key or value, from `offset` on, most significant first: keys and
  // values so stamped sort as the transactions committed, over restarts too. No two transactions have the same; one that stamps several
  // keys tells them apart itself. Answers the key as written.
  Result<std::string> PutStampedKey(TableId table, std::string_view key, uint32_t offset, std::string_view value,
                                    const CallOptions& call = {});
  Status PutStampedValue(TableId table, std::string_view key, std::string_view value, uint32_t offset,
                         const CallOptions& call = {});

  // Removes every key of [low, high) (empty: from the first, to the last), a batch a message. Answers how many were there. The range counts as
  // read: nobody slips a key in unseen.
  Result<uint64_t> RemoveRange(TableId table, std::string_view low, std::string_view high,
                               const CallOptions& call = {});

  // Reads up to the limits of `options` into memory (limit_bytes 0 means kDefaultScanBytes here). For long ranges: OpenScanner.
  static constexpr uint64_t kDefaultScanBytes = 4 << 20;
  Result<ScanResult> Scan(TableId table, const ScanOptions& options, const CallOptions& call = {});
  // A scan that holds one batch at a time. Of the transaction's own writes it sees those made before its first batch is fetched.
  // The scanner must not be used after this transaction is destroyed; after its end it reports the end.
  Scanner OpenScanner(TableId table, ScanOptions options, const CallOptions& call = {});

  // Mixed operations in one message, run in order; results correspond one to one, each with a status of its own. The returned status
  // is what ended the transaction, or OK. The way to many small operations, and to reads without a copy.
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 const CallOptions& call = {});

  Result<CommitAnswer> Commit(const CallOptions& call = {});
  // OK also if it had been aborted already; WRONG_STATE after Commit.
  Status Abort();

 private:
  Result<int64_t> ChangeNumber(OperationKind kind, TableId table, std::string_view key, int64_t operand,
                               const CallOptions& call);
  Status ExecuteOne(const Operation& operation, const CallOptions& call);

  std::unique_ptr<TransactionState> state_;
};

}  // namespace deut

#endif  // TC_CLIENT_TRANSACTION_H_
