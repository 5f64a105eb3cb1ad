#include "protocol/grpc_transaction_service_server.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/convert_transaction_service.h"
#include "protocol/one_shot_handler.h"
#include "protocol/peer_service.h"
#include "protocol/rpc_executor.h"
#include "protocol/rpc_server.h"
#include "protocol/rpc_status.h"
#include "protocol/session_handler.h"
#include "protocol/stream_host.h"
#include "protocol/stream_quota.h"
#include "protocol/stream_watchdog.h"
#include "protocol/transaction_service.grpc.pb.h"

namespace deut {
namespace {

using AsyncSession = wire::TransactionService::WithAsyncMethod_Session<wire::TransactionService::Service>;
using AsyncStreams = wire::TransactionService::WithAsyncMethod_OneShots<AsyncSession>;

}  // namespace

class GrpcTransactionServiceServer::Service final : public AsyncStreams, public ExecutedService {
 public:
  Service(Runtime& runtime, TransactionService& service, const RpcServiceOptions& options,
          std::shared_ptr<const AccessControl> access)
      : runtime_(runtime),
        services_(service, std::move(access)),
        watchdog_(runtime, options.stuck_peer),
        idle_(runtime, options.idle_session),
        streams_(runtime, options.open_streams()),
        calls_(runtime, options.calls()) {}

  void Serve(RpcExecutor& executor) override {
    host_.emplace(StreamHost{.runtime = runtime_,
                             .executor = executor,
                             .writes = watchdog_,
                             .idle = idle_,
                             .streams = streams_,
                             .services = services_});
    request_session_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestSession(context, stream, queue, queue, tag);
    };
    request_one_shots_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestOneShots(context, stream, queue, queue, tag);
    };
    SessionHandler::Want(*host_, request_session_);
    OneShotHandler::Want(*host_, request_one_shots_);
  }

  grpc::Status AskOutcome(grpc::ServerContext* context, const wire::OutcomeRequest* request,
                          wire::OutcomeAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    TransactionName name;
    Status valid = CheckProtocolVersion("the client", request->protocol_version());
    if (valid.ok()) valid = FromWire(*request, &name);
    ToWire(valid.ok() ? ForClient(context)->get().AskOutcome(name, DeadlineOf(context)) : Result<OutcomeAnswer>(valid),
           answer);
    return grpc::Status::OK;
  }

  grpc::Status OpenTable(grpc::ServerContext* context, const wire::TableRequest* request,
                         wire::TableAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    Answer(Check(*request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const TableId table,
                            ForClient(context)->get().OpenTable(request->name(), DeadlineOf(context)));
      answer->set_table(table.value);
      return Status::Ok();
    });
    return grpc::Status::OK;
  }

  grpc::Status CreateTable(grpc::ServerContext* context, const wire::TableRequest* request,
                           wire::TableAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    Answer(Check(*request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const TableId table,
                            ForClient(context)->get().CreateTable(request->name(), DeadlineOf(context)));
      answer->set_table(table.value);
      return Status::Ok();
    });
    return grpc::Status::OK;
  }

  grpc::Status DropTable(grpc::ServerContext* context, const wire::TableRequest* request,
                         wire::TableAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    Answer(Check(*request), answer,
           [&] { return ForClient(context)->get().DropTable(request->name(), DeadlineOf(context)); });
    return grpc::Status::OK;
  }

  grpc::Status ListTables(grpc::ServerContext* context, const wire::ServiceRequest* request,
                          wire::ListTablesAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    Answer(Check(*request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables,
                            ForClient(context)->get().ListTables(DeadlineOf(context)));
      ToWire(tables, answer->mutable_tables());
      return Status::Ok();
    });
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext* context, const wire::ServiceRequest* request,
                         wire::GetStatusAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    const Status valid = Check(*request);
    ToWire(valid.ok() ? ForClient(context)->get().GetStatus(DeadlineOf(context)) : Result<ServiceStatus>(valid),
           answer);
    return grpc::Status::OK;
  }

  grpc::Status DropCaches(grpc::ServerContext* context, const wire::ServiceRequest* request,
                          wire::DropCachesAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    Answer(Check(*request), answer, [&] { return ForClient(context)->get().DropCaches(DeadlineOf(context)); });
    return grpc::Status::OK;
  }

 private:
  static Status Check(const wire::ServiceRequest& request) {
    return CheckProtocolVersion("the client", request.protocol_version());
  }
  static Status Check(const wire::TableRequest& request) {
    DEUT_RETURN_IF_ERROR(CheckProtocolVersion("the client", request.protocol_version()));
    return CheckTableName("name", request.name());
  }

  // Runs the call if the request is valid; what goes wrong becomes the answer's status.
  template <typename Message, typename Call>
  static void Answer(Status valid, Message* answer, Call call) {
    const Status status = valid.ok() ? call() : std::move(valid);
    if (!status.ok()) ToWire(status, answer->mutable_status());
  }

  std::unique_ptr<PeerService> ForClient(const grpc::ServerContextBase* context) { return services_.For(*context); }
  Deadline DeadlineOf(grpc::ServerContext* context) { return FromRpcTime(runtime_, context->raw_deadline()); }

  Runtime& runtime_;
  PeerServices services_;
  StreamWatchdog watchdog_;
  StreamWatchdog idle_;
  StreamQuota streams_;
  StreamQuota calls_;
  std::optional<StreamHost> host_;
  SessionHandler::Request request_session_;
  OneShotHandler::Request request_one_shots_;
};

GrpcTransactionServiceServer::GrpcTransactionServiceServer(Runtime& runtime, TransactionService& service,
                                                           const RpcServiceOptions& options,
                                                           std::shared_ptr<const AccessControl> access)
    : service_(std::make_unique<Service>(runtime, service, options, std::move(access))) {}

GrpcTransactionServiceServer::~GrpcTransactionServiceServer() = default;

grpc::Service* GrpcTransactionServiceServer::service() { return service_.get(); }

}  // namespace deut
