// GrpcApplyLog: the client side of one ApplyLog stream.
// An event loop runs acknowledgements and the ends of writes, and calls the listener. The stream's own thread starts
// the stream, ends it, and reports why it was closed. Send waits until the previous batch has left this process, starts
// the next write and returns. So one batch is sent while the next is built, and at most one, plus the connection's
// window, is held here.
// States of the write side: writing (from the start, for the opening message) <-> idle; ending; closed, which is final.
// - idle -> writing: Send's compare-and-swap.
// - writing -> idle: the end of the write.
// - -> ending: the exchange by the event that finds that the stream has ended. The old value tells it whether the end
//   of a write is still to come.
// - -> closed: the stream's thread.
// Events: as in grpc_data_stream.h, a read and a write may end at the same time. They handle the stream's end under the
// lock.
// Thread-safety: only one thread at a time calls Send. Ownership: borrows the listener, which outlives it.
#ifndef PROTOCOL_GRPC_APPLY_LOG_H_
#define PROTOCOL_GRPC_APPLY_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/rpc_event.h"
#include "protocol/rpc_peer.h"

namespace deut {

class GrpcApplyLog final : public ApplyLogStream {
 public:
  // Borrows the loop as well. Fails with the data component's refusal (FENCED, WRONG_INCARNATION, ...), UNAVAILABLE, or
  // DEADLINE_EXCEEDED. After a failure the listener is not called.
  static Result<std::unique_ptr<ApplyLogStream>> Open(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                                      RpcEventLoop& loop, wire::DataComponent::Stub& stub,
                                                      const Sender& sender, ApplyLogListener* listener,
                                                      Deadline deadline);
  ~GrpcApplyLog() override;

  Status Send(const LogBatch& batch, Deadline deadline) override;

 private:
  using Stream = grpc::ClientAsyncReaderWriter<wire::ApplyLogRequest, wire::ApplyLogAnswer>;
  // kEnding: no write may start any more. kClosed: the reason is known as well.
  enum WriteState : uint32_t { kIdle, kWriting, kEnding, kClosed };

  class Event final : public RpcEvent {
   public:
    using Handler = void (GrpcApplyLog::*)(bool ok);
    Event(GrpcApplyLog& log, Handler handler) : log_(log), handler_(handler) {}
    void Done(bool ok) override { (log_.*handler_)(ok); }
    bool MayBlock() const override { return false; }

   private:
    GrpcApplyLog& log_;
    const Handler handler_;
  };

  GrpcApplyLog(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, ApplyLogListener* listener)
      : runtime_(runtime), peer_(std::move(peer)), listener_(listener), mutex_(runtime) {}

  void Started(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool /*ok*/) { over_.Signal(runtime_); }
  // Signals over_ if no operation is in flight and none will start.
  void SignalIfOverLocked() DEUT_REQUIRES(mutex_);

  void Run();
  void HandleAnswer();
  // No write starts from now on. True if the end of a write is still to come.
  bool EndWriting();
  // Only the first reason is kept.
  void SetReason(Status reason);
  Status Reason();

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  ApplyLogListener* const listener_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  wire::ApplyLogRequest outgoing_;  // belongs to the thread that set the write side to `writing`
  wire::ApplyLogAnswer incoming_;   // belongs to the read in flight, or to the thread that runs its end
  Event started_{*this, &GrpcApplyLog::Started};
  Event read_{*this, &GrpcApplyLog::Read};
  Event written_{*this, &GrpcApplyLog::Written};
  Event finished_{*this, &GrpcApplyLog::Finished};
  deut::Event over_;       // neither the stream nor its Finish has an operation in flight
  bool accepted_ = false;  // the data component has opened the stream; set before settled_
  deut::Event settled_;    // opening has succeeded or failed
  std::atomic<uint32_t> write_state_{kWriting};
  Mutex mutex_;
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;  // valid only once the write side is ending
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;
  Status reason_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_APPLY_LOG_H_
