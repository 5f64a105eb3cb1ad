// OneShotHandler: one stream of one-shot transactions on the server. It joins the stream (rpc_call.h) with its messages
// (wire_one_shot_messages.h) and its scheduler (one_shot_scheduler.h). Thread-safety and ownership: rpc_call.h; `host` and
// `request` outlive it.
#ifndef PROTOCOL_TRANSACTIONS_ONE_SHOT_HANDLER_H_
#define PROTOCOL_TRANSACTIONS_ONE_SHOT_HANDLER_H_

#include <functional>
#include <memory>
#include <optional>

#include "protocol/connections/stream_quota.h"
#include "protocol/rpc/rpc_call.h"
#include "protocol/rpc/stream_watchdog.h"
#include "protocol/transactions/one_shot_scheduler.h"
#include "protocol/transactions/peer_service.h"
#include "protocol/transactions/stream_host.h"
#include "protocol/transactions/wire_one_shot_messages.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

class OneShotHandler final : public RpcCall<wire::OneShotAnswers, wire::OneShotCalls>,
                             private WireOneShotMessages::Stream,
                             private OneShotScheduler::Threads {
 public:
  // Asks gRPC for the next stream of this kind, with `request(context, stream, tag)`.
  using Request =
      std::function<void(grpc::ServerContext* context,
                         grpc::ServerAsyncReaderWriter<wire::OneShotAnswers, wire::OneShotCalls>* stream, void* tag)>;
  static void RequestNextCall(const StreamHost& host, const Request& request);

 private:
  OneShotHandler(const StreamHost& host, const Request& request)
      : RpcCall(host.runtime, host.executor, host.writes),
        host_(host),
        request_(request),
        idle_watch_(host.idle, [this] { return EndIfIdle(); }) {}
  ~OneShotHandler() override = default;

  void OnAccepted() override;
  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;

  // Passes a message to the scheduler, on the thread that read it or on a posted one. The stream counts as at work meanwhile.
  void Work();
  // Called by the watchdog.
  bool EndIfIdle();

  void StartRead(wire::OneShotCalls* message) override;
  void StartWrite(const wire::OneShotAnswers& message) override;
  void End(const Status& reason) override;

  Posted Post(std::function<void()> work) override;
  void BeforeBlocking() override { executor().BeforeBlocking(); }
  bool MayHaveDelay() override { return host_.streams.open() <= 1; }

  const StreamHost& host_;
  const Request& request_;
  StreamQuota::Slot quota_slot_;
  std::unique_ptr<PeerService> service_;
  std::optional<WireOneShotMessages> messages_;
  std::unique_ptr<OneShotScheduler> scheduler_;
  wire::OneShotCalls* message_ = nullptr;  // the message that the pending read fills
  StreamWatchdog::Watch idle_watch_;       // the last member: its destructor waits for a running call of EndIfIdle
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_ONE_SHOT_HANDLER_H_
