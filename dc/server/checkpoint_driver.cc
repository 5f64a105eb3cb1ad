#include "dc/server/checkpoint_driver.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Pause after a failed checkpoint: a lack of room may end.
constexpr Duration kRetryAfter = std::chrono::seconds(1);

}  // namespace

CheckpointDriver::CheckpointDriver(Runtime& runtime, RecordStore& records, const CheckpointPolicy& policy,
                                   std::function<Position()> applied, Checkpointer::RecordKept record_kept)
    : runtime_(runtime),
      records_(records),
      policy_(policy),
      applied_(std::move(applied)),
      record_kept_(std::move(record_kept)),
      due_(policy.interval == Duration() ? UINT64_MAX : DueAfter(applied_())),
      mutex_(runtime) {
  if (policy.interval != Duration()) thread_ = runtime.StartThread("dc-checkpoint", [this] { Run(); });
}

CheckpointDriver::~CheckpointDriver() {
  stop_.store(true, std::memory_order_seq_cst);
  Wake();
  thread_.reset();
}

uint64_t CheckpointDriver::DueAfter(Position position) const {
  return position.commit.value + std::max<uint64_t>(policy_.log_bytes, 1);
}

void CheckpointDriver::Wake() {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
}

Status CheckpointDriver::last_status() const {
  const MutexLock lock(mutex_);
  return last_status_;
}

Status CheckpointDriver::Take() {
  const Status status = records_.Checkpoint(applied_, record_kept_);
  const MutexLock lock(mutex_);
  if (!status.ok() && last_status_.ok()) LogError("no checkpoint: ", status.message());
  last_status_ = status;
  return status;
}

bool CheckpointDriver::MayFreeSpace(Position applied) const {
  // An incarnation that has found no checkpoint and applied nothing cannot tell whether the folder is new or has lost
  // its checkpoints. A checkpoint of nothing would remove all segments, while the TC that could tell is refused or
  // absent.
  const bool proven = applied != Position() || DEUT_OMITTED("S2.prove_before_removal");
  return proven && records_.CheckpointFreesSpace();
}

void CheckpointDriver::Run() {
  Position last = applied_();
  while (!stop_.load(std::memory_order_seq_cst)) {
    const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
    const Position applied = applied_();
    const MonotonicTime begin = runtime_.Now();
    if (applied.commit.value < due_.load(std::memory_order_relaxed)) {
      if (runtime_.Wait(wakes_, wakes, begin + policy_.interval)) continue;
      if (applied_() == last && !MayFreeSpace(last)) continue;
    }
    // While a checkpoint runs, no thread need wake this one for the next.
    due_.store(UINT64_MAX, std::memory_order_relaxed);
    const Position before = applied_();
    DEUT_CHECK(before >= last);
    const bool ok = Take().ok();
    if (ok) {
      last = before;
    } else {
      runtime_.Wait(wakes_, wakes_.load(std::memory_order_seq_cst), runtime_.Now() + kRetryAfter);
    }
    due_.store(ok ? DueAfter(before) : 0, std::memory_order_relaxed);
  }
}

Result<Position> CheckpointDriver::TakeUpTo(Position up_to) {
  const Position wanted = std::min(up_to, applied_());
  // The first checkpoint makes the position durable. The second makes the first the older of the two that are kept.
  for (int i = 0; i < 2 && records_.stable() < wanted; ++i) DEUT_RETURN_IF_ERROR(Take());
  const Position stable = records_.stable();
  DEUT_CHECK(stable >= wanted);
  return stable;
}

}  // namespace deut::dc
