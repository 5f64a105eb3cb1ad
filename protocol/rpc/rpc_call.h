// RpcCall: one bidirectional stream of a server, whose events an executor runs (rpc_executor.h). A derived class is a
// state machine. RpcCall tells it when its call has come, when a message was read, and when the call is over. The
// object deletes itself when no operation of it is in flight any more.
//
// Life: wanted (gRPC will fill it in) -> accepted -> ending -> gone.
// OnAccepted runs once the call has come, and OnRead once for each StartRead. The derived class calls End after
// OnRead(false), or at any other time. From then on nothing is read or written, and the peer gets the status. At most
// one of OnAccepted and OnRead runs at a time. OnWritten may run at the same time, on another thread.
// Writes: one at a time. Write can wait for the previous one, on a thread of the executor. A peer that takes nothing
// for the watchdog's limit loses its call, so no wait lasts longer.
// References: each operation in flight holds one, until its handler has returned, and one exists until the peer has
// been told the end. The thread that releases the last one deletes the call. The end starts once, when no write is in
// flight. A call that was accepted must End.
// Thread-safety: a thread may call End and Write if it holds a reference, or prevents the call's destruction otherwise.
// Ownership: owns itself; borrows executor and watchdog, which outlive it.
#ifndef PROTOCOL_RPC_RPC_CALL_H_
#define PROTOCOL_RPC_RPC_CALL_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/stream_watchdog.h"

namespace deut {

class RpcCallBase {
 private:
  const RpcCallPresence presence_;  // must be the first member: see RpcCallPresence

 public:
  RpcCallBase(const RpcCallBase&) = delete;
  RpcCallBase& operator=(const RpcCallBase&) = delete;

  // Tells the peer the status once the present write has ended. Only the first status counts.
  void End(const grpc::Status& status);

 protected:
  RpcCallBase(Runtime& runtime, RpcExecutor& executor, StreamWatchdog& watchdog);
  virtual ~RpcCallBase() = default;

  // The call has come; another one may be wanted in its place. OnAccepted and OnWritten must not block.
  virtual void OnAccepted() = 0;
  // A message was read, or (not ok) there will be no other one.
  virtual void OnRead(bool ok) = 0;
  // A write has ended, and no other has begun.
  virtual void OnWritten(bool /*ok*/) {}
  // The peer has hung up, or has been told how the call ends. It may run at the same time as the others, on any thread,
  // even before OnAccepted. It must not block. A call that reads also learns of the end by OnRead(false).
  virtual void OnPeerGone() {}
  virtual void StartReading(RpcEvent* event) = 0;
  virtual void StartFinish(const grpc::Status& status, RpcEvent* event) = 0;

  grpc::ServerContext& context() { return context_; }
  RpcExecutor& executor() { return executor_; }
  // For the service's Request method.
  RpcEvent* accepted() { return &accepted_; }

  // Adds a reference, for as long as another object refers to the call.
  void Retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // REQUIRES: no read is in flight.
  void StartRead();
  // Takes the right to start a write. False: the call has ended, a write has failed, or (without `wait`) another write
  // is in flight.
  bool BeginWrite(bool wait);
  RpcEvent* WriteEvent() { return &written_; }
  bool broken();

  Runtime& runtime_;

 private:
  class Event final : public RpcEvent {
   public:
    using Handler = void (RpcCallBase::*)(bool ok);
    Event(RpcCallBase& call, Handler handler, bool may_block = false)
        : call_(call), handler_(handler), may_block_(may_block) {}
    void Done(bool ok) override {
      RpcCallBase& call = call_;
      (call.*handler_)(ok);
      call.Release();
    }
    bool MayBlock() const override { return may_block_; }

   private:
    RpcCallBase& call_;
    const Handler handler_;
    const bool may_block_;
  };

  void Accepted(bool ok);
  void Written(bool ok);
  void PeerDone(bool /*ok*/);
  void FinishSent(bool /*ok*/);
  void FinishLocked() DEUT_REQUIRES(mutex_);

  RpcExecutor& executor_;
  grpc::ServerContext context_;
  // One for `accepted`, one for `ended`, and one until the call has finished. `ended` may come, and run, before `accepted`
  // does.
  std::atomic<int> references_{3};
  Event accepted_{*this, &RpcCallBase::Accepted};
  Event ended_{*this, &RpcCallBase::PeerDone};
  Event read_{*this, &RpcCallBase::OnRead, /*may_block=*/true};
  Event written_{*this, &RpcCallBase::Written};
  Event finished_{*this, &RpcCallBase::FinishSent};
  Mutex mutex_;
  CondVar writable_;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  bool broken_ DEUT_GUARDED_BY(mutex_) = false;  // a write has failed
  bool ending_ DEUT_GUARDED_BY(mutex_) = false;
  grpc::Status status_ DEUT_GUARDED_BY(mutex_);
  StreamWatchdog::Watch write_watch_;
};

template <typename Out, typename In>
class RpcCall : public RpcCallBase {
 protected:
  RpcCall(Runtime& runtime, RpcExecutor& executor, StreamWatchdog& watchdog)
      : RpcCallBase(runtime, executor, watchdog), stream_(&context()) {}

  grpc::ServerAsyncReaderWriter<Out, In>* stream() { return &stream_; }
  // In OnRead: the message that was read.
  In& incoming() { return incoming_; }

  // False: the message will not arrive. (True does not mean that it will.) The message can be reused at once.
  bool Write(const Out& message, bool wait = true) {
    if (!BeginWrite(wait)) return false;
    stream_.Write(message, WriteEvent());
    return true;
  }

 private:
  void StartReading(RpcEvent* event) final { stream_.Read(&incoming_, event); }
  void StartFinish(const grpc::Status& status, RpcEvent* event) final { stream_.Finish(status, event); }

  grpc::ServerAsyncReaderWriter<Out, In> stream_;
  In incoming_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_CALL_H_
