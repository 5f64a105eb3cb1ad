// tcd: the transaction component as a daemon. Its flags are read here only.
#include <memory>
#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/runtime/blocking_hook.h"
#include "protocol/connections/endpoint.h"
#include "protocol/data/grpc_data_component.h"
#include "protocol/rpc/daemon.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/service_options.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "tc/server/one_shot_workers.h"
#include "tc/server/tc_flags.h"
#include "tc/server/transaction_component.h"

namespace deut::tc {
namespace {

DaemonOptions Defaults() {
  DaemonOptions options;
  options.listen = "127.0.0.1:7701";
  options.data_dir = "tc-data";
  // Segments of the redo log in use, spares, and files of spilled runs.
  options.descriptors.min_files = 64;
  options.descriptors.max_files = 1024;
  options.tls.roles = {Role::kReader, Role::kClient, Role::kAdmin};
  options.tls.files.allow_flag = "--tls_dc";
  return options;
}

// The DC is in another process, perhaps on another host.
TransactionComponentOptions ComponentDefaults() {
  TransactionComponentOptions options;
  // A batch costs several thread switches in both processes, whatever its size. No thread waits for it to be applied; it only delays the release of
  // memory. The time is less than Collector::Options::fold_after, so commits are collected without being folded before.
  options.dc_link.linger = milliseconds(4);
  return options;
}

struct Options {
  DaemonOptions daemon = Defaults();
  std::string dc = "127.0.0.1:7702";
  int dc_streams = 2;
  int max_streams = static_cast<int>(RpcServiceOptions().max_streams);
  Duration idle_session = RpcServiceOptions().idle_session;
  TransactionComponentOptions component = ComponentDefaults();
};

Status Serve(Options& options, DaemonContext& context) {
  DEUT_ASSIGN_OR_RETURN(const Address address, Address::Parse("--dc", options.dc));
  DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<const RpcPeer> peer,
                        RpcPeer::Create("the data component", "--dc", address, context.tls(), options.daemon.insecure));
  // A thread that waits in the component, or for the DC, tells its BlockingHook first, so that another worker goes on with the one-shot transactions.
  BlockingHookRuntime runtime(context.runtime());
  GrpcDataComponent dc(runtime, peer,
                       GrpcDataComponentOptions{.data_streams = options.dc_streams, .events = &context.events()});
  options.component.log.directory = options.daemon.data_dir;
  options.component.process_budget = context.memory();
  options.component.dc_link.dc_name = peer->name();
  // A TC that is fenced or permanently refused ends: a supervisor and its clients then look for the one that serves.
  options.component.on_refused = [&context](const Status& status) { context.End(status); };
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<TransactionComponent> component,
                        TransactionComponent::Open(options.component, runtime, context.storage(), dc));
  RpcServiceOptions service_options = context.service_options();
  service_options.max_streams = static_cast<size_t>(options.max_streams);
  service_options.idle_session = options.idle_session;
  GrpcTransactionServiceServer service(context.runtime(), *component, NewOneShotWorkers, service_options,
                                       context.access());
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
  DaemonTlsOptions& tls = options.daemon.tls;
  flags.Add("tls_dc", &tls.files.allow, "names of which the data component's certificate must have one");
  flags.Add("tls_clients", &tls.clients, "names of certificates whose holders read and write all tables");
  flags.Add("tls_readers", &tls.readers, "names of certificates whose holders read all tables");
  flags.Add(
      "max_streams", &options.max_streams,
      "open sessions and streams of one-shot transactions of all clients; they hold a thread only while they work", 1,
      1 << 20);
  flags.Add("idle_session_timeout", &options.idle_session,
            "a session, or a stream of one-shot transactions, whose client asks for nothing for so long is ended; the "
            "client opens another when it needs one");
  flags.Add("dc_streams", &options.dc_streams, "connections for point reads and short scans to the data component", 1,
            64);
  AddTcFlags(&flags, &options.component);
  return RunDaemon("tcd", flags, argc, argv, options.daemon,
                   [&](DaemonContext& context) { return Serve(options, context); });
}

}  // namespace
}  // namespace deut::tc

int main(int argc, char** argv) { return deut::tc::Main(argc, argv); }
