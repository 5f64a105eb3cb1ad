// StateKeeper: the durable state of a running DC: which TC it obeys (X5), how far that TC's log is known to be durable (X4), and which checkpoint its
// folder must have.
//
// A Hello changes the TC and waits until that is durable. How far the log is durable comes with every batch, many times a second; it is written by a
// thread in the background, at most once every kPause, and at the end. A kill of the DC may thus forget what it was told in the last kPause, which
// weakens a check and breaks none.
// Thread-safety: all methods from any thread. NoteLogDurable is for the hot path: two loads if nothing is new, never waits for the disk.
// Ownership: of its thread and the state file; borrows runtime and storage.
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
  // `state` is durable in the file of `directory`.
  StateKeeper(Runtime& runtime, Storage& storage, const std::string& directory, const DcState& state);
  // Writes what is not written yet.
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  FenceState fence() const;
  // Durable when it returns OK; after an error the DC obeys whom it obeyed before.
  // REQUIRES: no NoteLogDurable of the former TC is under way or follows.
  Status Obey(const FenceState& fence, Lsn log_durable);

  // A checkpoint was completed, and this is the oldest that is kept. Durable when it returns OK.
  Status RecordKept(CheckpointNumber oldest_kept);

  // The TC of `fence` says that its log is durable up to here.
  void NoteLogDurable(Lsn durable);
  Lsn log_durable() const { return log_durable_.load(std::memory_order_acquire); }

  // Between two writes of log_durable.
  static constexpr Duration kPause = std::chrono::seconds(5);

 private:
  void Run();
  Status Save(const DcState& next) DEUT_REQUIRES(mutex_);
  // *wrote: the file was replaced.
  Status SaveLogDurable(bool* wrote);

  Runtime& runtime_;
  std::atomic<Lsn> log_durable_;
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> asleep_{false};  // the thread waits for something to write
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;  // of the file
  StateFile file_ DEUT_GUARDED_BY(mutex_);
  DcState state_ DEUT_GUARDED_BY(mutex_);  // as in the file
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_STATE_KEEPER_H_
