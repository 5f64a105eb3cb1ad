#include "tc/client/one_scan.h"

#include <utility>
#include <vector>

#include "common/base/check.h"

namespace deut {

OneScan::~OneScan() {
  if (session_ != nullptr) End();
}

bool OneScan::NextOrEnd() {
  switch (phase_) {
    case Phase::kNew:
      return Start();
    case Phase::kOpen:
      return EndOfMany();
    case Phase::kWhole:
      End();
      break;
    case Phase::kEnded:
      break;
  }
  return false;
}

bool OneScan::Start() {
  const Operation scan = FirstBatchOf(table_, options_);
  Result<ScanBegun> begun = core_.BeginScan(transaction_options_, scan, core_.DeadlineFor(call_), &session_);
  if (!begun.ok()) {
    status_ = begun.status();
    phase_ = Phase::kEnded;
    return false;
  }
  timestamp_ = begun->answer.timestamp;
  DEUT_DCHECK(!session_->batch.empty());  // BeginScan fails without a first batch
  if (begun->over) [[likely]] {
    phase_ = Phase::kWhole;
    OperationResult& batch = session_->batch.front();
    complete_ = batch.complete;
    if (!complete_) resume_.swap(batch.resume);
    iterator_.emplace(batch.records);
    shown_ = &iterator_->record();
    if (iterator_->Valid()) return true;
    End();
    return false;
  }
  phase_ = Phase::kOpen;
  std::vector<OperationResult> first = std::exchange(session_->batch, {});
  transaction_ = std::make_unique<TransactionState>(
      &core_, ClientCore::Begun{.session = std::move(session_), .timestamp = timestamp_, .name = {}}, kNoDeadline,
      nullptr);
  scanner_.emplace(transaction_.get(), table_, std::move(options_), call_);
  const bool any = scanner_->BeginWith(std::move(first)) || scanner_->Next();
  if (!any) return EndOfMany();
  shown_ = &scanner_->record();
  return true;
}

bool OneScan::EndOfMany() {
  DEUT_DCHECK(session_ == nullptr);  // the transaction has it
  phase_ = Phase::kEnded;
  status_ = scanner_->status();
  if (!status_.ok()) return false;
  complete_ = scanner_->complete();
  if (!complete_) resume_ = scanner_->resume();
  status_ = transaction_->Commit(call_).status();
  return false;
}

void OneScan::End() {
  // Only then the store has ended the transaction, so that the next one may use the session.
  DEUT_DCHECK(phase_ == Phase::kWhole);
  phase_ = Phase::kEnded;
  iterator_.reset();
  core_.Release(std::move(session_), Status());
}

}  // namespace deut
