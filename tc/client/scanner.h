// Scanner: reads a range of one table in key order, one batch at a time. Records are views into the batch.
//
//   Scanner scanner = transaction.OpenScanner(table, {.low = "a", .high = "b"});
//   while (scanner.Next()) Use(scanner.key(), scanner.value());
//   if (!scanner.status().ok()) return scanner.status();
//
// Everything it shows is provisional until the transaction's commit is acknowledged (D1).
// Thread-safety: as its transaction, one thread at a time. Ownership: refers to its transaction, which must not be
// destroyed before the last call. Views are valid until the next call of Next.
#ifndef TC_CLIENT_SCANNER_H_
#define TC_CLIENT_SCANNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/record_batch.h"
#include "protocol/transaction_service.h"
#include "tc/client/options.h"

namespace deut {

class TransactionState;

class Scanner {
 public:
  Scanner(TransactionState* transaction, TableId table, ScanOptions options,
          const CallOptions& call);  // for Transaction
  Scanner(Scanner&&) = default;
  Scanner& operator=(Scanner&&) = default;

  // Moves to the next record; the first call moves to the first one. Returns false at the range's end, at a limit,
  // and if a read failed.
  bool Next() {
    if (iterator_.has_value()) [[likely]] {
      if (iterator_->Valid()) iterator_->Next();
      if (iterator_->Valid()) [[likely]]
        return true;
    }
    return NextBatchOrEnd();
  }
  // REQUIRES for these four: Next has returned true.
  const RecordView& record() const { return iterator_->record(); }
  std::string_view key() const { return iterator_->record().key; }
  std::string_view value() const { return iterator_->record().value; }
  // An upper bound of the record's version, or (0, 0) if the TC had a copy of the record without one. Do not base a
  // decision on it.
  Version version() const { return iterator_->record().version; }

  // OK unless a read failed.
  const Status& status() const { return status_; }
  // True when the whole range has been shown.
  bool complete() const { return complete_ && !AtRecord(); }
  // Where a further scan continues, behind the records shown so far (ScanOptions::ResumeAt). REQUIRES: not
  // complete().
  std::string resume() const;

  // Reads the rest, up to the limits, into one batch. REQUIRES: Next has not been called.
  Result<ScanResult> ReadAll();

  // For OneScan, in place of the first Next: takes the first batch, which has been read already.
  bool BeginWith(std::vector<OperationResult> batch);

 private:
  bool AtRecord() const { return iterator_.has_value() && iterator_->Valid(); }
  // Returns whether another batch may be asked for.
  bool MayFetch() const;
  // The rest of Next, when the batch that is shown has come to its end.
  bool NextBatchOrEnd();
  bool Fetch();
  // Takes the answer in results_ as the next batch.
  bool AcceptBatch(bool first);
  Operation NextBatch() const;

  TransactionState* transaction_;
  TableId table_;
  ScanOptions options_;  // low or high moves with the scan
  CallOptions call_;
  std::vector<OperationResult> results_;  // one: the batch that is being shown
  std::optional<RecordBatch::Iterator> iterator_;
  uint64_t prefetched_batch_ = 0;  // number of the next batch if it was prefetched, else 0
  uint32_t prefetch_backoff_ =
      0;  // back-off: this many batches are not fetched ahead after a failure; it doubles with each failure in a row
  uint32_t prefetch_backoff_left_ = 0;  // those of them that are still to come
  uint32_t scan_sequence_ = 0;          // from the first batch: decides which own writes the scan sees
  uint64_t records_ = 0;                // received so far
  uint64_t bytes_ = 0;
  bool first_ = true;  // no batch was asked for yet
  bool complete_ = false;
  Status status_;
};

// Returns the operation that asks for the first batch of a scan. It refers to the options.
Operation FirstBatchOf(TableId table, const ScanOptions& scan);

// Returns the smallest bound above `key`, where an ascending scan continues behind it.
std::string KeyAfter(std::string_view key);

}  // namespace deut

#endif  // TC_CLIENT_SCANNER_H_
