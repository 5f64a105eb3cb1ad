// ApplyLogHandler: one ApplyLog stream on the server. Its handler thread reads batches and sends them to the component, which blocks while
// its window is full, and so does the peer. A second thread writes acknowledgements: each stands for all before it, so one that could
// not be written yet is replaced by the next.
// A component that does not take a batch within the watchdog's limit loses the stream, or a thread would be lost with it.
// End: a broken batch, the component's OnClosed, or the peer. The reason goes out as the last message; a peer that then does not
// hang up is cut off by the watchdog.
// Thread-safety: Run by one thread; the listener's methods by any. Ownership: borrows everything.
#ifndef PROTOCOL_APPLY_LOG_HANDLER_H_
#define PROTOCOL_APPLY_LOG_HANDLER_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class ApplyLogHandler final : public ApplyLogListener {
 public:
  using Stream = grpc::ServerReaderWriter<wire::ApplyLogAnswer, wire::ApplyLogRequest>;

  ApplyLogHandler(Runtime& runtime, DataComponent& component, StreamWatchdog& watchdog, grpc::ServerContext* context,
                  Stream* stream);

  // Until the stream has ended; the component's side of it is then destroyed.
  grpc::Status Run();

  void OnAck(const ApplyAck& ack) override;
  void OnClosed(const Status& status) override;

 private:
  // Sends batches until one fails, the component refuses, or the peer is gone (OK).
  Status Forward(ApplyLogStream& log);
  void WriteAnswers();
  bool Write(const wire::ApplyLogAnswer& answer);
  void SetClosed(const Status& status);
  void Notify();

  Runtime& runtime_;
  DataComponent& component_;
  grpc::ServerContext* const context_;
  Stream* const stream_;
  const Duration patience_;  // with the component
  StreamWatchdog::Watch write_watch_;

  Mutex mutex_;
  std::optional<ApplyAck> ack_ DEUT_GUARDED_BY(mutex_);   // to be written
  std::optional<Status> closed_ DEUT_GUARDED_BY(mutex_);  // the first reason stays
  bool finished_ DEUT_GUARDED_BY(mutex_) = false;         // nothing comes any more
  std::atomic<uint32_t> changes_{0};
};

}  // namespace deut

#endif  // PROTOCOL_APPLY_LOG_HANDLER_H_
