// CheckpointDriver: decides when a checkpoint is taken: after so many bytes of log, after some time if anything has changed or space can be
// given back, or on demand.
// Thread-safety: all methods from any thread. Ownership: of its thread; borrows the rest.
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
#include "dc/record_ops/record_operations.h"

namespace deut::dc {

struct CheckpointPolicy {
  // Of the log: bounds what redo has to repeat. 0: one after another while anything is applied.
  uint64_t log_bytes = 64 << 20;
  // After this long, if anything was applied since the last one, or if that removes segments. 0: never by itself, neither for time nor for bytes.
  Duration interval = std::chrono::seconds(30);
};

class CheckpointDriver {
 public:
  CheckpointDriver(Runtime& runtime, RecordOperations& operations, const CheckpointPolicy& policy,
                   std::function<Position()> applied, Checkpointer::RecordKept record_kept = nullptr);
  // Waits for the checkpoint that is being taken.
  ~CheckpointDriver();
  CheckpointDriver(const CheckpointDriver&) = delete;
  CheckpointDriver& operator=(const CheckpointDriver&) = delete;

  // After a batch was applied. Cheap.
  void Look(Position applied) {
    if (applied.commit.value < due_.load(std::memory_order_relaxed)) return;
    Wake();
  }
  // One is wanted now, for the room that it shows to be there. Does nothing if one is being taken, or is tried again soon, or none is ever
  // taken by itself.
  void Hurry() {
    uint64_t due = due_.load(std::memory_order_relaxed);
    if (due == 0 || due == UINT64_MAX) return;
    if (due_.compare_exchange_strong(due, 0, std::memory_order_relaxed)) Wake();
  }
  // Takes checkpoints until everything up to `up_to`, as far as it is applied, is stable. Answers the stable position.
  Result<Position> TakeUpTo(Position up_to);

  // The last one that failed, and why; OK after one that did not.
  Status last_status() const;

 private:
  void Run();
  void Wake();
  // The LSN at which one is due if the last one has this position.
  uint64_t DueAfter(Position position) const;
  Status Take();
  // Whether one may be taken for the space alone that it gives back.
  bool MayGiveSpace(Position applied) const;

  Runtime& runtime_;
  RecordOperations& operations_;
  const CheckpointPolicy policy_;
  const std::function<Position()> applied_;
  const Checkpointer::RecordKept record_kept_;
  std::atomic<uint64_t> due_;  // the LSN at which the next one is taken
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  Status last_status_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_CHECKPOINT_DRIVER_H_
