#include "tc/record_manager/prefetched_scan.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "tc/record_manager/commit_path.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"
#include "tc/record_manager/record_manager.h"
#include "tc/record_manager/scan_path.h"
#include "tc/record_manager/spilled_value.h"

namespace deut::tc {
namespace {

bool MayBegin(const TransactionOptions& options, absl::Span<const Operation> operations) {
  if (options.isolation != Isolation::kSerializable || !options.declared.empty() || operations.empty()) return false;
  const Operation& first = operations.front();
  if (first.kind != OperationKind::kScan || first.for_update || first.scan_sequence != 0) return false;
  return std::ranges::all_of(operations, [](const Operation& operation) {
    return operation.kind == OperationKind::kGet || (operation.kind == OperationKind::kScan && !operation.for_update);
  });
}

}  // namespace

std::unique_ptr<PrefetchedScan> PrefetchedScan::TryBegin(Engine& engine, const TransactionOptions& options,
                                                         absl::Span<const Operation> operations) {
  if (engine.conflicts.range_control != RangeControl::kRanges || !MayBegin(options, operations)) return nullptr;
  std::unique_ptr<PrefetchedScan> begun(new PrefetchedScan(engine));
  if (!begun->permit_.TryAcquire(engine.prefetched_scans)) return nullptr;
  auto txn = std::make_unique<Transaction>();
  // A deadline that has passed: the caller is about to run other transactions, so no step may wait.
  const MonotonicTime at_once = engine.runtime.Now();
  if (!CommitPath(engine).Begin(*txn, options, at_once).ok()) return nullptr;
  begun->txn_ = std::move(txn);
  OperationResult nothing_yet;
  if (!ScanPath(engine, *begun->txn_, operations.front(), &nothing_yet, at_once).BeginForPrefetch()) return nullptr;
  DEUT_DCHECK(begun->txn_->record_ == nullptr);  // other transactions meet nothing of it
  return begun;
}

bool ScanPath::BeginForPrefetch() {
  if (scan_.low.size() > kMaxKeyBytes + 1 || scan_.high.size() > kMaxKeyBytes + 1) return false;
  const Result<TableState*> table = FindTable(engine_, txn_, scan_.table, false);
  if (!table.ok() || !DcKnows(engine_, **table) || !NothingSpilled(engine_)) return false;
  AcquireState();
  ResumableScan& s = *state_;
  const uint32_t most = std::min(scan_.limit_bytes, ScanAsk::kShortScanBytes);
  if (s.cursor.AtEnd() || s.share.Resize(engine_.scan_ahead, most) < most) return false;
  if (DEUT_OMITTED("S4.begun_gathers_first")) {
    s.cursor.bound = s.cursor.far_end();
    s.cursor.gathered = true;
  } else {
    bool blocked = false;
    if (!gather_.GatherNext(**table, &s, call_.room, &blocked).ok() || blocked) return false;
  }
  // The gathered keys stay in memory until the transaction is run, as the answer does, so both are charged to the
  // budget.
  const uint64_t held = most + s.gathered.capacity_bytes();
  if (s.share.Resize(engine_.scan_ahead, held) < held) return false;
  s.first_request = std::make_unique<DataRequest>();
  ask_.MakeRequest(s, s.cursor.low, s.cursor.high, s.first_request.get());
  txn_.prefetched_scan_ = std::move(state_);
  return true;
}

Status ScanPath::UsePrefetchedAnswer() {
  const std::unique_ptr<DataRequest> first = std::move(state_->first_request);
  DEUT_DCHECK(first->status.ok());  // X3: without an answer the transaction was given up
  state_->share.Release();
  const ScanCursor& cursor = state_->cursor;
  DEUT_RETURN_IF_ERROR(ask_.CheckAnswer(*first, cursor, cursor.low, cursor.high));
  AcceptAnswer(first.get());
  return Status::Ok();
}

DataRequest* PrefetchedScan::request() {
  DEUT_DCHECK(txn_ != nullptr && txn_->prefetched_scan_ != nullptr);
  return txn_->prefetched_scan_->first_request.get();
}

void PrefetchedScan::OnRequestReturned() {
  if (!request()->status.ok() && DEUT_STEP("X3.begun_has_answer")) GiveUp();
  if (DEUT_OMITTED("S1.begun_in_low_water") && txn_ != nullptr) engine_.active.End(txn_->slot_);
}

std::unique_ptr<Transaction> PrefetchedScan::TakeTransaction() {
  permit_.Release();
  DEUT_DCHECK(txn_ == nullptr || txn_->state() == Transaction::State::kOpen);
  return std::move(txn_);
}

void PrefetchedScan::GiveUp() {
  permit_.Release();
  if (txn_ == nullptr) return;
  RecordManager(engine_).Abort(*txn_, AbortReason::kFailedOperation);
  txn_.reset();
}

}  // namespace deut::tc
