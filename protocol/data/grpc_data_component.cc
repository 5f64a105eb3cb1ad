#include "protocol/data/grpc_data_component.h"

#include <algorithm>
#include <utility>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "protocol/data/grpc_apply_log.h"
#include "protocol/data/grpc_data_stream.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/rpc/rpc_stream.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

// The client side of a bulk scan.
class GrpcScan final : public ScanStream {
 public:
  GrpcScan(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop, const ScanSpec& spec)
      : runtime_(runtime), spec_(spec), stream_(runtime, std::move(peer), loop) {}

  Status Open(wire::DataComponent::Stub& stub, const Sender& sender, Deadline deadline) {
    DEUT_RETURN_IF_ERROR(
        stream_.Start([&stub](grpc::ClientContext* context,
                              grpc::CompletionQueue* queue) { return stub.PrepareAsyncScan(context, queue); },
                      deadline));
    wire::ScanRequest request;
    ToWire(sender, spec_, request.mutable_open());
    DEUT_RETURN_IF_ERROR(stream_.Write(request, deadline));
    wire::ScanAnswer answer;
    DEUT_RETURN_IF_ERROR(stream_.Read(&answer, deadline));
    return FromWire(answer.status());
  }

  Status Grant(std::string_view bound, uint64_t bytes) override {
    wire::ScanRequest request;
    request.mutable_grant()->set_bound(bound.data(), bound.size());
    request.mutable_grant()->set_bytes(bytes);
    // A grant has only a few bytes. If the previous one has not left by the deadline, the connection is stuck.
    return stream_.WriteUnlessEnded(request, runtime_.Now() + seconds(10));
  }

  bool ReadsAhead() const override { return true; }

  Status Next(ScanBatch* batch, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(stream_.Read(&answer_, deadline));
    Status status = FromWire(&answer_, spec_, batch);
    if (!status.ok()) stream_.Abandon(status);
    return status;
  }

 private:
  Runtime& runtime_;
  const ScanSpec spec_;
  RpcStream<wire::ScanRequest, wire::ScanAnswer> stream_;
  wire::ScanAnswer answer_;
};

}  // namespace

struct GrpcDataComponent::Impl {
  Impl(Runtime& own_runtime, std::shared_ptr<const RpcPeer> own_peer, const GrpcDataComponentOptions& options)
      : runtime(own_runtime),
        own_events(options.events == nullptr ? std::make_unique<RpcEventThread>(runtime) : nullptr),
        events(options.events == nullptr ? *own_events : *options.events),
        peer(std::move(own_peer)),
        bulk_channel(peer->NewChannel(RpcTraffic::kBulk)),
        bulk(wire::DataComponent::NewStub(bulk_channel)),
        log_channel(peer->NewChannel(RpcTraffic::kBulk)),
        log(wire::DataComponent::NewStub(log_channel)) {
    for (int i = 0; i < std::max(1, options.data_streams); ++i) {
      data.push_back(std::make_unique<GrpcDataStream>(runtime, peer, events));
    }
  }

  GrpcDataStream& OwnStream() {
    static thread_local char own;
    const uint64_t address = reinterpret_cast<uintptr_t>(&own);
    return *data[((address * 0x9e3779b97f4a7c15ull) >> 32) % data.size()];
  }

  // Runs one control call.
  template <typename Call>
  Status Control(Deadline deadline, Call call) {
    AwaitConnection(runtime, *bulk_channel, deadline);
    return CallRpc(runtime, *peer, *bulk_channel, deadline, call);
  }

  Runtime& runtime;
  const std::unique_ptr<RpcEventThread> own_events;
  RpcEventLoop& events;
  const std::shared_ptr<const RpcPeer> peer;
  const std::shared_ptr<grpc::Channel> bulk_channel;
  const std::unique_ptr<wire::DataComponent::Stub> bulk;
  const std::shared_ptr<grpc::Channel> log_channel;
  const std::unique_ptr<wire::DataComponent::Stub> log;
  std::vector<std::unique_ptr<GrpcDataStream>> data;
};

GrpcDataComponent::GrpcDataComponent(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                     GrpcDataComponentOptions options)
    : impl_(std::make_unique<Impl>(runtime, std::move(peer), options)) {}

GrpcDataComponent::~GrpcDataComponent() = default;

Result<HelloAnswer> GrpcDataComponent::Hello(const HelloRequest& request, Deadline deadline) {
  wire::HelloRequest message;
  ToWire(request, &message);
  wire::HelloAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(
      deadline, [&](grpc::ClientContext* context) { return impl_->bulk->Hello(context, message, &answer); }));
  return FromWire(answer);
}

void GrpcDataComponent::Submit(absl::Span<DataRequest* const> requests) { impl_->OwnStream().Submit(requests); }

void GrpcDataComponent::Abandon(DataRequest* request) {
  for (const auto& stream : impl_->data) stream->Abandon(request);
}

Result<std::unique_ptr<ScanStream>> GrpcDataComponent::OpenScan(const Sender& sender, const ScanSpec& spec,
                                                                Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckFigure("batch_bytes", spec.batch_bytes, 1, kMaxScanBytes));
  AwaitConnection(impl_->runtime, *impl_->bulk_channel, deadline);
  auto scan = std::make_unique<GrpcScan>(impl_->runtime, impl_->peer, impl_->events, spec);
  DEUT_RETURN_IF_ERROR(scan->Open(*impl_->bulk, sender, deadline));
  return std::unique_ptr<ScanStream>(std::move(scan));
}

Result<std::unique_ptr<ApplyLogStream>> GrpcDataComponent::OpenApplyLog(const Sender& sender,
                                                                        ApplyLogListener* listener, Deadline deadline) {
  AwaitConnection(impl_->runtime, *impl_->log_channel, deadline);
  return GrpcApplyLog::Open(impl_->runtime, impl_->peer, impl_->events, *impl_->log, sender, listener, deadline);
}

Result<std::vector<std::string>> GrpcDataComponent::Partition(const Sender& sender, TableId table, uint32_t n,
                                                              Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckFigure("pieces", n, 1, kMaxPartitions));
  wire::PartitionRequest message;
  ToWire(sender, message.mutable_sender());
  message.set_table(table.value);
  message.set_pieces(n);
  wire::PartitionAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(
      deadline, [&](grpc::ClientContext* context) { return impl_->bulk->Partition(context, message, &answer); }));
  return FromWire(answer, n);
}

Result<std::vector<TableInfo>> GrpcDataComponent::Tables(const Sender& sender, Deadline deadline) {
  wire::TablesRequest message;
  ToWire(sender, message.mutable_sender());
  wire::TablesAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(
      deadline, [&](grpc::ClientContext* context) { return impl_->bulk->Tables(context, message, &answer); }));
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  std::vector<TableInfo> tables;
  DEUT_RETURN_IF_ERROR(FromWire(answer.tables(), &tables));
  return tables;
}

Result<std::vector<CounterValue>> GrpcDataComponent::Counters(Deadline deadline) {
  wire::CountersAnswer answer;
  DEUT_RETURN_IF_ERROR(impl_->Control(deadline, [&](grpc::ClientContext* context) {
    return impl_->bulk->Counters(context, wire::CountersRequest(), &answer);
  }));
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  std::vector<CounterValue> counters;
  FromWire(answer.counters(), &counters);
  return counters;
}

}  // namespace deut
