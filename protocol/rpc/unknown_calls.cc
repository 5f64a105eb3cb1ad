#include "protocol/rpc/unknown_calls.h"

#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "grpcpp/generic/async_generic_service.h"
#include "protocol/rpc/rpc_event.h"

namespace deut {
namespace {

// The peer chooses the name, which may fill its header block.
constexpr size_t kMaxShownBytes = 128;

std::string Shown(std::string_view method) {
  return method.size() <= kMaxShownBytes ? Quoted(method) : Concat(Quoted(method.substr(0, kMaxShownBytes)), "...");
}

}  // namespace

class UnknownCalls::Call final {
 private:
  const RpcCallPresence presence_;  // must be the first member: see RpcCallPresence

 public:
  static void Want(UnknownCalls& calls, RpcExecutor& executor) {
    auto* const call = new Call(calls, executor);
    calls.service_.RequestCall(&call->context_, &call->stream_, executor.queue(), executor.queue(),
                               static_cast<RpcEvent*>(&call->taken_));
  }

 private:
  class Event final : public RpcEvent {
   public:
    using Handler = void (Call::*)(bool ok);
    Event(Call& call, Handler handler) : call_(call), handler_(handler) {}
    void Done(bool ok) override { (call_.*handler_)(ok); }
    bool MayBlock() const override { return false; }

   private:
    Call& call_;
    const Handler handler_;
  };

  Call(UnknownCalls& calls, RpcExecutor& executor)
      : presence_(executor), calls_(calls), executor_(executor), stream_(&context_) {}

  void Taken(bool ok) {
    if (!ok) return delete this;  // The server has shut down.
    Want(calls_, executor_);
    stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, Concat("this server has no method ", Shown(context_.method()))},
                   static_cast<RpcEvent*>(&answered_));
  }
  // Whether the peer has got the answer does not matter.
  void Answered(bool /*ok*/) { delete this; }

  UnknownCalls& calls_;
  RpcExecutor& executor_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  Event taken_{*this, &Call::Taken};
  Event answered_{*this, &Call::Answered};
};

void UnknownCalls::Serve(RpcExecutor& executor) { Call::Want(*this, executor); }

}  // namespace deut
