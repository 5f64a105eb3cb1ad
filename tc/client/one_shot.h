// OneShot: builds a transaction whose operations are all known beforehand, and runs it in one message and one round trip.
//
//   OneShot transfer(client);
//   const size_t at = transfer.Get(table, "a");
//   transfer.Put(table, "b", "1");
//   Result<CommitAnswer> committed = transfer.Run();      // ABORTED: run it again (retry.h: RunOneShot)
//   ... transfer.result(at).records ...
//
// Unless every operation succeeds nothing is written. The result of the failed operation then has the transaction's
// timestamp (OperationResult::failed_precondition_at): at that place in the serial order its precondition did not hold. Keys and
// values are copied in; Clear keeps the memory for the next use.
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

  // Each appends an operation and returns its index, which is also the index of its result.
  size_t Get(TableId table, std::string_view key);
  size_t Put(TableId table, std::string_view key, std::string_view value);
  size_t Insert(TableId table, std::string_view key, std::string_view value);
  size_t Update(TableId table, std::string_view key, std::string_view value);
  size_t Remove(TableId table, std::string_view key);
  // Changes a number; `kind` is kAdd, kMin or kMax. The result's record is the key's new value. (If the answer is
  // lost the results are lost with it. A committed one-shot with such operations then ends with OUTCOME_UNKNOWN, and
  // its message says that it has committed.)
  size_t Change(OperationKind kind, TableId table, std::string_view key, int64_t operand);
  // Scans one batch. Its limit of bytes is the smaller of batch_bytes and limit_bytes. The result says whether
  // records are left out, and where they begin. Over many deleted records it may be short, or empty, with records left
  // out. A OneScan reads on by itself.
  size_t Scan(TableId table, const ScanOptions& scan);

  size_t size() const { return pieces_.size(); }

  // Runs the transaction once. A further call runs a new transaction.
  Result<CommitAnswer> Run(const CallOptions& call = {});

  // The results of the last Run, valid until the next one. After a failure there may be fewer results than
  // operations.
  const std::vector<OperationResult>& results() const { return results_; }
  const OperationResult& result(size_t place) const { return results_[place]; }

  // For the retry loop. The operations' views are valid until this object changes.
  Client& client() { return *client_; }
  const TransactionOptions& options() const { return options_; }
  absl::Span<const Operation> operations();
  std::vector<OperationResult>* mutable_results() { return &results_; }

  void Clear();

 private:
  // The bytes of the operations are in bytes_, one string behind the other. They may move while operations are added,
  // so the views are made when the transaction runs.
  struct Piece {
    size_t first_bytes;   // key, or low
    size_t second_bytes;  // value, or high
  };
  size_t Add(const Operation& operation, std::string_view first, std::string_view second);

  Client* client_;
  TransactionOptions options_;
  std::string bytes_;
  std::vector<Piece> pieces_;
  std::vector<Operation> operations_;  // one for each piece
  std::vector<OperationResult> results_;
};

}  // namespace deut

#endif  // TC_CLIENT_ONE_SHOT_H_
