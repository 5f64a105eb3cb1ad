// tcd: the transaction component as a daemon. The only place where its flags are read.
#include <memory>
#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/observe/log.h"
#include "common/runtime/before_wait.h"
#include "protocol/daemon.h"
#include "protocol/endpoint.h"
#include "protocol/grpc_data_component.h"
#include "protocol/grpc_transaction_service_server.h"
#include "protocol/rpc_peer.h"
#include "tc/server/tc_flags.h"
#include "tc/server/transaction_component.h"

namespace deut::tc {
namespace {

DaemonOptions Defaults() {
  DaemonOptions options;
  options.listen = "127.0.0.1:7701";
  options.data_dir = "tc-data";
  return options;
}

// The DC is in another process, perhaps on another host.
TransactionComponentOptions ComponentDefaults() {
  TransactionComponentOptions options;
  options.read_cache_bytes = uint64_t{256} << 20;
  // A batch costs several changes of threads in both processes, whatever it holds. Nobody waits for it to be applied, but for the memory that it
  // frees; it is less than Options::fold_after, so commits are collected without being folded before.
  options.dc_link.linger = milliseconds(4);
  return options;
}

struct Options {
  DaemonOptions daemon = Defaults();
  std::string dc = "127.0.0.1:7702";
  int dc_streams = 2;
  TransactionComponentOptions component = ComponentDefaults();
};

Status Serve(Options& options, DaemonContext& context) {
  DEUT_ASSIGN_OR_RETURN(const Address address, Address::Parse("--dc", options.dc));
  DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<const RpcPeer> peer,
                        RpcPeer::Create("the data component", "--dc", address, context.tls(), options.daemon.insecure));
  // What waits in the component tells those who run one-shot transactions.
  TellingRuntime runtime(context.runtime());
  GrpcDataComponent dc(context.runtime(), peer, GrpcDataComponentOptions{.data_streams = options.dc_streams});
  options.component.log.directory = options.daemon.data_dir;
  options.component.dc_link.dc_name = peer->name();
  // A fenced or refused TC stays up and tells its clients why.
  options.component.on_refused = [](const Status& status) { LogError("tcd serves no longer: ", status.ToString()); };
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<TransactionComponent> component,
                        TransactionComponent::Open(options.component, runtime, context.storage(), dc));
  GrpcTransactionServiceServer service(context.runtime(), *component);
  DEUT_RETURN_IF_ERROR(context.Serve(
      {service.service()}, [&](Deadline deadline) { return component->WaitServing(deadline); }, peer->name(),
      [&] { component->BeginStop(); }));
  component->Stop();
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags(
      "tcd", "The transaction component: concurrency control, redo log and commit; talks to clients and to one dcd.");
  AddDaemonFlags(&flags, &options.daemon);
  flags.Add("dc", &options.dc, "where the data component listens: HOST:PORT or unix:/PATH");
  flags.Add("dc_streams", &options.dc_streams, "connections for point reads and short scans to the data component", 1,
            64);
  AddTcFlags(&flags, &options.component);
  return RunDaemon("tcd", flags, argc, argv, options.daemon,
                   [&](DaemonContext& context) { return Serve(options, context); });
}

}  // namespace
}  // namespace deut::tc

int main(int argc, char** argv) { return deut::tc::Main(argc, argv); }
