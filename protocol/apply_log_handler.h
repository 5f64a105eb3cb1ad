// ApplyLogHandler: one ApplyLog stream on the server. It reads a batch and sends it to the component, which blocks while its window is
// full, and so does the peer; then it reads the next. An acknowledgement is written by the thread that brings it, unless another message is
// being written: then the event of that write writes the newest. Each stands for all before it, so older ones are dropped.
// A batch that is small is applied by the thread that has read it; a large one first hands the waiting for events over (kLargeBatch).
// A component that does not take a batch within the watchdog's limit loses the stream, or a thread would be lost with it.
// End: a broken batch, the component's OnClosed, or the peer. The reason goes out as the last message; a peer that then does not
// hang up is cut off by the watchdog.
// States: wanted -> opening -> open -> finished. Acknowledgements and the reason of the end are kept while it is opening, as `opened` is the
//   first message; when it is finished, only its handler writes.
// Thread-safety: the listener's methods from any thread; the rest, and ownership: rpc_call.h; `host` and `request` outlive it.
#ifndef PROTOCOL_APPLY_LOG_HANDLER_H_
#define PROTOCOL_APPLY_LOG_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/data_component_host.h"
#include "protocol/log_batch.h"
#include "protocol/rpc_call.h"
#include "protocol/stream_quota.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class ApplyLogHandler final : public RpcCall<wire::ApplyLogAnswer, wire::ApplyLogRequest>, private ApplyLogListener {
 public:
  // Asks gRPC for the next such call: `request(context, stream, tag)`.
  using Request = std::function<void(grpc::ServerContext* context,
                                     grpc::ServerAsyncReaderWriter<wire::ApplyLogAnswer, wire::ApplyLogRequest>* stream,
                                     void* tag)>;
  static void Want(const DataComponentHost& host, const Request& request);

 private:
  // Bytes of entries from which on a batch takes so long that others should not wait for it.
  static constexpr size_t kLargeBatch = 16 << 10;

  ApplyLogHandler(const DataComponentHost& host, const Request& request);
  ~ApplyLogHandler() override = default;

  void OnTaken() override;
  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  void OnAck(const ApplyAck& ack) override;
  void OnClosed(const Status& status) override;

  // Whether the stream is open; `status` is how the call ends if it is not.
  bool Open(Status* status);
  // Sends what was read to the component.
  Status Forward();
  // Destroys the component's side, writes what is left to be said, and ends the call.
  void Finish(const Status& reason);

  // The next message to be written, the acknowledgement first; false: there is none.
  bool NextLocked(wire::ApplyLogAnswer* answer) DEUT_REQUIRES(mutex_);
  // Writes the next message, unless one is being written or the stream is not open.
  void WriteNext();
  void WriteOver();
  void SetClosedLocked(const Status& status) DEUT_REQUIRES(mutex_);

  const DataComponentHost& host_;
  const Request& request_;
  StreamQuota::Place place_;
  const Duration patience_;  // with the component
  std::unique_ptr<ApplyLogStream> log_;
  LogBatch batch_;

  Mutex mutex_;
  enum class State : uint8_t { kOpening, kOpen, kFinished };
  State state_ DEUT_GUARDED_BY(mutex_) = State::kOpening;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;          // until OnWritten; not while it is finished
  CondVar written_;                                       // writing_
  std::optional<ApplyAck> ack_ DEUT_GUARDED_BY(mutex_);   // to be written
  std::optional<Status> closed_ DEUT_GUARDED_BY(mutex_);  // the first reason stays
  bool told_closed_ DEUT_GUARDED_BY(mutex_) = false;      // it is written, or being written
  StreamWatchdog::Watch hang_up_watch_;                   // the peer has been told the reason
};

}  // namespace deut

#endif  // PROTOCOL_APPLY_LOG_HANDLER_H_
