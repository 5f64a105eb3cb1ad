#include "protocol/transactions/one_shot_handler.h"

#include <utility>

#include "protocol/rpc/rpc_status.h"
#include "protocol/wire/namespace.h"

namespace deut {

void OneShotHandler::RequestNextCall(const StreamHost& host, const Request& request) {
  auto* const call = new OneShotHandler(host, request);
  request(&call->context(), call->stream(), call->accepted());
}

void OneShotHandler::OnAccepted() {
  RequestNextCall(host_, request_);
  if (const Status entered = host_.streams.Enter(context(), &quota_slot_); !entered.ok()) return End(entered);
  service_ = host_.services.For(context());
  messages_.emplace(host_.runtime, static_cast<WireOneShotMessages::Stream*>(this));
  scheduler_ = host_.one_shots(host_.runtime, service_->get(), *this, *messages_);
  scheduler_->Start();
}

void OneShotHandler::OnRead(bool ok) {
  idle_watch_.Stop();
  if (!ok) return scheduler_->ReadDone(false);
  message_->Swap(&incoming());
  Retain();
  const bool at_work = quota_slot_.BeginWork([this] { executor().Post([this] { Work(); }); });
  if (at_work) Work();
}

void OneShotHandler::Work() {
  scheduler_->ReadDone(true);
  quota_slot_.EndWork();
  Release();
}

// Brings another thread to the stream. That thread holds a reference to the call, because a thread that ends the stream is inside the call until End
// has returned. That may be after the peer has learnt of the end.
OneShotHandler::Posted OneShotHandler::Post(std::function<void()> work) {
  if (!quota_slot_.TryBeginWork()) return Posted::kNo;
  Retain();
  const bool comes = executor().Post([this, work = std::move(work)] {
    work();
    quota_slot_.EndWork();
    Release();
  });
  return comes ? Posted::kComes : Posted::kWhenFree;
}

bool OneShotHandler::EndIfIdle() {
  return scheduler_->EndIfIdle(DEUT_ERROR(kUnavailable,
                                          "the stream of one-shot transactions has asked for nothing for ",
                                          duration_cast<seconds>(host_.idle.limit()).count(),
                                          " s (--idle_session_timeout) and was ended; a new one can be opened"));
}

void OneShotHandler::OnWritten(bool ok) { scheduler_->WriteDone(ok); }

void OneShotHandler::StartRead(wire::OneShotCalls* message) {
  message_ = message;
  idle_watch_.Start();
  RpcCall::StartRead();
}

void OneShotHandler::StartWrite(const wire::OneShotAnswers& message) {
  if (!Write(message, /*wait=*/false)) scheduler_->WriteDone(false);
}

void OneShotHandler::End(const Status& reason) { RpcCall::End(ToRpcStatus(reason)); }

}  // namespace deut
