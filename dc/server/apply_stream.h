// ApplyStream: the TC's stream of log batches on the DC's side. Batches are applied on the thread that sends them, with helpers (RecordOperations).
//
// States: open -> closed, once, by whoever comes first: a batch that is refused, a newer stream, a newer TC, the stream's owner. Closing
//   shuts the gate of Send, waits for the Send inside, then tells the listener (OnClosed, the last call). The server and the stream's
//   handle share the object, since either may go first.
// Checks of a batch, in this order: its sender (rules X3, X5), its bytes, that it joins on to what is applied (POSITION_GAP). A refused
//   batch has moved nothing; one that fails in the middle leaves `applied` where it was, and is harmless to repeat (X2).
// Thread-safety: Close from any thread (it waits for another Close), Send by one thread at a time.
#ifndef DC_SERVER_APPLY_STREAM_H_
#define DC_SERVER_APPLY_STREAM_H_

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/record_ops/record_operations.h"
#include "dc/server/applied_position.h"
#include "dc/server/fencing.h"
#include "protocol/call_gate.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"

namespace deut::dc {

// What streams stand on; all of it outlives them.
struct ApplyEnvironment {
  Runtime& runtime;
  Fencing& fencing;
  RecordOperations& operations;
  AppliedPosition& applied;
  std::function<uint64_t()> free_bytes;
  // After each batch.
  std::function<void(Position)> on_applied;
  // X4: how far the sender's log is durable, of each batch that was admitted.
  std::function<void(Lsn)> on_log_durable;
};

class ApplyStream {
 public:
  ApplyStream(const ApplyEnvironment& environment, const Sender& sender, ApplyLogListener* listener);
  ApplyStream(const ApplyStream&) = delete;
  ApplyStream& operator=(const ApplyStream&) = delete;

  Status Send(const LogBatch& batch);
  // When it returns no Send is inside, and none gets in any more: they wait for Close, which is still to be called.
  void Pause() { gate_.Close(); }
  // When it returns no Send is inside and the listener is no longer called. REQUIRES: not called by the listener or inside Send.
  void Close(const Status& reason);

 private:
  Status Apply(const LogBatch& batch);

  const ApplyEnvironment& environment_;
  const Sender sender_;
  ApplyLogListener* const listener_;
  CallGate gate_;
  Mutex mutex_;
  bool closed_ DEUT_GUARDED_BY(mutex_) = false;
  Status reason_ DEUT_GUARDED_BY(mutex_);
  CondVar closed_now_;
};

// The handle that the TC holds.
class ApplyStreamHandle final : public ApplyLogStream {
 public:
  explicit ApplyStreamHandle(std::shared_ptr<ApplyStream> stream);
  ~ApplyStreamHandle() override;
  Status Send(const LogBatch& batch, Deadline deadline) override;

 private:
  const std::shared_ptr<ApplyStream> stream_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_APPLY_STREAM_H_
