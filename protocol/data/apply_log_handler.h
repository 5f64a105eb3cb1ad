// ApplyLogHandler: one ApplyLog stream on the server. It reads a batch, sends it to the component, then reads the next.
// Send blocks while the component's window is full, and this holds the peer back. The thread that brings an
// acknowledgement writes it, unless another message is being written. In that case the event of that write sends the
// newest one. Each acknowledgement covers all earlier ones, so older ones are dropped.
// The thread that has read a small batch applies it at once. Before a large batch it first lets another thread wait for
// events (kLargeBatch). If the component does not take a batch within the watchdog's limit, the stream ends, because
// its thread would otherwise be stuck.
// End: after a broken batch, the component's OnClosed, or the peer's end. The last message holds the reason. The
// watchdog cuts off a peer that then does not hang up.
// States: wanted -> opening -> open -> finished. `opened` is the first message, so acknowledgements and the reason of
// the end wait while the stream is opening. Once it is finished, only its handler writes.
// Thread-safety: any thread may call the listener's methods; the rest as in rpc_call.h. Ownership: as in rpc_call.h;
// `host` and `request` outlive it.
#ifndef PROTOCOL_DATA_APPLY_LOG_HANDLER_H_
#define PROTOCOL_DATA_APPLY_LOG_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/data/data_component_host.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/rpc/rpc_call.h"
#include "protocol/rpc/stream_watchdog.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class ApplyLogHandler final : public RpcCall<wire::ApplyLogAnswer, wire::ApplyLogRequest>, private ApplyLogListener {
 public:
  // Asks gRPC for the next such call, with `request(context, stream, tag)`.
  using Request = std::function<void(grpc::ServerContext* context,
                                     grpc::ServerAsyncReaderWriter<wire::ApplyLogAnswer, wire::ApplyLogRequest>* stream,
                                     void* tag)>;
  static void RequestNextCall(const DataComponentHost& host, const Request& request);

 private:
  // Batches with at least this many bytes of entries take long enough that other streams should not wait for them.
  static constexpr size_t kLargeBatch = 16 << 10;

  ApplyLogHandler(const DataComponentHost& host, const Request& request);
  ~ApplyLogHandler() override = default;

  void OnAccepted() override;
  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  void OnAck(const ApplyAck& ack) override;
  void OnClosed(const Status& status) override;

  // Whether the stream is open. If it is not, the call ends with `status`.
  bool Open(Status* status);
  // Sends the batch that was read to the component.
  Status Forward();
  // Destroys the component's side of the stream, writes the remaining messages, and ends the call.
  void Finish(const Status& reason);

  // The next message to write, acknowledgements first. False: there is none.
  bool NextLocked(wire::ApplyLogAnswer* answer) DEUT_REQUIRES(mutex_);
  // Writes the next message, unless one is being written or the stream is not open.
  void WriteNext();
  void WriteOver();
  void SetClosedLocked(const Status& status) DEUT_REQUIRES(mutex_);

  const DataComponentHost& host_;
  const Request& request_;
  StreamQuota::Slot quota_slot_;
  const Duration component_time_limit_;  // the longest time that the component may take for a batch
  std::unique_ptr<ApplyLogStream> log_;
  LogBatch batch_;

  Mutex mutex_;
  enum class State : uint8_t { kOpening, kOpen, kFinished };
  State state_ DEUT_GUARDED_BY(mutex_) = State::kOpening;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;          // until OnWritten; not while the stream is finished
  CondVar written_;                                       // signalled when writing_ becomes false
  std::optional<ApplyAck> ack_ DEUT_GUARDED_BY(mutex_);   // waits to be written
  std::optional<Status> closed_ DEUT_GUARDED_BY(mutex_);  // the first reason is kept
  bool reason_written_ DEUT_GUARDED_BY(mutex_) = false;   // the reason is written, or being written
  StreamWatchdog::Watch hang_up_watch_;                   // runs once the peer has been told the reason
};

}  // namespace deut

#endif  // PROTOCOL_DATA_APPLY_LOG_HANDLER_H_
