// CheckpointDriver: decides when a checkpoint is taken. It takes one after a number of bytes of log; after some time,
// if anything has changed or space can be freed; or on demand.
// Thread-safety: all methods from any thread. Ownership: owns its thread; borrows the rest. Errors: last_status(); a
// failed checkpoint is retried.
#ifndef DC_SERVER_CHECKPOINT_DRIVER_H_
#define DC_SERVER_CHECKPOINT_DRIVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/checkpoint/checkpointer.h"
#include "dc/store/record_store.h"

namespace deut::dc {

struct CheckpointPolicy {
  // Bytes of log between two checkpoints: bounds the work of redo. 0: one checkpoint after another while updates are
  // applied.
  uint64_t log_bytes = 64 << 20;
  // A checkpoint is also taken after this time, if an update was applied since the last one, or if a checkpoint
  // removes segments. 0: none is taken automatically, neither for time nor for bytes.
  Duration interval = std::chrono::seconds(30);
};

class CheckpointDriver {
 public:
  CheckpointDriver(Runtime& runtime, RecordStore& records, const CheckpointPolicy& policy,
                   std::function<Position()> applied, Checkpointer::RecordKept record_kept = nullptr);
  // Waits for the running checkpoint.
  ~CheckpointDriver();
  CheckpointDriver(const CheckpointDriver&) = delete;
  CheckpointDriver& operator=(const CheckpointDriver&) = delete;

  // Called after a batch was applied. It costs one load.
  void NoteApplied(Position applied) {
    if (applied.commit.value < due_.load(std::memory_order_relaxed)) return;
    Wake();
  }
  // Requests a checkpoint now, because it will show how much room there really is. Does nothing if a checkpoint is
  // running or will soon be retried, or if none is taken automatically.
  void RequestNow() {
    uint64_t due = due_.load(std::memory_order_relaxed);
    if (due == 0 || due == UINT64_MAX) return;
    if (due_.compare_exchange_strong(due, 0, std::memory_order_relaxed)) Wake();
  }
  // Takes checkpoints until every applied update up to `up_to` is stable. Returns the stable position.
  Result<Position> TakeUpTo(Position up_to);

  // The status of the last checkpoint.
  Status last_status() const;

 private:
  void Run();
  void Wake();
  // The LSN at which a checkpoint is due if the last one has this position.
  uint64_t DueAfter(Position position) const;
  Status Take();
  // Returns whether a checkpoint may be taken only for the space that it frees.
  bool MayFreeSpace(Position applied) const;

  Runtime& runtime_;
  RecordStore& records_;
  const CheckpointPolicy policy_;
  const std::function<Position()> applied_;
  const Checkpointer::RecordKept record_kept_;
  std::atomic<uint64_t> due_;  // LSN at which the next checkpoint is taken
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  Status last_status_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_CHECKPOINT_DRIVER_H_
