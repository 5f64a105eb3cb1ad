// OneShot: builds a transaction whose operations are all known beforehand, and runs it in one message and one round trip.
//
//   OneShot transfer(client);
//   const size_t at = transfer.Get(table, "a");
//   transfer.Put(table, "b", "1");
//   Result<CommitAnswer> committed = transfer.Run();      // ABORTED: run it again (retry.h: RunOneShot)
//   ... transfer.result(at).records ...
//
// Unless every operation succeeded nothing is written. The result of the operation that failed then tells the transaction's timestamp
// (OperationResult::refused_at): there, in the serial order, its precondition did not hold. Keys and values are copied in; Clear keeps the
// memory for the next use.
// Thread-safety: one thread at a time. Ownership: refers to the client.
#ifndef TC_CLIENT_ONE_SHOT_H_
#define TC_CLIENT_ONE_SHOT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"
#include "tc/client/options.h"

namespace deut {

class OneShot {
 public:
  explicit OneShot(Client& client, TransactionOptions options = {}) : client_(&client), options_(std::move(options)) {}

  // Each appends an operation and answers its place, which is the place of its result.
  size_t Get(TableId table, std::string_view key);
  size_t Put(TableId table, std::string_view key, std::string_view value);
  size_t Insert(TableId table, std::string_view key, std::string_view value);
  size_t Update(TableId table, std::string_view key, std::string_view value);
  size_t Remove(TableId table, std::string_view key);
  // Changes of a number: kind is kAdd, kMin or kMax. The result's record is what the key has then. (When the answer is lost the results are lost with
  // it: a committed one-shot with such operations then ends with OUTCOME_UNKNOWN, and says that it has committed.)
  size_t Change(OperationKind kind, TableId table, std::string_view key, int64_t operand);
  // One batch: batch_bytes is the limit of bytes where limit_bytes is greater or absent. What is left out stands in the result.
  size_t Scan(TableId table, const ScanOptions& scan);

  size_t size() const { return pieces_.size(); }

  // Runs it once. May be called again (it is a new transaction then).
  Result<CommitAnswer> Run(const CallOptions& call = {});

  // Of the last Run, also of one that failed: then perhaps fewer than operations. Good until the next one.
  const std::vector<OperationResult>& results() const { return results_; }
  const OperationResult& result(size_t place) const { return results_[place]; }

  // What the retry loop needs. The operations' views live until the next change of this object.
  Client& client() { return *client_; }
  const TransactionOptions& options() const { return options_; }
  absl::Span<const Operation> operations();
  std::vector<OperationResult>* mutable_results() { return &results_; }

  void Clear();

 private:
  // Bytes of an operation lie in bytes_, one string behind the other; they may move while the operation list grows: so views are made when it runs.
  struct Piece {
    size_t first_bytes;   // key, or low
    size_t second_bytes;  // value, or high
  };
  size_t Add(const Operation& operation, std::string_view first, std::string_view second);

  Client* client_;
  TransactionOptions options_;
  std::string bytes_;
  std::vector<Piece> pieces_;
  std::vector<Operation> operations_;  // one to a piece
  std::vector<OperationResult> results_;
};

}  // namespace deut

#endif  // TC_CLIENT_ONE_SHOT_H_
