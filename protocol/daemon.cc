#include "protocol/daemon.h"

#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/runtime/huge_pages.h"
#include "grpc/support/log.h"
#include "protocol/endpoint.h"
#include "protocol/health_watch.h"
#include "protocol/rpc_polling.h"

namespace deut {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// gRPC's messages (errors, unless GRPC_VERBOSITY asks for more) as lines of our log.
void LogFromRpc(gpr_log_func_args* args) {
  const std::string_view message = args->message;
  // RpcServer::Start tells it better.
  if (message.find("No address added out of total") != std::string_view::npos) return;
  std::string_view file = args->file;
  file.remove_prefix(file.find_last_of('/') + 1);
  LogLine(args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo,
          Concat("gRPC: ", message, " (", file, ":", args->line, ")"));
}

int Fail(const std::string& name, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), status.ToString().c_str());
  return 1;
}

Status Start(const std::string& name, const DaemonOptions& options, const std::function<Status(DaemonContext&)>& body) {
  Runtime& runtime = RealRuntime();
  DEUT_ASSIGN_OR_RETURN(const Address listen, Address::Parse("--listen", options.listen));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, NewSystemStorage(options.io, runtime));
  std::shared_ptr<const TlsIdentity> tls;
  if (options.tls.any()) {
    DEUT_ASSIGN_OR_RETURN(tls, LoadTls(options.tls, *storage));
  }
  DEUT_RETURN_IF_ERROR(CheckTransport("--listen", listen, tls != nullptr, options.insecure));
  DaemonContext context(name, options, runtime, std::move(storage), std::move(tls));
  return body(context);
}

}  // namespace

void AddDaemonFlags(FlagSet* flags, DaemonOptions* options) {
  flags->Add("listen", &options->listen, "where others connect: HOST:PORT or unix:/PATH");
  flags->Add("data_dir", &options->data_dir, "folder of all its files; this process's alone");
  flags->AddEnum("io", &options->io, {{"auto", IoKind::kAuto}, {"uring", IoKind::kUring}, {"posix", IoKind::kPosix}},
                 "how files are read and written: io_uring, pread/pwrite, or the better one that the kernel allows");
  flags->Add("tls_cert", &options->tls.cert_file, "this process's certificate, PEM");
  flags->Add("tls_key", &options->tls.key_file, "its private key, PEM");
  flags->Add("tls_ca", &options->tls.ca_file, "the authority of peers' certificates, PEM");
  flags->Add("tls_allow", &options->tls.allow, "names of which a peer's certificate must have one");
  flags->Add("insecure", &options->insecure, "allow addresses that other machines can reach without TLS");
  flags->Add("max_threads", &options->max_threads, "streams and calls served at once", 16, 65536);
  flags->Add(
      "huge_pages", &options->huge_pages,
      "memory in transparent huge pages, which is faster: the process executes its program once more to have them");
}

DaemonContext::DaemonContext(std::string name, const DaemonOptions& options, Runtime& runtime,
                             std::unique_ptr<Storage> storage, std::shared_ptr<const TlsIdentity> tls)
    : name_(std::move(name)),
      options_(options),
      runtime_(runtime),
      storage_(std::move(storage)),
      tls_(std::move(tls)) {}

Status DaemonContext::Serve(const std::vector<grpc::Service*>& services, std::function<Status(Deadline)> ready,
                            const std::string& details, const std::function<void()>& stop) {
  DEUT_ASSIGN_OR_RETURN(const Address listen, Address::Parse("--listen", options_.listen));
  const RpcServerOptions server_options{
      .listen = listen, .tls = tls_, .insecure = options_.insecure, .max_threads = options_.max_threads};
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server, RpcServer::Start(runtime_, server_options, services));
  LogInfo(name_, " listens on ", server->address().ToString(), tls_ != nullptr ? " with mutual TLS" : " without TLS",
          ", data in ", options_.data_dir, ", io ", storage_->name(), details.empty() ? "" : ", ", details);
  auto health = std::make_unique<HealthWatch>(runtime_, name_, std::move(ready),
                                              [&server](bool serving) { server->SetServing(serving); });
  const sigset_t signals = StopSignals();
  int signal = 0;
  sigwait(&signals, &signal);
  LogInfo(name_, " stops (signal ", signal, ")");
  health.reset();
  server->SetServing(false);
  if (stop) stop();
  server->Shutdown(runtime_.Now() + seconds(2));
  return Status::Ok();
}

int RunDaemon(const std::string& name, FlagSet& flags, int argc, char** argv, const DaemonOptions& options,
              const std::function<Status(DaemonContext&)>& body) {
  PollByStream();
  gpr_set_log_function(LogFromRpc);
  // Blocked here, so in every thread that is started later; taken by sigwait.
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(name, files.status());
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(name, operands.status());
  if (flags.help_requested()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (!operands->empty())
    return Fail(name, DEUT_ERROR(kInvalidArgument, name, " takes flags only, not ", Quoted(operands->front())));
  if (options.huge_pages) {
    const std::string why = UseHugePages(argv);
    if (!why.empty()) LogInfo(name, " has no huge pages: ", why);
  }
  const Status served = Start(name, options, body);
  return served.ok() ? 0 : Fail(name, served);
}

}  // namespace deut
