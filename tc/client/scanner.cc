#include "tc/client/scanner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "protocol/limits.h"
#include "tc/client/transaction_state.h"

namespace deut {
namespace {

// The most batches in a row that are not fetched ahead after failures.
constexpr uint32_t kMaxPrefetchBackoff = 63;

Operation BatchOf(TableId table, const ScanOptions& scan, uint64_t records_before, uint64_t bytes_before) {
  // Otherwise the remainder of a limit would wrap around.
  DEUT_DCHECK(scan.limit_bytes == 0 || bytes_before < scan.limit_bytes);
  DEUT_DCHECK(scan.limit_records == 0 || records_before < scan.limit_records);
  uint64_t batch_bytes = std::clamp(scan.batch_bytes, 1U, kMaxScanBytes);
  if (scan.limit_bytes != 0) batch_bytes = std::min(batch_bytes, scan.limit_bytes - bytes_before);
  uint64_t batch_records = 0;
  if (scan.limit_records != 0) {
    batch_records = std::min<uint64_t>(scan.limit_records - records_before, std::numeric_limits<uint32_t>::max());
  }
  return {.kind = OperationKind::kScan,
          .table = table,
          .low = scan.low,
          .high = scan.high,
          .direction = scan.direction,
          .limit_records = static_cast<uint32_t>(batch_records),
          .limit_bytes = static_cast<uint32_t>(batch_bytes),
          .for_update = scan.for_update};
}

}  // namespace

std::string KeyAfter(std::string_view key) {
  std::string after;
  after.reserve(key.size() + 1);
  after.append(key);
  after.push_back('\0');
  return after;
}

Scanner::Scanner(TransactionState* transaction, TableId table, ScanOptions options, const CallOptions& call)
    : transaction_(transaction), table_(table), options_(std::move(options)), call_(call) {}

bool Scanner::MayFetch() const {
  return status_.ok() && !complete_ && (options_.limit_records == 0 || records_ < options_.limit_records) &&
         (options_.limit_bytes == 0 || bytes_ < options_.limit_bytes);
}

bool Scanner::NextBatchOrEnd() {
  do {
    iterator_.reset();
    if (!MayFetch()) {
      if (!results_.empty()) transaction_->GiveBatchMemory(std::exchange(results_, {}));
      return false;
    }
    if (!Fetch()) return false;
    iterator_.emplace(results_[0].records);
  } while (!iterator_->Valid());
  return true;
}

Operation FirstBatchOf(TableId table, const ScanOptions& scan) { return BatchOf(table, scan, 0, 0); }

Operation Scanner::NextBatch() const {
  Operation batch = BatchOf(table_, options_, records_, bytes_);
  batch.scan_sequence = scan_sequence_;
  return batch;
}

bool Scanner::Fetch() {
  const bool first = std::exchange(first_, false);
  const uint64_t ahead = std::exchange(prefetched_batch_, 0);
  if (transaction_->UsePrefetchedBatch(ahead, &results_, &status_, call_)) {
    prefetch_backoff_ = 0;
  } else {
    // A fetch ahead that fails has mostly met a conflict. Backs off, so that a scan behind a slow writer does not ask
    // for every batch twice.
    if (ahead != 0)
      prefetch_backoff_left_ = prefetch_backoff_ = std::min(2 * prefetch_backoff_ + 1, kMaxPrefetchBackoff);
    const Operation operation = NextBatch();
    if (first) results_ = transaction_->TakeBatchMemory();
    status_ = transaction_->Execute(absl::MakeConstSpan(&operation, 1), &results_, call_);
  }
  DEUT_DCHECK(!status_.ok() || results_.size() == 1);  // TransactionState has refused all other answers
  if (status_.ok()) status_ = results_[0].status;
  if (!status_.ok()) {
    results_.clear();
    return false;
  }
  return AcceptBatch(first);
}

bool Scanner::BeginWith(std::vector<OperationResult> batch) {
  first_ = false;
  results_ = std::move(batch);
  if (!AcceptBatch(/*first=*/true)) return false;
  iterator_.emplace(results_[0].records);
  return iterator_->Valid() || NextBatchOrEnd();
}

bool Scanner::AcceptBatch(bool first) {
  OperationResult& result = results_[0];
  DEUT_DCHECK(result.records.bytes().size() >= result.records.size() * RecordBatch::kHeaderBytes);
  scan_sequence_ = result.scan_sequence;
  records_ += result.records.size();
  bytes_ += result.records.bytes().size() - result.records.size() * RecordBatch::kHeaderBytes;
  complete_ = result.complete;
  if (complete_) return true;
  // Without progress Next would ask for the same batch for ever.
  const bool ascending = options_.direction == Direction::kAscending;
  std::string& bound = ascending ? options_.low : options_.high;
  const bool progress =
      ascending ? result.resume > bound : !result.resume.empty() && (bound.empty() || result.resume < bound);
  if (!progress) {
    status_ = DEUT_ERROR(kInternal, "a batch of a scan neither ends it nor moves its resume key");
    results_.clear();
    return false;
  }
  bound = result.resume;
  if (prefetch_backoff_left_ != 0) {
    --prefetch_backoff_left_;
  } else if (!first && options_.fetch_ahead && options_.batch_bytes <= kMaxBatchAhead && MayFetch()) {
    DEUT_DCHECK(prefetched_batch_ == 0);  // Fetch has used or dropped the one before
    prefetched_batch_ = transaction_->PrefetchBatch(NextBatch(), call_);
  }
  return true;
}

std::string Scanner::resume() const {
  if (options_.direction == Direction::kAscending) return AtRecord() ? KeyAfter(key()) : options_.low;
  return AtRecord() ? std::string(key()) : options_.high;
}

Result<ScanResult> Scanner::ReadAll() {
  ScanResult all;
  bool first = true;
  while (MayFetch()) {
    if (!Fetch()) return status_;
    RecordBatch& batch = results_[0].records;
    if (first) {
      all.records = std::move(batch);
      first = false;
      continue;
    }
    all.records.AppendRun(batch.bytes(), batch.size(), batch.newest());
  }
  all.complete = complete_;
  if (!complete_) all.resume = resume();
  return all;
}

}  // namespace deut
