#include "protocol/grpc_data_component_service.h"

#include <utility>

#include "protocol/apply_log_handler.h"
#include "protocol/convert_data_component.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_stream_handler.h"
#include "protocol/rpc_status.h"
#include "protocol/scan_handler.h"
#include "protocol/stream_quota.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class GrpcDataComponentService::Service final : public wire::DataComponent::Service {
 public:
  Service(Runtime& runtime, DataComponent& component, const RpcServiceOptions& options)
      : runtime_(runtime),
        component_(component),
        options_(options),
        watchdog_(runtime, options.stuck_peer),
        streams_(runtime, options.streams()),
        calls_(runtime, options.calls()) {}

  grpc::Status Hello(grpc::ServerContext* context, const wire::HelloRequest* message,
                     wire::HelloAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    HelloRequest request;
    Status valid = FromWire(*message, &request);
    ToWire(valid.ok() ? component_.Hello(request, DeadlineOf(context)) : Result<HelloAnswer>(valid), answer);
    return grpc::Status::OK;
  }

  grpc::Status Data(grpc::ServerContext* context, DataStreamHandler::Stream* stream) override {
    StreamQuota::Place place;
    if (const Status entered = streams_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    return DataStreamHandler(runtime_, component_, watchdog_, options_.data_requests, context, stream).Run();
  }

  grpc::Status Scan(grpc::ServerContext* context, ScanHandler::Stream* stream) override {
    StreamQuota::Place place;
    if (const Status entered = streams_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    return ScanHandler(runtime_, component_, watchdog_, context, stream).Run();
  }

  grpc::Status ApplyLog(grpc::ServerContext* context, ApplyLogHandler::Stream* stream) override {
    StreamQuota::Place place;
    if (const Status entered = streams_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    return ApplyLogHandler(runtime_, component_, watchdog_, context, stream).Run();
  }

  grpc::Status Partition(grpc::ServerContext* context, const wire::PartitionRequest* message,
                         wire::PartitionAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    Sender sender;
    TableId table;
    uint32_t pieces = 0;
    Status valid = FromWire(*message, &sender, &table, &pieces);
    ToWire(valid.ok() ? component_.Partition(sender, table, pieces, DeadlineOf(context))
                      : Result<std::vector<std::string>>(valid),
           answer);
    return grpc::Status::OK;
  }

  grpc::Status Checkpoint(grpc::ServerContext* context, const wire::CheckpointRequest* message,
                          wire::CheckpointAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    auto stable = component_.Checkpoint(FromWire(message->sender()), FromWire(message->up_to()), DeadlineOf(context));
    if (stable.ok()) {
      ToWire(*stable, answer->mutable_stable());
    } else {
      ToWire(stable.status(), answer->mutable_status());
    }
    return grpc::Status::OK;
  }

  grpc::Status Tables(grpc::ServerContext* context, const wire::TablesRequest* message,
                      wire::TablesAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    auto tables = component_.Tables(FromWire(message->sender()), DeadlineOf(context));
    if (tables.ok()) {
      ToWire(*tables, answer->mutable_tables());
    } else {
      ToWire(tables.status(), answer->mutable_status());
    }
    return grpc::Status::OK;
  }

  grpc::Status Counters(grpc::ServerContext* context, const wire::CountersRequest*,
                        wire::CountersAnswer* answer) override {
    StreamQuota::Place place;
    if (const Status entered = calls_.Enter(*context, &place); !entered.ok()) return ToRpcStatus(entered);
    auto counters = component_.Counters(DeadlineOf(context));
    if (counters.ok()) {
      ToWire(*counters, answer->mutable_counters());
    } else {
      ToWire(counters.status(), answer->mutable_status());
    }
    return grpc::Status::OK;
  }

 private:
  Deadline DeadlineOf(grpc::ServerContext* context) { return FromRpcTime(runtime_, context->raw_deadline()); }

  Runtime& runtime_;
  DataComponent& component_;
  const RpcServiceOptions options_;
  StreamWatchdog watchdog_;
  StreamQuota streams_;
  StreamQuota calls_;
};

GrpcDataComponentService::GrpcDataComponentService(Runtime& runtime, DataComponent& component,
                                                   const RpcServiceOptions& options)
    : service_(std::make_unique<Service>(runtime, component, options)) {}

GrpcDataComponentService::~GrpcDataComponentService() = default;

grpc::Service* GrpcDataComponentService::service() { return service_.get(); }

}  // namespace deut
