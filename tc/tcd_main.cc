// tcd: the transaction component as a daemon. Flags to options, parts together, serve until told to stop.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "protocol/endpoint.h"
#include "protocol/grpc_data_component.h"
#include "protocol/grpc_transaction_service_server.h"
#include "protocol/rpc_peer.h"
#include "protocol/rpc_server.h"
#include "protocol/tls.h"
#include "tc/server/tc_flags.h"
#include "tc/server/transaction_component.h"

namespace deut::tc {
namespace {

struct Options {
  std::string listen = "127.0.0.1:7701";
  std::string dc = "127.0.0.1:7702";
  std::string data_dir = "tc-data";
  IoKind io = IoKind::kAuto;
  TlsOptions tls;
  bool insecure = false;
  int dc_streams = 2;
  int max_threads = 1024;
  TransactionComponentOptions component;
};

FlagSet MakeFlags(Options* options) {
  FlagSet flags(
      "tcd", "The transaction component: concurrency control, redo log and commit; talks to clients and to one dcd.");
  flags.Add("listen", &options->listen, "where clients connect: HOST:PORT or unix:/PATH");
  flags.Add("dc", &options->dc, "where the data component listens: HOST:PORT or unix:/PATH");
  flags.Add("data_dir", &options->data_dir, "folder of the redo log; this daemon's alone");
  flags.AddEnum("io", &options->io, {{"auto", IoKind::kAuto}, {"uring", IoKind::kUring}, {"posix", IoKind::kPosix}},
                "how files are read and written: io_uring, pread/pwrite, or the better one that the kernel allows");
  flags.Add("tls_cert", &options->tls.cert_file, "this daemon's certificate, PEM");
  flags.Add("tls_key", &options->tls.key_file, "its private key, PEM");
  flags.Add("tls_ca", &options->tls.ca_file, "the authority of clients' and the dcd's certificates, PEM");
  flags.Add("tls_allow", &options->tls.allow, "names of which a peer's certificate must have one");
  flags.Add("insecure", &options->insecure, "allow addresses that other machines can reach without TLS");
  flags.Add("dc_streams", &options->dc_streams, "connections for point reads and short scans to the data component", 1,
            64);
  flags.Add("max_threads", &options->max_threads, "client sessions and calls served at once", 16, 65536);
  AddTcFlags(&flags, &options->component);
  return flags;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "tcd: %s\n", status.ToString().c_str());
  return 1;
}

// SIGTERM and SIGINT are blocked in every thread and taken here.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

Status Serve(Options& options, const sigset_t& stop_signals) {
  Runtime& runtime = RealRuntime();
  DEUT_ASSIGN_OR_RETURN(const Address listen, Address::Parse("--listen", options.listen));
  DEUT_ASSIGN_OR_RETURN(const Address dc_address, Address::Parse("--dc", options.dc));
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage, NewSystemStorage(options.io, runtime));
  std::shared_ptr<const TlsIdentity> tls;
  if (options.tls.any()) {
    DEUT_ASSIGN_OR_RETURN(tls, LoadTls(options.tls, *storage));
  }
  DEUT_RETURN_IF_ERROR(CheckTransport("--listen", listen, tls != nullptr, options.insecure));
  DEUT_ASSIGN_OR_RETURN(std::shared_ptr<const RpcPeer> peer,
                        RpcPeer::Create("the data component", "--dc", dc_address, tls, options.insecure));
  GrpcDataComponent dc(runtime, peer, GrpcDataComponentOptions{.data_streams = options.dc_streams});

  options.component.log.directory = options.data_dir;
  options.component.dc_link.dc_name = peer->name();
  options.component.on_refused = [](const Status& status) { LogError("serving no longer: ", status.ToString()); };
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<TransactionComponent> component,
                        TransactionComponent::Open(options.component, runtime, *storage, dc));
  GrpcTransactionServiceServer service(runtime, *component);
  RpcServerOptions server_options;
  server_options.listen = listen;
  server_options.tls = tls;
  server_options.insecure = options.insecure;
  server_options.max_threads = options.max_threads;
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                        RpcServer::Start(runtime, server_options, {service.service()}));
  LogInfo("tcd listening on ", server->address().ToString(), ", data in ", options.data_dir, ", io ", storage->name(),
          ", ", peer->name());

  std::atomic<bool> stopping{false};
  const std::unique_ptr<Thread> health = runtime.StartThread("tcd-health", [&] {
    while (!stopping.load()) {
      const Status serving = component->WaitServing(runtime.Now() + milliseconds(200));
      server->SetServing(serving.ok());
      if (serving.ok()) {
        LogInfo("tcd serving");
        return;
      }
    }
  });
  int signal = 0;
  sigwait(&stop_signals, &signal);
  LogInfo("tcd stopping");
  stopping.store(true);
  health->Join();
  server->SetServing(false);
  server->Shutdown(runtime.Now() + seconds(2));
  component->Stop();
  return Status::Ok();
}

int Main(int argc, char** argv) {
  const sigset_t stop_signals = BlockStopSignals();
  Options options;
  FlagSet flags = MakeFlags(&options);
  Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(files.status());
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(operands.status());
  if (flags.help_requested()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (!operands->empty())
    return Fail(DEUT_ERROR(kInvalidArgument, "tcd takes flags only, not ", Quoted(operands->front())));
  const Status served = Serve(options, stop_signals);
  return served.ok() ? 0 : Fail(served);
}

}  // namespace
}  // namespace deut::tc

int main(int argc, char** argv) { return deut::tc::Main(argc, argv); }
