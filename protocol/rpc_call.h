// RpcCall: one bidirectional stream of a server whose events an executor runs (rpc_executor.h). A derived class is a state machine. It is told when
// its call has come, when a message was read, and that it is over; it deletes itself when nothing of it is under way any more.
//
// Life: wanted (gRPC will fill it in) -> taken -> ending -> gone.
//   OnTaken once the call is there; then, for each StartRead, OnRead. After OnRead(false), or whenever it likes, the call Ends; nothing is read or
//     written from then on, and the peer is told the status.
//   At most one of OnTaken and OnRead runs at a time; OnWritten may run beside them, on another thread.
// Writes: one at a time. Write can wait for the one before, on a thread of the executor. A peer that takes nothing for the watchdog's limit loses
//   its call, so no wait lasts longer.
// References: one for each operation that is under way, its handler included, and one until the peer has been told how the call ends. Whoever gives
//   up the last deletes the call. The end is started once, when no write is under way. A call that was taken has to End.
// Thread-safety: End and Write from any thread that has a reference, or holds off the call's destruction otherwise.
// Ownership: owns itself; borrows executor and watchdog, which outlive it.
#ifndef PROTOCOL_RPC_CALL_H_
#define PROTOCOL_RPC_CALL_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/rpc_executor.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class RpcCallBase {
 private:
  const RpcCallPresence presence_;  // first, see there

 public:
  RpcCallBase(const RpcCallBase&) = delete;
  RpcCallBase& operator=(const RpcCallBase&) = delete;

  // Tells the peer, once what is being written is. The first status stays.
  void End(const grpc::Status& status);

 protected:
  RpcCallBase(Runtime& runtime, RpcExecutor& executor, StreamWatchdog& watchdog);
  virtual ~RpcCallBase() = default;

  // The call is there; another one can be wanted in its place. Must not block; nor must OnWritten.
  virtual void OnTaken() = 0;
  // A message was read, or (not ok) there will be none any more.
  virtual void OnRead(bool ok) = 0;
  // A write is over and no other has begun.
  virtual void OnWritten(bool /*ok*/) {}
  // The peer has hung up, or has been told how the call ends. Beside the others, on any thread, perhaps before OnTaken. Must not block.
  // A call that reads learns of it by OnRead(false), too.
  virtual void OnPeerGone() {}
  virtual void StartReading(RpcEvent* event) = 0;
  virtual void StartFinish(const grpc::Status& status, RpcEvent* event) = 0;

  grpc::ServerContext& context() { return context_; }
  RpcExecutor& executor() { return executor_; }
  // For the service's Request method.
  RpcEvent* taken() { return &taken_; }

  // A reference, for as long as something else refers to the call.
  void Retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // REQUIRES: no read is under way.
  void StartRead();
  // Takes the right to start a write; false: the call has ended, or can be written no more, or (not `wait`) another write is under way.
  bool BeginWrite(bool wait);
  RpcEvent* WriteEvent() { return &written_; }
  bool broken();

  Runtime& runtime_;

 private:
  class Event final : public RpcEvent {
   public:
    using Handler = void (RpcCallBase::*)(bool ok);
    Event(RpcCallBase& call, Handler handler) : call_(call), handler_(handler) {}
    void Done(bool ok) override {
      RpcCallBase& call = call_;
      (call.*handler_)(ok);
      call.Release();
    }
    bool MayBlock() const override { return handler_ == &RpcCallBase::OnRead; }

   private:
    RpcCallBase& call_;
    const Handler handler_;
  };

  void Taken(bool ok);
  void Written(bool ok);
  void Ended(bool /*ok*/);
  void Told(bool /*ok*/);
  void FinishLocked() DEUT_REQUIRES(mutex_);

  RpcExecutor& executor_;
  grpc::ServerContext context_;
  // Of `taken`, of `ended`, and until it has finished: `ended` may come, and be run, before `taken` is.
  std::atomic<int> references_{3};
  Event taken_{*this, &RpcCallBase::Taken};
  Event ended_{*this, &RpcCallBase::Ended};
  Event read_{*this, &RpcCallBase::OnRead};
  Event written_{*this, &RpcCallBase::Written};
  Event finished_{*this, &RpcCallBase::Told};
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
  // What was read, in OnRead.
  In& incoming() { return incoming_; }

  // False: it will not arrive. (True does not mean that it will.) The message can be used again at once.
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

#endif  // PROTOCOL_RPC_CALL_H_
