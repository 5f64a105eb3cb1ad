#include "protocol/transactions/grpc_transaction_service_server.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/connections/stream_quota.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/rpc/rpc_unary_call.h"
#include "protocol/rpc/stream_watchdog.h"
#include "protocol/transactions/one_shot_handler.h"
#include "protocol/transactions/one_shot_scheduler.h"
#include "protocol/transactions/peer_service.h"
#include "protocol/transactions/session_handler.h"
#include "protocol/transactions/stream_host.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

class GrpcTransactionServiceServer::Service final : public wire::TransactionService::AsyncService,
                                                    public ExecutedService {
 public:
  Service(Runtime& runtime, TransactionService& service, OneShotSchedulerFactory one_shots,
          const RpcServiceOptions& options, std::shared_ptr<const AccessControl> access)
      : runtime_(runtime),
        services_(service, std::move(access)),
        one_shots_(std::move(one_shots)),
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
                             .services = services_,
                             .one_shots = one_shots_});
    request_session_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestSession(context, stream, queue, queue, tag);
    };
    request_one_shots_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestOneShots(context, stream, queue, queue, tag);
    };
    SessionHandler::RequestNextCall(*host_, request_session_);
    OneShotHandler::RequestNextCall(*host_, request_one_shots_);

    unary_host_.emplace(UnaryHost{.executor = executor, .writes = watchdog_, .calls = calls_});
    ServeMethod(*unary_host_, this, &ask_outcome_, &Service::RequestAskOutcome, &Service::AnswerOutcome);
    ServeMethod(*unary_host_, this, &open_table_, &Service::RequestOpenTable, &Service::AnswerOpenTable);
    ServeMethod(*unary_host_, this, &create_table_, &Service::RequestCreateTable, &Service::AnswerCreateTable);
    ServeMethod(*unary_host_, this, &drop_table_, &Service::RequestDropTable, &Service::AnswerDropTable);
    ServeMethod(*unary_host_, this, &list_tables_, &Service::RequestListTables, &Service::AnswerListTables);
    ServeMethod(*unary_host_, this, &get_status_, &Service::RequestGetStatus, &Service::AnswerStatus);
    ServeMethod(*unary_host_, this, &drop_caches_, &Service::RequestDropCaches, &Service::AnswerDropCaches);
  }

 private:
  using TableMethod = UnaryMethod<wire::TableRequest, wire::TableAnswer>;

  void AnswerOutcome(grpc::ServerContext& context, const wire::OutcomeRequest& request, wire::OutcomeAnswer* answer) {
    TransactionName name;
    Status valid = CheckProtocolVersion("the client", request.protocol_version());
    if (valid.ok()) valid = FromWire(request, &name);
    ToWire(valid.ok() ? ForClient(context)->get().AskOutcome(name, DeadlineOf(context)) : Result<OutcomeAnswer>(valid),
           answer);
  }

  void AnswerOpenTable(grpc::ServerContext& context, const wire::TableRequest& request, wire::TableAnswer* answer) {
    Answer(Check(request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const TableId table,
                            ForClient(context)->get().OpenTable(request.name(), DeadlineOf(context)));
      answer->set_table(table.value);
      return Status::Ok();
    });
  }

  void AnswerCreateTable(grpc::ServerContext& context, const wire::TableRequest& request, wire::TableAnswer* answer) {
    Answer(Check(request), answer, [&]() -> Status {
      TableOptions options;
      if (request.compression() != 0) {
        if (!IsKnownCompression(request.compression())) {
          return DEUT_ERROR(kInvalidArgument, "the unknown compression ", request.compression(), " of a table");
        }
        options.compression = Compression(request.compression());
      }
      DEUT_ASSIGN_OR_RETURN(const TableId table,
                            ForClient(context)->get().CreateTable(request.name(), options, DeadlineOf(context)));
      answer->set_table(table.value);
      return Status::Ok();
    });
  }

  void AnswerDropTable(grpc::ServerContext& context, const wire::TableRequest& request, wire::TableAnswer* answer) {
    Answer(Check(request), answer,
           [&] { return ForClient(context)->get().DropTable(request.name(), DeadlineOf(context)); });
  }

  void AnswerListTables(grpc::ServerContext& context, const wire::ServiceRequest& request,
                        wire::ListTablesAnswer* answer) {
    Answer(Check(request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables,
                            ForClient(context)->get().ListTables(DeadlineOf(context)));
      ToWire(tables, answer->mutable_tables());
      return Status::Ok();
    });
  }

  void AnswerStatus(grpc::ServerContext& context, const wire::ServiceRequest& request, wire::GetStatusAnswer* answer) {
    const Status valid = Check(request);
    ToWire(valid.ok() ? ForClient(context)->get().GetStatus(DeadlineOf(context)) : Result<ServiceStatus>(valid),
           answer);
  }

  void AnswerDropCaches(grpc::ServerContext& context, const wire::ServiceRequest& request,
                        wire::DropCachesAnswer* answer) {
    Answer(Check(request), answer, [&] { return ForClient(context)->get().DropCaches(DeadlineOf(context)); });
  }

  static Status Check(const wire::ServiceRequest& request) {
    return CheckProtocolVersion("the client", request.protocol_version());
  }
  static Status Check(const wire::TableRequest& request) {
    DEUT_RETURN_IF_ERROR(CheckProtocolVersion("the client", request.protocol_version()));
    return CheckTableName("name", request.name());
  }

  // Runs the call if the request is valid. Any error becomes the answer's status.
  template <typename Message, typename Call>
  static void Answer(const Status& valid, Message* answer, Call call) {
    const Status status = valid.ok() ? call() : valid;
    if (!status.ok()) ToWire(status, answer->mutable_status());
  }

  std::unique_ptr<PeerService> ForClient(const grpc::ServerContextBase& context) { return services_.For(context); }
  Deadline DeadlineOf(grpc::ServerContext& context) { return FromRpcTime(runtime_, context.raw_deadline()); }

  Runtime& runtime_;
  PeerServices services_;
  const OneShotSchedulerFactory one_shots_;
  StreamWatchdog watchdog_;
  StreamWatchdog idle_;
  StreamQuota streams_;
  StreamQuota calls_;
  std::optional<StreamHost> host_;
  SessionHandler::Request request_session_;
  OneShotHandler::Request request_one_shots_;
  std::optional<UnaryHost> unary_host_;
  UnaryMethod<wire::OutcomeRequest, wire::OutcomeAnswer> ask_outcome_;
  TableMethod open_table_, create_table_, drop_table_;
  UnaryMethod<wire::ServiceRequest, wire::ListTablesAnswer> list_tables_;
  UnaryMethod<wire::ServiceRequest, wire::GetStatusAnswer> get_status_;
  UnaryMethod<wire::ServiceRequest, wire::DropCachesAnswer> drop_caches_;
};

GrpcTransactionServiceServer::GrpcTransactionServiceServer(Runtime& runtime, TransactionService& service,
                                                           OneShotSchedulerFactory one_shots,
                                                           const RpcServiceOptions& options,
                                                           std::shared_ptr<const AccessControl> access)
    : service_(std::make_unique<Service>(runtime, service, std::move(one_shots), options, std::move(access))) {}

GrpcTransactionServiceServer::~GrpcTransactionServiceServer() = default;

grpc::Service* GrpcTransactionServiceServer::service() { return service_.get(); }

}  // namespace deut
