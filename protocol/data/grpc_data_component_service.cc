#include "protocol/data/grpc_data_component_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/connections/stream_quota.h"
#include "protocol/data/apply_log_handler.h"
#include "protocol/data/data_component_host.h"
#include "protocol/data/data_stream_handler.h"
#include "protocol/data/scan_handler.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/rpc/rpc_unary_call.h"
#include "protocol/rpc/stream_watchdog.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class GrpcDataComponentService::Service final : public wire::DataComponent::AsyncService, public ExecutedService {
 public:
  Service(Runtime& runtime, DataComponent& component, const RpcServiceOptions& options)
      : runtime_(runtime),
        component_(component),
        options_(options),
        watchdog_(runtime, options.stuck_peer),
        streams_(runtime, options.streams()),
        calls_(runtime, options.calls()) {}

  void Serve(RpcExecutor& executor) override {
    host_.emplace(DataComponentHost{.runtime = runtime_,
                                    .executor = executor,
                                    .component = component_,
                                    .writes = watchdog_,
                                    .streams = streams_,
                                    .data_requests = options_.data_requests});
    request_data_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestData(context, stream, queue, queue, tag);
    };
    request_scan_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestScan(context, stream, queue, queue, tag);
    };
    request_apply_log_ = [this](auto* context, auto* stream, void* tag) {
      grpc::ServerCompletionQueue* const queue = host_->executor.queue();
      RequestApplyLog(context, stream, queue, queue, tag);
    };
    DataStreamHandler::RequestNextCall(*host_, request_data_);
    ScanHandler::RequestNextCall(*host_, request_scan_);
    ApplyLogHandler::RequestNextCall(*host_, request_apply_log_);

    unary_host_.emplace(UnaryHost{.executor = executor, .writes = watchdog_, .calls = calls_});
    ServeMethod(*unary_host_, this, &hello_, &Service::RequestHello, &Service::AnswerHello);
    ServeMethod(*unary_host_, this, &partition_, &Service::RequestPartition, &Service::AnswerPartition);
    ServeMethod(*unary_host_, this, &tables_, &Service::RequestTables, &Service::AnswerTables);
    ServeMethod(*unary_host_, this, &counters_, &Service::RequestCounters, &Service::AnswerCounters);
  }

 private:
  void AnswerHello(grpc::ServerContext& context, const wire::HelloRequest& message, wire::HelloAnswer* answer) {
    HelloRequest request;
    Status valid = FromWire(message, &request);
    ToWire(valid.ok() ? component_.Hello(request, DeadlineOf(context)) : Result<HelloAnswer>(valid), answer);
  }

  void AnswerPartition(grpc::ServerContext& context, const wire::PartitionRequest& message,
                       wire::PartitionAnswer* answer) {
    Sender sender;
    TableId table;
    uint32_t pieces = 0;
    Status valid = FromWire(message, &sender, &table, &pieces);
    ToWire(valid.ok() ? component_.Partition(sender, table, pieces, DeadlineOf(context))
                      : Result<std::vector<std::string>>(valid),
           answer);
  }

  void AnswerTables(grpc::ServerContext& context, const wire::TablesRequest& message, wire::TablesAnswer* answer) {
    auto tables = component_.Tables(FromWire(message.sender()), DeadlineOf(context));
    if (tables.ok()) {
      ToWire(*tables, answer->mutable_tables());
    } else {
      ToWire(tables.status(), answer->mutable_status());
    }
  }

  void AnswerCounters(grpc::ServerContext& context, const wire::CountersRequest&, wire::CountersAnswer* answer) {
    auto counters = component_.Counters(DeadlineOf(context));
    if (counters.ok()) {
      ToWire(*counters, answer->mutable_counters());
    } else {
      ToWire(counters.status(), answer->mutable_status());
    }
  }

  Deadline DeadlineOf(grpc::ServerContext& context) { return FromRpcTime(runtime_, context.raw_deadline()); }

  Runtime& runtime_;
  DataComponent& component_;
  const RpcServiceOptions options_;
  StreamWatchdog watchdog_;
  StreamQuota streams_;
  StreamQuota calls_;
  std::optional<DataComponentHost> host_;
  DataStreamHandler::Request request_data_;
  ScanHandler::Request request_scan_;
  ApplyLogHandler::Request request_apply_log_;
  std::optional<UnaryHost> unary_host_;
  UnaryMethod<wire::HelloRequest, wire::HelloAnswer> hello_;
  UnaryMethod<wire::PartitionRequest, wire::PartitionAnswer> partition_;
  UnaryMethod<wire::TablesRequest, wire::TablesAnswer> tables_;
  UnaryMethod<wire::CountersRequest, wire::CountersAnswer> counters_;
};

GrpcDataComponentService::GrpcDataComponentService(Runtime& runtime, DataComponent& component,
                                                   const RpcServiceOptions& options)
    : service_(std::make_unique<Service>(runtime, component, options)) {}

GrpcDataComponentService::~GrpcDataComponentService() = default;

grpc::Service* GrpcDataComponentService::service() { return service_.get(); }

}  // namespace deut
