// ApplyStream: the DC's side of the TC's stream of log batches. Batches are applied on the thread that sends them,
// with helpers (RecordOperations).
//
// States: open -> closed, once, by the first of these: a refused batch, a newer stream, a newer TC, the stream's
// owner. Close shuts the gate of Send, waits for the Send inside, then informs the listener (OnClosed, the last
// call). The server and the stream's handle share the object, since either may end first.
// Checks of a batch, in this order:
// - its sender (rules X3, X5)
// - its bytes
// - that it continues the applied log without a gap (POSITION_GAP)
// A refused batch has changed nothing. A batch that fails in the middle leaves `applied` where it was, and may be
// repeated (X2).
// Thread-safety: Close from any thread (it waits for another Close), Send by one thread at a time. Ownership: borrows
// environment and listener.
#ifndef DC_SERVER_APPLY_STREAM_H_
#define DC_SERVER_APPLY_STREAM_H_

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/call_drain.h"
#include "common/sync/mutex.h"
#include "dc/server/applied_position.h"
#include "dc/server/fencing.h"
#include "dc/store/record_store.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"

namespace deut::dc {

// The objects that streams use. All of them outlive the streams.
struct ApplyEnvironment {
  Runtime& runtime;
  Fencing& fencing;
  RecordStore& records;
  AppliedPosition& applied;
  std::function<uint64_t()> free_bytes;
  // Called after each batch.
  std::function<void(Position)> on_applied;
  // X4: called for each admitted batch, with the durable LSN of the sender's log.
  std::function<void(Lsn)> on_log_durable;
};

class ApplyStream {
 public:
  ApplyStream(const ApplyEnvironment& environment, const Sender& sender, ApplyLogListener* listener);
  ApplyStream(const ApplyStream&) = delete;
  ApplyStream& operator=(const ApplyStream&) = delete;

  Status Send(const LogBatch& batch);
  // When Pause returns, no Send is inside, and none can enter. Later Sends wait for Close, which the caller must
  // still call.
  void Pause() { gate_.Close(); }
  // When Close returns, no Send is inside and the listener is no longer called. REQUIRES: not called by the listener
  // or inside Send.
  void Close(const Status& reason);

 private:
  Status Apply(const LogBatch& batch);

  const ApplyEnvironment& environment_;
  const Sender sender_;
  ApplyLogListener* const listener_;
  CallDrain gate_;
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
