#include "protocol/rpc/rpc_unary_call.h"

#include "protocol/rpc/rpc_status.h"

namespace deut {

RpcUnaryCallBase::RpcUnaryCallBase(const UnaryHost& host)
    : presence_(host.executor), host_(host), watch_(host.writes, [this] { context_.TryCancel(); }) {}

void RpcUnaryCallBase::Accepted(bool ok) {
  if (!ok) {
    // The server has shut down before a call came.
    delete this;
    return;
  }
  RequestNext();
  if (const Status entered = host_.calls.Enter(context_, &quota_slot_); !entered.ok())
    return Answer(ToRpcStatus(entered));
  host_.executor.PostSingle([this] {
    // Single calls are few and may wait anywhere, so each hands the waiting for events over before it runs.
    host_.executor.BeforeBlocking();
    Answer(Run());
  });
}

void RpcUnaryCallBase::Answer(const grpc::Status& status) {
  // The watch starts before the answer, because the answer may be sent, and the call deleted, before StartAnswer
  // returns.
  watch_.Start();
  StartAnswer(status, &answered_);
}

void RpcUnaryCallBase::Answered(bool /*ok*/) { delete this; }

}  // namespace deut
