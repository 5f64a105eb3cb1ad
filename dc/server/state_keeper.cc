#include "dc/server/state_keeper.h"

#include "common/base/check.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"

namespace deut::dc {

StateKeeper::StateKeeper(Runtime& runtime, Storage& storage, const std::string& directory, const DcState& state)
    : runtime_(runtime), log_durable_(state.log_durable), mutex_(runtime), file_(storage, directory), state_(state) {
  thread_ = runtime.StartThread("dc-state", [this] { Run(); });
}

StateKeeper::~StateKeeper() {
  stop_.store(true, std::memory_order_seq_cst);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
  thread_.reset();
}

FenceState StateKeeper::fence() const {
  const MutexLock lock(mutex_);
  return state_.fence;
}

Status StateKeeper::Save(const DcState& next) {
  DEUT_RETURN_IF_ERROR(file_.Save(next));
  state_ = next;
  return Status::Ok();
}

Status StateKeeper::SetFence(const FenceState& fence, Lsn log_durable) {
  DEUT_CHECK(fence.epoch.value != 0);
  const MutexLock lock(mutex_);
  DcState next = state_;
  next.fence = fence;
  next.log_durable = log_durable;
  if (DEUT_OMITTED("X5.durable_before_answer")) {
    state_ = next;
  } else {
    DEUT_RETURN_IF_ERROR(Save(next));
  }
  // LSNs of another TC incarnation may be larger, or mean something else, so no maximum is taken over two of them.
  // The thread can no longer write the older one's LSN, because it reads this one under the mutex.
  log_durable_.store(log_durable, std::memory_order_seq_cst);
  return Status::Ok();
}

Status StateKeeper::RecordKept(CheckpointNumber oldest_kept) {
  const MutexLock lock(mutex_);
  if (oldest_kept <= state_.oldest_kept) return Status::Ok();
  DcState next = state_;
  next.oldest_kept = oldest_kept;
  return Save(next);
}

void StateKeeper::NoteLogDurable(Lsn durable) {
  Lsn known = log_durable_.load(std::memory_order_relaxed);
  do {
    if (durable <= known) return;
  } while (!log_durable_.compare_exchange_weak(known, durable, std::memory_order_seq_cst));
  // The thread stores asleep_ and then loads log_durable_; this method does both in the opposite order. So either the
  // thread sees the new LSN, or this method sees that the thread sleeps, and wakes it.
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
}

Status StateKeeper::SaveLogDurable(bool* wrote) {
  const MutexLock lock(mutex_);
  DcState next = state_;
  next.log_durable = log_durable();
  // Only SetFence lowers it, and changes both under the mutex. (X4: a lower one would be a log that has lost its end.)
  DEUT_CHECK(next.log_durable >= state_.log_durable);
  *wrote = next != state_;
  return *wrote ? Save(next) : Status::Ok();
}

void StateKeeper::Run() {
  bool failing = false;
  for (;;) {
    const bool last = stop_.load(std::memory_order_seq_cst);
    const Lsn written = log_durable();
    bool wrote = false;
    const Status saved = SaveLogDurable(&wrote);
    if (!saved.ok() && !failing) LogWarning("the durable LSN of the TC's log cannot be written: ", saved.ToString());
    failing = !saved.ok();
    if (last) return;
    // Pause first, then sleep until there is a new LSN.
    const Deadline pause = runtime_.Now() + (wrote ? kPause : Duration());
    for (;;) {
      const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
      if (stop_.load(std::memory_order_seq_cst)) break;
      const bool resting = runtime_.Now() < pause;
      asleep_.store(!resting, std::memory_order_seq_cst);
      if (!resting && (failing || log_durable_.load(std::memory_order_seq_cst) != written)) break;
      runtime_.Wait(wakes_, wakes, resting ? pause : kNoDeadline);
    }
    asleep_.store(false, std::memory_order_seq_cst);
  }
}

}  // namespace deut::dc
