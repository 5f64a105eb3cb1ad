// Transaction: one interactive transaction of a Client. Its operations run in order, and each sees the writes of
// those before it.
//
// Promises:
// - Serializable (the default): the committed transactions behave as if they ran one after the other, in the order of
//   their timestamps. A transaction that begins after another was acknowledged comes after it. Scans are covered:
//   there are no phantoms.
// - Snapshot (read-only): no conflict aborts it. It reads the state before timestamp(). That state is consistent, but
//   as stale as the oldest open writer is old (L2). With TransactionOptions::min_timestamp set to the timestamp of the
//   client's own last commit, it waits until that commit is in it. It does not wait for a transaction that has been
//   open for long and has only read; such a transaction aborts if it writes afterwards. Otherwise a snapshot
//   conflicts with no transaction.
// - Everything read is *provisional until Commit is acknowledged* (D1): values, batches, "the key exists". Do not act
//   on it outside the transaction before that.
// - A durable commit (the default) is on stable storage, with everything it depended on, when Commit returns OK. A
//   buffered commit is ordered and visible to others, and is lost if the transaction component dies within the next
//   moments.
// Errors:
// - NOT_FOUND (Update), ALREADY_EXISTS (Insert), CONDITION_FAILED (CompareAndSet), INVALID_ARGUMENT: this operation
//   did nothing, and the transaction goes on.
// - ABORTED: a conflict has ended the transaction, and nothing was written. status() says why. Run it again (retry.h
//   does).
// - OUTCOME_UNKNOWN from Commit: the answer was lost, and the outcome was not known before the deadline. The
//   transaction may or may not be committed. Commit has asked the store, which remembers outcomes for minutes, even
//   over restarts; AskOutcome asks again. The library never repeats such a transaction. Find out its outcome before
//   you repeat it.
// - Every other error ends the transaction, too, and nothing was written.
// - After the end each operation returns the error that ended the transaction, or WRONG_STATE after Commit or Abort.
// Atomic operations (Add, Min, Max, CompareAndSet) are a read and a write of this transaction in one message. Two of
// them on one key conflict like any others. Their results are provisional like reads. A repeated transaction does
// them anew, once.
// Thread-safety: one thread at a time. Ownership: move-only; must end before its Client does. The destructor aborts
// it if it is open. Views passed in are used only during the call.
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

  // Its place in the serial order; for a snapshot the timestamp below which it reads.
  Timestamp timestamp() const;
  // The name to give to Client::AskOutcome. A snapshot has none.
  const TransactionName& name() const;
  // True until Commit, Abort, or an error that ended it.
  bool open() const;
  // OK while open, and after its owner's Commit or Abort; else the error that ended it.
  const Status& status() const;

  // Returns nothing (nullopt) if the key is absent.
  Result<std::optional<std::string>> Get(TableId table, std::string_view key, const CallOptions& call = {});
  // Reads several keys in one message, or very many keys in a few. `values` corresponds to `keys` one to one.
  Status MultiGet(TableId table, absl::Span<const std::string_view> keys,
                  std::vector<std::optional<std::string>>* values, const CallOptions& call = {});

  // Writes whether the key exists or not, and reads nothing.
  Status Put(TableId table, std::string_view key, std::string_view value, const CallOptions& call = {});
  // ALREADY_EXISTS if the key exists.
  Status Insert(TableId table, std::string_view key, std::string_view value, const CallOptions& call = {});
  // NOT_FOUND if the key is absent.
  Status Update(TableId table, std::string_view key, std::string_view value, const CallOptions& call = {});
  // The key is absent afterwards, whether it existed or not. (Get tells whether it does.)
  Status Remove(TableId table, std::string_view key, const CallOptions& call = {});

  // Change the number that the key has (number.h), and return the new one. An absent key counts as 0 for Add, which
  // wraps around, and becomes the operand for Min and Max. INVALID_ARGUMENT if the key's value is no number.
  Result<int64_t> Add(TableId table, std::string_view key, int64_t by, const CallOptions& call = {});
  Result<int64_t> Min(TableId table, std::string_view key, int64_t with, const CallOptions& call = {});
  Result<int64_t> Max(TableId table, std::string_view key, int64_t with, const CallOptions& call = {});
  // Writes the value if the key has the expected one; nullopt: if it is absent. Otherwise CONDITION_FAILED, and
  // `found` (may be null) becomes the key's present value.
  Status CompareAndSet(TableId table, std::string_view key, std::optional<std::string_view> expected,
                       std::string_view value, std::optional<std::string>* found = nullptr,
                       const CallOptions& call = {});

  // Puts with this transaction's timestamp written into eight bytes of the key or value, from `offset` on, most
  // significant byte first. Keys and values stamped like this sort in the order of the commits, even over restarts.
  // No two transactions have the same timestamp. A transaction that stamps several keys must make them differ by
  // itself. PutStampedKey returns the key as written.
  Result<std::string> PutStampedKey(TableId table, std::string_view key, uint32_t offset, std::string_view value,
                                    const CallOptions& call = {});
  Status PutStampedValue(TableId table, std::string_view key, std::string_view value, uint32_t offset,
                         const CallOptions& call = {});

  // Removes every key of [low, high), one batch per message; empty bounds: from the first key, to the last. Returns
  // the number of keys removed. The range counts as read, so no other transaction slips a key in unseen.
  Result<uint64_t> RemoveRange(TableId table, std::string_view low, std::string_view high,
                               const CallOptions& call = {});

  // Reads up to the limits of `options` into memory (limit_bytes 0 means kDefaultScanBytes here). For long ranges use
  // OpenScanner.
  static constexpr uint64_t kDefaultScanBytes = 4 << 20;
  Result<ScanResult> Scan(TableId table, const ScanOptions& options, const CallOptions& call = {});
  // Opens a scan that holds one batch at a time. It sees the transaction's own writes made before its first batch is
  // fetched. The scanner must not be used after this transaction is destroyed. After the transaction's end it reports
  // that end.
  Scanner OpenScanner(TableId table, ScanOptions options, const CallOptions& call = {});

  // Runs mixed operations in one message, in order. The results correspond one to one, each with a status of its own.
  // Returns the error that ended the transaction, or OK. Use it for many small operations, and for reads without a
  // copy.
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 const CallOptions& call = {});

  // Returns when the commit is acknowledged as the transaction's durability asks (D1).
  Result<CommitAnswer> Commit(const CallOptions& call = {});
  // OK also if the transaction had been aborted before; WRONG_STATE after Commit.
  Status Abort();

 private:
  Result<int64_t> ChangeNumber(OperationKind kind, TableId table, std::string_view key, int64_t operand,
                               const CallOptions& call);
  Status ExecuteOne(const Operation& operation, const CallOptions& call);

  std::unique_ptr<TransactionState> state_;
};

}  // namespace deut

#endif  // TC_CLIENT_TRANSACTION_H_
