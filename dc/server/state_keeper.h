// StateKeeper: the durable state of a running DC. It consists of the TC that the DC obeys (X5), the durable LSN of
// that TC's log as far as known (X4), and the checkpoint that the folder must have.
//
// A Hello changes the TC and waits until the change is durable. The durable LSN comes with every batch, many times a
// second; a background thread writes it at most once every kPause, and at the end. If the DC is killed, it may thus
// forget the LSNs of the last kPause; that weakens a check but breaks none.
// Thread-safety: all methods from any thread. NoteLogDurable is for the hot path: two loads if nothing is new, and it
// never waits for the disk. Ownership: owns its thread and the state file; borrows runtime and storage.
#ifndef DC_SERVER_STATE_KEEPER_H_
#define DC_SERVER_STATE_KEEPER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/server/state_file.h"

namespace deut::dc {

class StateKeeper {
 public:
  // REQUIRES: `state` is durable in the file of `directory`.
  StateKeeper(Runtime& runtime, Storage& storage, const std::string& directory, const DcState& state);
  // Writes the state if it has unwritten changes.
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  FenceState fence() const;
  // Changes the obeyed TC. Durable when it returns OK; after an error the DC obeys the former TC. REQUIRES: no
  // NoteLogDurable of the former TC is running or follows.
  Status SetFence(const FenceState& fence, Lsn log_durable);

  // Records the oldest checkpoint that is kept, after a checkpoint was completed. Durable when it returns OK.
  Status RecordKept(CheckpointNumber oldest_kept);

  // The TC of `fence` reports that its log is durable up to this LSN.
  void NoteLogDurable(Lsn durable);
  Lsn log_durable() const { return log_durable_.load(std::memory_order_acquire); }

  // Pause between two writes of log_durable.
  static constexpr Duration kPause = std::chrono::seconds(5);

 private:
  void Run();
  Status Save(const DcState& next) DEUT_REQUIRES(mutex_);
  // *wrote: whether the file was replaced.
  Status SaveLogDurable(bool* wrote);

  Runtime& runtime_;
  std::atomic<Lsn> log_durable_;
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> asleep_{false};  // the thread waits for something to write
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;  // guards the file
  StateFile file_ DEUT_GUARDED_BY(mutex_);
  DcState state_ DEUT_GUARDED_BY(mutex_);  // the state in the file
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_STATE_KEEPER_H_
