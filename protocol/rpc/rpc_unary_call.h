// RpcUnaryCall: one single call of a server, whose events an executor runs (rpc_executor.h): one request, one answer.
//
// Life: wanted (gRPC will fill it in) -> accepted -> running -> answering -> gone. After each call that is accepted, the
// service wants another.
// - accepted: the call enters the quota. If the quota refuses it, the refusal is its answer.
// - running: the method runs on a thread of the executor, and may block. Single calls have a reserved share of threads
//   (RpcExecutor::PostSingle). So they are answered even while streams block all other threads.
// - answering: gRPC sends the answer, and no thread waits for that. The call keeps its place in the quota until the
//   answer is sent. So a peer that takes no answers cannot exceed its quota. If it does not take the answer within the
//   watchdog's limit, the call is cancelled.
// Exactly one event, or one posted piece of work, refers to the call at any time. So it needs no lock and no reference
// count.
// Thread-safety: any thread may call RequestNextCall, before the server shuts down. Ownership: a call owns itself; host and method
// outlive it.
#ifndef PROTOCOL_RPC_RPC_UNARY_CALL_H_
#define PROTOCOL_RPC_RPC_UNARY_CALL_H_

#include <functional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/stream_watchdog.h"

namespace deut {

// References to the objects that the single calls of one service share. Ownership: borrows all of them.
struct UnaryHost {
  RpcExecutor& executor;
  StreamWatchdog& writes;  // cancels calls whose peer does not take its answer
  StreamQuota& calls;
};

class RpcUnaryCallBase {
 private:
  const RpcCallPresence presence_;  // must be the first member: see RpcCallPresence

 public:
  RpcUnaryCallBase(const RpcUnaryCallBase&) = delete;
  RpcUnaryCallBase& operator=(const RpcUnaryCallBase&) = delete;

 protected:
  explicit RpcUnaryCallBase(const UnaryHost& host);
  virtual ~RpcUnaryCallBase() = default;

  virtual void RequestNext() = 0;
  // Runs the method. It may block.
  virtual grpc::Status Run() = 0;
  // OK: sends the answer that Run has made. Else: sends the status alone.
  virtual void StartAnswer(const grpc::Status& status, RpcEvent* event) = 0;

  grpc::ServerContext& context() { return context_; }
  // For the service's Request method.
  RpcEvent* accepted() { return &accepted_; }

  const UnaryHost& host_;

 private:
  class Event final : public RpcEvent {
   public:
    using Handler = void (RpcUnaryCallBase::*)(bool ok);
    Event(RpcUnaryCallBase& call, Handler handler) : call_(call), handler_(handler) {}
    void Done(bool ok) override { (call_.*handler_)(ok); }
    bool MayBlock() const override { return false; }

   private:
    RpcUnaryCallBase& call_;
    const Handler handler_;
  };

  void Accepted(bool ok);
  void Answer(const grpc::Status& status);
  void Answered(bool ok);

  grpc::ServerContext context_;
  StreamQuota::Slot quota_slot_;
  Event accepted_{*this, &RpcUnaryCallBase::Accepted};
  Event answered_{*this, &RpcUnaryCallBase::Answered};
  StreamWatchdog::Watch watch_;  // the last member: once it is destroyed, nothing cancels the call any more
};

template <typename In, typename Out>
struct UnaryMethod {
  // Asks gRPC for the next call: the service's Request method, on the executor's queue.
  std::function<void(grpc::ServerContext* context, In* request, grpc::ServerAsyncResponseWriter<Out>* writer,
                     void* tag)>
      request_next;
  // Runs one call. It may block. A status that is not OK is sent in place of the answer.
  std::function<grpc::Status(grpc::ServerContext& context, const In& request, Out* answer)> run;
};

template <typename In, typename Out>
class RpcUnaryCall final : public RpcUnaryCallBase {
 public:
  // REQUIRES: the server has been built.
  static void RequestNextCall(const UnaryHost& host, const UnaryMethod<In, Out>& method) {
    auto* const call = new RpcUnaryCall(host, method);
    method.request_next(&call->context(), &call->request_, &call->writer_, call->accepted());
  }

 private:
  RpcUnaryCall(const UnaryHost& host, const UnaryMethod<In, Out>& method)
      : RpcUnaryCallBase(host), method_(method), writer_(&context()) {}
  ~RpcUnaryCall() override = default;

  void RequestNext() override { RequestNextCall(host_, method_); }
  grpc::Status Run() override { return method_.run(context(), request_, &answer_); }
  void StartAnswer(const grpc::Status& status, RpcEvent* event) override {
    if (status.ok()) {
      writer_.Finish(answer_, status, event);
    } else {
      writer_.FinishWithError(status, event);
    }
  }

  const UnaryMethod<In, Out>& method_;
  In request_;
  Out answer_;
  grpc::ServerAsyncResponseWriter<Out> writer_;
};

// Serves a method of an asynchronous gRPC service. `request` is the generated method that asks for the next call;
// `answer` runs one call. REQUIRES: the server has been built.
template <typename Service, typename Generated, typename In, typename Out>
void ServeMethod(const UnaryHost& host, Service* service, UnaryMethod<In, Out>* method,
                 void (Generated::*request)(grpc::ServerContext*, In*, grpc::ServerAsyncResponseWriter<Out>*,
                                            grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
                 void (Service::*answer)(grpc::ServerContext&, const In&, Out*)) {
  method->request_next = [&host, service, request](grpc::ServerContext* context, In* message,
                                                   grpc::ServerAsyncResponseWriter<Out>* writer, void* tag) {
    grpc::ServerCompletionQueue* const queue = host.executor.queue();
    (service->*request)(context, message, writer, queue, queue, tag);
  };
  method->run = [service, answer](grpc::ServerContext& context, const In& message, Out* out) {
    (service->*answer)(context, message, out);
    return grpc::Status::OK;
  };
  RpcUnaryCall<In, Out>::RequestNextCall(host, *method);
}

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_UNARY_CALL_H_
