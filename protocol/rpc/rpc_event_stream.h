// RpcEventStream: a bidirectional stream as its client sees it, for a client whose threads must not wait for the
// network. All operations end in events of an event loop, which call the derived class. A thread of the derived class
// only opens and ends the stream: RunStream returns when it is over, and may be called again. (rpc_stream.h is a stream
// for a thread that waits.)
//
// Lifetime of the gRPC stream object: RunStream makes it. A write may start from OnOpenLocked on, until StopWritingLocked.
// RunStream deletes the object after that and, if a write was in flight, after the end of that write.
// Events: one read is in flight while the stream is open, and at most one write. Both may end at the same time, on two
// threads. Their ends change reading_, writing_ and ended_ under the lock, and so does the derived class with its right
// to write. Without the lock, the end of the read could find a write in flight and wait for its end. Meanwhile the end
// of the write could give up the right to write, and no write would start any more. Messages are handled without it.
// Thread-safety: any thread may call Stop; for StartWrite see there. Ownership: borrows the loop.
#ifndef PROTOCOL_RPC_RPC_EVENT_STREAM_H_
#define PROTOCOL_RPC_RPC_EVENT_STREAM_H_

#include <atomic>
#include <memory>

#include "absl/functional/function_ref.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/status.h"
#include "protocol/rpc/rpc_event.h"

namespace deut {

// The part that does not depend on the message types.
class RpcEventStreamBase {
 public:
  RpcEventStreamBase(const RpcEventStreamBase&) = delete;
  RpcEventStreamBase& operator=(const RpcEventStreamBase&) = delete;

 protected:
  RpcEventStreamBase(Runtime& runtime, RpcEventLoop& loop) : runtime_(runtime), loop_(loop), mutex_(runtime) {}
  ~RpcEventStreamBase() = default;

  // The stream is open. The read starts afterwards, and a write may.
  virtual void OnOpenLocked() DEUT_REQUIRES(mutex_) = 0;
  // A message was read. False: the stream is to end; the derived class cancels it.
  virtual bool OnRead() = 0;
  // A write has ended, and the stream goes on.
  virtual void OnWrittenLocked() DEUT_REQUIRES(mutex_) = 0;
  // The stream ends, or has ended: no write starts from now on. True: one is in flight.
  virtual bool StopWritingLocked() DEUT_REQUIRES(mutex_) = 0;
  // That write has ended. Not ok: it has failed, which may have been the first sign of the stream's end.
  virtual void OnLastWriteLocked(bool ok) DEUT_REQUIRES(mutex_) = 0;

  // Cancels the present stream, and each later one when it starts.
  void Stop();
  bool stopping() const { return stop_.load(std::memory_order_seq_cst); }
  // No operation starts any more.
  bool ended() const DEUT_REQUIRES(mutex_) { return ended_; }
  // REQUIRES: a stream runs.
  void CancelLocked() DEUT_REQUIRES(mutex_) { context_->TryCancel(); }

  // Runs one stream from its opening to its end, on the calling thread. `context` is a new one. It holds the call, in whose memory gRPC's stream
  // object lies, so it must outlive that object.
  grpc::Status Run(grpc::ClientContext* context, absl::FunctionRef<void(grpc::ClientContext* context)> prepare);
  RpcEvent* WriteEvent() { return &written_; }

  Runtime& runtime_;
  RpcEventLoop& loop_;
  Mutex mutex_;

 private:
  class End final : public RpcEvent {
   public:
    using Handler = void (RpcEventStreamBase::*)(bool ok);
    End(RpcEventStreamBase& stream, Handler handler) : stream_(stream), handler_(handler) {}
    void Done(bool ok) override { (stream_.*handler_)(ok); }
    bool MayBlock() const override { return false; }

   private:
    RpcEventStreamBase& stream_;
    const Handler handler_;
  };

  virtual void StartCall(RpcEvent* event) = 0;
  virtual void StartRead(RpcEvent* event) = 0;
  virtual void StartFinish(grpc::Status* end, RpcEvent* event) = 0;

  void Started(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool /*ok*/) { over_.Signal(runtime_); }
  void EndLocked() DEUT_REQUIRES(mutex_);
  // Signals over_ if no operation is in flight and none will start.
  void SignalIfOverLocked() DEUT_REQUIRES(mutex_);

  End started_{*this, &RpcEventStreamBase::Started};
  End read_{*this, &RpcEventStreamBase::Read};
  End written_{*this, &RpcEventStreamBase::Written};
  End finished_{*this, &RpcEventStreamBase::Finished};
  Event over_;  // neither the stream nor its Finish has an operation in flight
  std::atomic<bool> stop_{false};
  grpc::ClientContext* context_ DEUT_GUARDED_BY(mutex_) = nullptr;  // of the present stream; used to cancel it
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;  // valid only once the stream has ended
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;
};

template <typename Out, typename In>
class RpcEventStream : public RpcEventStreamBase {
 protected:
  RpcEventStream(Runtime& runtime, RpcEventLoop& loop) : RpcEventStreamBase(runtime, loop) {}
  ~RpcEventStream() = default;

  // `prepare(context, queue)` is a stub's PrepareAsync method.
  template <typename Prepare>
  grpc::Status RunStream(Prepare prepare) {
    grpc::ClientContext context;
    grpc::Status end = Run(&context, [&](grpc::ClientContext* made) { stream_ = prepare(made, loop_.queue()); });
    stream_.reset();
    return end;
  }

  // Writes outgoing_. REQUIRES: the caller has the right to write, which the derived class gives to one thread at a time
  // while the stream is open. It ends with the write's end.
  void StartWrite() { stream_->Write(outgoing_, WriteEvent()); }

  Out outgoing_;  // belongs to the thread that has the right to write
  In incoming_;   // belongs to the read in flight, or to the thread that runs its end

 private:
  void StartCall(RpcEvent* event) final { stream_->StartCall(event); }
  void StartRead(RpcEvent* event) final { stream_->Read(&incoming_, event); }
  void StartFinish(grpc::Status* end, RpcEvent* event) final { stream_->Finish(end, event); }

  std::unique_ptr<grpc::ClientAsyncReaderWriter<Out, In>> stream_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_EVENT_STREAM_H_
