#include "protocol/transactions/grpc_transaction_service.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/rpc/rpc_stream.h"
#include "protocol/transactions/grpc_one_shots.h"
#include "protocol/transactions/grpc_session.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

struct GrpcTransactionService::Impl {
  using Stub = wire::TransactionService::Stub;

  Impl(Runtime& own_runtime, std::shared_ptr<const RpcPeer> own_peer, const GrpcTransactionServiceOptions& options)
      : runtime(own_runtime),
        peer(std::move(own_peer)),
        channel(peer->NewChannel(RpcTraffic::kBulk)),
        control(wire::TransactionService::NewStub(channel)),
        events(own_runtime),
        one_shots(own_runtime, peer, events) {
    for (int i = 0; i < std::max(1, options.connections); ++i) {
      session_channels.push_back(peer->NewChannel(RpcTraffic::kShort));
      sessions.push_back(wire::TransactionService::NewStub(session_channels.back()));
    }
  }

  template <typename Call>
  Status Control(Deadline deadline, Call call) {
    AwaitConnection(runtime, *channel, deadline);
    return CallRpc(runtime, *peer, *channel, deadline, call);
  }

  // Waits while the connection is being made. False if it cannot be made now.
  bool Connected(Deadline deadline) {
    for (;;) {
      AwaitConnection(runtime, *channel, deadline);
      const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY) return true;
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN || runtime.Now() >= deadline)
        return false;
    }
  }

  // OpenTable, CreateTable and DropTable differ only in the method. The last two are commits.
  Result<TableId> Table(bool commits,
                        grpc::Status (Stub::*method)(grpc::ClientContext*, const wire::TableRequest&,
                                                     wire::TableAnswer*),
                        std::string_view name, Deadline deadline, const TableOptions& options = {}) {
    DEUT_RETURN_IF_ERROR(CheckTableName("name", name));
    wire::TableRequest message;
    if (options.compression) message.set_compression(static_cast<uint32_t>(*options.compression));
    message.set_protocol_version(kProtocolVersion);
    message.set_name(name.data(), name.size());
    wire::TableAnswer answer;
    // A commit is sent only over an existing connection. So a commit that fails may have been carried out, and without
    // a connection nothing was.
    if (!Connected(deadline) && commits) {
      // gRPC tells the reason only to a call, so a call that changes nothing asks for it. If it gets an answer, there
      // is a connection after all.
      wire::TableAnswer unused;
      DEUT_RETURN_IF_ERROR(CallRpc(runtime, *peer, *channel, deadline, [&](grpc::ClientContext* context) {
        return control->OpenTable(context, message, &unused);
      }));
    }
    const Status called = CallRpc(runtime, *peer, *channel, deadline, [&](grpc::ClientContext* context) {
      return (control.get()->*method)(context, message, &answer);
    });
    if (commits && (called == ErrorCode::kUnavailable || called == ErrorCode::kDeadlineExceeded)) {
      return DEUT_ERROR(kOutcomeUnknown, "the answer to the commit is lost: ", called.ToString());
    }
    DEUT_RETURN_IF_ERROR(called);
    DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
    return TableId(answer.table());
  }

  Runtime& runtime;
  const std::shared_ptr<const RpcPeer> peer;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<Stub> control;
  RpcEventThread events;
  GrpcOneShots one_shots;
  std::vector<std::shared_ptr<grpc::Channel>> session_channels;
  std::vector<std::unique_ptr<Stub>> sessions;  // one for each of session_channels
  std::atomic<uint32_t> next_session{0};
};

namespace {

wire::ServiceRequest Versioned() {
  wire::ServiceRequest message;
  message.set_protocol_version(kProtocolVersion);
  return message;
}

}  // namespace

GrpcTransactionService::GrpcTransactionService(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                               GrpcTransactionServiceOptions options)
    : impl_(std::make_unique<Impl>(runtime, std::move(peer), options)) {}

GrpcTransactionService::~GrpcTransactionService() = default;

OneShotChannel* GrpcTransactionService::one_shots() { return &impl_->one_shots; }

Result<std::unique_ptr<TransactionSession>> GrpcTransactionService::NewSession(Deadline deadline) {
  const size_t number = impl_->next_session.fetch_add(1, std::memory_order_relaxed) % impl_->sessions.size();
  auto session = std::make_unique<GrpcSession>(impl_->runtime, impl_->peer, impl_->events);
  AwaitConnection(impl_->runtime, *impl_->session_channels[number], deadline);
  DEUT_RETURN_IF_ERROR(session->Open(*impl_->sessions[number], deadline));
  return std::unique_ptr<TransactionSession>(std::move(session));
}

Result<OutcomeAnswer> GrpcTransactionService::AskOutcome(const TransactionName& name, Deadline deadline) {
  wire::OutcomeRequest request;
  request.set_protocol_version(kProtocolVersion);
  ToWire(name, &request);
  wire::OutcomeAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(
      deadline, [&](grpc::ClientContext* context) { return impl_->control->AskOutcome(context, request, &answer); }));
  return FromWire(answer);
}

Result<TableId> GrpcTransactionService::OpenTable(std::string_view name, Deadline deadline) {
  return impl_->Table(false, &Impl::Stub::OpenTable, name, deadline);
}

Result<TableId> GrpcTransactionService::CreateTable(std::string_view name, const TableOptions& options,
                                                    Deadline deadline) {
  return impl_->Table(true, &Impl::Stub::CreateTable, name, deadline, options);
}

Status GrpcTransactionService::DropTable(std::string_view name, Deadline deadline) {
  return impl_->Table(true, &Impl::Stub::DropTable, name, deadline).status();
}

Result<std::vector<TableInfo>> GrpcTransactionService::ListTables(Deadline deadline) {
  wire::ListTablesAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(deadline, [&](grpc::ClientContext* context) {
    return impl_->control->ListTables(context, Versioned(), &answer);
  }));
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  std::vector<TableInfo> tables;
  DEUT_RETURN_IF_ERROR(FromWire(answer.tables(), &tables));
  return tables;
}

Result<ServiceStatus> GrpcTransactionService::GetStatus(Deadline deadline) {
  wire::GetStatusAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(deadline, [&](grpc::ClientContext* context) {
    return impl_->control->GetStatus(context, Versioned(), &answer);
  }));
  return FromWire(answer);
}

Status GrpcTransactionService::DropCaches(Deadline deadline) {
  wire::DropCachesAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(deadline, [&](grpc::ClientContext* context) {
    return impl_->control->DropCaches(context, Versioned(), &answer);
  }));
  return FromWire(answer.status());
}

}  // namespace deut
