// OneScan: a transaction that is one scan. It reads a range of one table in key order, as of one moment.
//
//   OneScan scan(client, table, {.low = "a", .high = "b", .limit_records = 10});
//   while (scan.Next()) Use(scan.key(), scan.value());
//   if (!scan.status().ok()) return scan.status();        // ABORTED: nothing of it counts, scan again
//
// It is serializable (or a snapshot, as the options say), like the same scan in an interactive transaction. It saves
// the calls for Begin and Commit. In one process a scan that fits in one batch (ScanOptions::batch_bytes) is one
// call, which begins, reads and commits, and retries a lost conflict. A longer scan stays a transaction until its
// last record has been shown, and is then committed. Its records are provisional until Next has returned false with
// an OK status. If the caller stops before, nothing that it has read counts.
// Thread-safety: one thread at a time. Ownership: refers to the client. Views are valid until the next call of Next.
#ifndef TC_CLIENT_ONE_SCAN_H_
#define TC_CLIENT_ONE_SCAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/record_batch.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"
#include "tc/client/options.h"
#include "tc/client/scanner.h"
#include "tc/client/transaction_state.h"

namespace deut {

class OneScan {
 public:
  // Sends nothing before the first Next.
  OneScan(Client& client, TableId table, ScanOptions scan, TransactionOptions options = {},
          const CallOptions& call = {})
      : core_(client.core_),
        transaction_options_(std::move(options)),
        table_(table),
        options_(std::move(scan)),
        call_(call) {}
  ~OneScan();
  OneScan(const OneScan&) = delete;
  OneScan& operator=(const OneScan&) = delete;

  // Moves to the next record; the first call moves to the first one. Returns false when the scan has ended: see
  // status().
  bool Next() {
    if (phase_ == Phase::kWhole) {
      iterator_->Next();
      if (iterator_->Valid()) [[likely]]
        return true;
    } else if (phase_ == Phase::kOpen && scanner_->Next()) {
      return true;
    }
    return NextOrEnd();
  }
  // REQUIRES for these three: Next has returned true.
  std::string_view key() const { return record().key; }
  std::string_view value() const { return record().value; }
  Version version() const { return record().version; }

  // OK unless a read or the commit failed.
  const Status& status() const { return status_; }
  // REQUIRES for these: Next has returned false, and the status is OK.
  // True: the whole range has been shown. False: only as much as the limits allow.
  bool complete() const { return complete_; }
  // Where a further scan continues (ScanOptions::ResumeAt), if it is not complete.
  const std::string& resume() const { return resume_; }
  // Its place in the serial order.
  Timestamp timestamp() const { return timestamp_; }

 private:
  enum class Phase : uint8_t { kNew, kWhole, kOpen, kEnded };

  const RecordView& record() const { return *shown_; }
  bool NextOrEnd();
  // Reads the first batch.
  bool Start();
  // Ends a scan of many batches after its last record was shown.
  bool EndOfMany();
  void End();

  ClientCore& core_;
  const TransactionOptions transaction_options_;
  const TableId table_;
  ScanOptions options_;
  const CallOptions call_;
  Phase phase_ = Phase::kNew;
  Status status_;
  bool complete_ = false;
  std::string resume_;
  Timestamp timestamp_;
  // For kWhole: the session lends the memory of the batch that is shown.
  std::unique_ptr<ClientSession> session_;
  std::optional<RecordBatch::Iterator> iterator_;
  const RecordView* shown_ = nullptr;  // the iterator's, or the scanner's: each has one place for all its records
  // For kOpen.
  std::unique_ptr<TransactionState> transaction_;
  std::optional<Scanner> scanner_;
};

}  // namespace deut

#endif  // TC_CLIENT_ONE_SCAN_H_
