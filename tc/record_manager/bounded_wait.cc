#include "tc/record_manager/bounded_wait.h"

#include <utility>

#include "common/base/check.h"
#include "common/sync/backoff.h"
#include "common/testing/test_points.h"

namespace deut::tc {

bool BoundedWait::MayWaitFor(TransactionRecord& other) {
  if (engine_.conflicts.wait == Duration{0}) return false;
  if (other.timestamp() > self_ && DEUT_STEP("R9.later_only")) return false;
  const TransactionStatus status = other.status();
  if (status == TransactionStatus::kActive && DEUT_STEP("R9.committing_only")) return false;
  const MonotonicTime now = engine_.runtime.Now();
  if (end_ == MonotonicTime{}) end_ = now + engine_.conflicts.wait;
  if (now >= end_) return false;
  // A transaction that is decided or gone by now needs no waiting, only another look.
  if (status == TransactionStatus::kCommitted || status == TransactionStatus::kAborted) return true;
  if (other.TryAddReference()) awaited_ = &other;
  return true;
}

void BoundedWait::Wait() {
  TransactionRecord* const other = std::exchange(awaited_, nullptr);
  if (other == nullptr) return;
  DEUT_CHECK(!engine_.domain.guard_held());
  DEUT_DCHECK(other->timestamp() < self_);  // waits go from later to earlier transactions, so they form no cycle
  engine_.counters.waits.fetch_add(1, std::memory_order_relaxed);
  DEUT_POINT("wait.begun");
  Backoff backoff(engine_.runtime);
  while (other->status() == TransactionStatus::kCommitting && !backoff.yields()) backoff.Pause();
  if (other->status() == TransactionStatus::kCommitting) {
    other->MarkAwaited();
    DEUT_POINT("wait.marked");
    const auto committing = static_cast<uint32_t>(TransactionStatus::kCommitting);
    while (other->status() == TransactionStatus::kCommitting &&
           engine_.runtime.Wait(other->status_word(), committing, end_)) {
    }
  }
  if (other->status() == TransactionStatus::kCommitted)
    engine_.counters.waits_ended.fetch_add(1, std::memory_order_relaxed);
  ReclamationDomain::Guard guard(engine_.domain);
  other->DropReference(engine_.domain);
}

}  // namespace deut::tc
