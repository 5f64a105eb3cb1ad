// Measures point reads through a real connection, against a component that answers at once: the cost of the wire alone.
// The argument is the number of requests of one Submit.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/runtime/runtime.h"
#include "protocol/data/grpc_data_component.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"

namespace deut {
namespace {

// Finds the same value for every key.
class FixedDataComponent final : public DataComponent {
 public:
  void Submit(absl::Span<DataRequest* const> requests) override {
    for (DataRequest* request : requests) {
      request->answer.Append(request->key, value_, Version{Timestamp(1), 1});
      request->Finish(RealRuntime());
    }
  }
  void Abandon(DataRequest*) override {}
  Result<HelloAnswer> Hello(const HelloRequest&, Deadline) override { return None(); }
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender&, const ScanSpec&, Deadline) override { return None(); }
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender&, ApplyLogListener*, Deadline) override {
    return None();
  }
  Result<std::vector<std::string>> Partition(const Sender&, TableId, uint32_t, Deadline) override { return None(); }
  Result<std::vector<TableInfo>> Tables(const Sender&, Deadline) override { return None(); }
  Result<std::vector<CounterValue>> Counters(Deadline) override { return None(); }

 private:
  static Status None() { return Status(ErrorCode::kInternal, "not measured"); }
  const std::string value_ = std::string(100, 'v');
};

struct Server {
  explicit Server(const std::string& listen) {
    RpcServerOptions options;
    options.listen = *Address::Parse("--listen", listen);
    server = std::move(RpcServer::Start(RealRuntime(), options, {service.service()})).value();
    peer = std::move(RpcPeer::Create("the server", "--dc", server->address(), nullptr, false)).value();
    client = std::make_unique<GrpcDataComponent>(RealRuntime(), peer, GrpcDataComponentOptions());
  }
  FixedDataComponent component;
  GrpcDataComponentService service{RealRuntime(), component, RpcServiceOptions()};
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<const RpcPeer> peer;
  std::unique_ptr<GrpcDataComponent> client;
};

void Reads(benchmark::State& state, Server& server) {
  Runtime& runtime = RealRuntime();
  const auto batch = static_cast<size_t>(state.range(0));
  std::vector<DataRequest> requests(batch);
  std::vector<DataRequest*> pointers;
  for (DataRequest& request : requests) {
    request.key = "user0000000000000001";
    pointers.push_back(&request);
  }
  for (auto _ : state) {
    for (DataRequest& request : requests) request.done.Reset();
    server.client->Submit(pointers);
    for (DataRequest& request : requests) {
      request.done.Wait(runtime, kNoDeadline);
      DEUT_CHECK(request.status.ok());
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_ReadsTcp(benchmark::State& state) {
  static Server server("127.0.0.1:0");
  Reads(state, server);
}
BENCHMARK(BM_ReadsTcp)->Arg(1)->Arg(16)->Arg(256)->UseRealTime();
BENCHMARK(BM_ReadsTcp)->Arg(1)->Threads(4)->Threads(16)->UseRealTime();

void BM_ReadsUnix(benchmark::State& state) {
  static Server server("unix:/tmp/deut-bench.sock");
  Reads(state, server);
}
BENCHMARK(BM_ReadsUnix)->Arg(1)->Arg(16)->Arg(256)->UseRealTime();
BENCHMARK(BM_ReadsUnix)->Arg(1)->Threads(4)->Threads(16)->UseRealTime();

}  // namespace
}  // namespace deut
