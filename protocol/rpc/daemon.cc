#include "protocol/rpc/daemon.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/observe/log_file.h"
#include "common/runtime/huge_pages.h"
#include "common/runtime/memory_limit.h"
#include "common/runtime/process_memory.h"
#include "common/runtime/thread_budget.h"
#include "grpc/support/log.h"
#include "protocol/connections/endpoint.h"
#include "protocol/rpc/health_watch.h"
#include "protocol/rpc/rpc_log.h"

namespace deut {
namespace {

// Signals that the main thread takes. Their default action ends a process without a line in its log.
sigset_t AwaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

// Blocks the awaited signals in this thread, and so in every thread that is started later; the main thread takes them. The ignored signals become
// errors of the call that raised them: a write to a pipe without a reader, and a write beyond the limit of a file's size.
void PrepareSignals() {
  const sigset_t signals = AwaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

// The least number of threads for requests with which a daemon starts.
constexpr int kMinThreads = 16;

// The time between two looks at the files of certificates and rights, and between two returns of memory that was freed
// long ago. A change is taken up at the second look that finds it.
constexpr Duration kHousekeeping = seconds(2);

// Waits for a signal. Returns -1 at `until`, or if a debugger interrupts the wait.
int AwaitSignal(Runtime& runtime, const sigset_t& signals, MonotonicTime until) {
  const int64_t left = std::max<int64_t>(0, nanoseconds(until - runtime.Now()).count());
  const timespec wait{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  return sigtimedwait(&signals, nullptr, &wait);
}

// `terminal`: the standard error with which the process was started, or -1 if the log goes there.
int Fail(const std::string& name, const Status& status, DaemonExit exit = DaemonExit::kStartRefused,
         int terminal = -1) {
  const std::string line = Concat(name, ": ", status.ToString(), "\n");
  for (const int out : {STDERR_FILENO, terminal}) {
    if (out >= 0) (void)!write(out, line.data(), line.size());
  }
  return static_cast<int>(exit);
}

ConnectionLimits ConnectionsOf(const DaemonOptions& options, const DescriptorBudget& descriptors) {
  const auto per_peer = static_cast<uint64_t>(options.max_connections_per_peer);
  return {.max_connections = descriptors.connections,
          .max_connections_per_peer = per_peer != 0 ? per_peer : std::max<uint64_t>(descriptors.connections / 2, 1)};
}

uint64_t MemoryForPeers(const DaemonOptions& options) {
  return MemoryBesideBudget(ReadMemoryLimit().bytes, options.memory_bytes);
}

Status Start(const std::string& name, DaemonOptions& options, const std::function<Status(DaemonContext&)>& body,
             DaemonExit* exit) {
  Runtime& runtime = RealRuntime();
  DEUT_RETURN_IF_ERROR(ProcessBudget::Check(options.memory_bytes));
  DEUT_ASSIGN_OR_RETURN(const uint64_t limit, RaiseDescriptorLimit());
  DEUT_ASSIGN_OR_RETURN(const DescriptorBudget descriptors,
                        PlanDescriptors(limit, options.descriptors, static_cast<uint64_t>(options.max_connections),
                                        DefaultMaxConnections(MemoryForPeers(options), options.tls.any())));
  DEUT_ASSIGN_OR_RETURN(const ThreadBudget threads, PlanThreads(ReadThreadLimit(), options.max_threads, kMinThreads));
  if (threads.requests < options.max_threads) {
    LogWarning(name, " has ", threads.requests, " threads for requests instead of --max_threads=", options.max_threads,
               ": ", threads.lowered_by, " leaves no more beside ", kThreadReserve, " in reserve");
    options.max_threads = threads.requests;
  }
  DEUT_ASSIGN_OR_RETURN(const Address listen, Address::Parse("--listen", options.listen));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, NewSystemStorage(options.io, runtime));
  std::unique_ptr<DaemonTls> tls;
  if (options.tls.any()) {
    DEUT_ASSIGN_OR_RETURN(tls, DaemonTls::Load(runtime, options.tls, *storage));
  }
  DEUT_RETURN_IF_ERROR(CheckTransport("--listen", listen, tls != nullptr, options.insecure));
  DaemonContext context(name, options, listen, runtime, std::move(storage), std::move(tls), descriptors);
  Status status = body(context);
  Status ended = context.ended();
  if (ended.ok()) return status;
  *exit = ended == ErrorCode::kFenced ? DaemonExit::kFenced : DaemonExit::kRefused;
  return ended;
}

}  // namespace

void AddDaemonFlags(FlagSet* flags, DaemonOptions* options) {
  flags->Add("listen", &options->listen, "where others connect: HOST:PORT or unix:/PATH");
  flags->Add("data_dir", &options->data_dir, "folder of all its files; this process's alone");
  flags->AddEnum("io", &options->io, {{"auto", IoKind::kAuto}, {"uring", IoKind::kUring}, {"posix", IoKind::kPosix}},
                 "how files are read and written: io_uring, pread/pwrite, or the better one that the kernel allows");
  DaemonTlsOptions& tls = options->tls;
  flags->Add("tls_cert", &tls.files.cert_file, "this process's certificate, PEM; taken up again when it changes");
  flags->Add("tls_key", &tls.files.key_file, "its private key, PEM");
  flags->Add("tls_ca", &tls.files.ca_file, "the authority of peers' certificates, PEM");
  flags->Add("tls_admins", &tls.admins, "names of certificates whose holders administer this daemon");
  flags->Add("tls_rights", &tls.rights_file,
             "file of more names with roles, a line each: NAME ROLE [TABLE_PREFIX...]; taken up again when it changes");
  flags->Add("tls_allow", &tls.allow, "of earlier versions; refused, as each peer has a flag of its role now");
  flags->Add("insecure", &options->insecure, "allow addresses that other machines can reach without TLS");
  flags->Add("log_file", &options->log_file,
             "file that the log is appended to; SIGHUP opens it anew; empty = standard error");
  flags->Add(
      "max_connections", &options->max_connections,
      "connections at once, those beyond are closed; 0 = as many as open files and an eighth of the memory allow, "
      "16384 at most",
      0, 1 << 20);
  flags->Add("max_connections_per_peer", &options->max_connections_per_peer,
             "connections at once from one IPv4 address, or from one /64 of IPv6; 0 = half of --max_connections", 0,
             1 << 20);
  flags->Add("handshake_timeout", &options->handshake_timeout,
             "a connection that has not completed its TLS handshake and HTTP/2 settings by then is closed");
  flags->Add(
      "max_threads", &options->max_threads,
      "threads for the peers' requests: of tcd, requests in work at once, of which one client may have three quarters; "
      "of dcd, streams and calls; of both, one in sixteen is kept for single calls",
      kMinThreads, 65536);
  flags->Add("max_streams_per_peer", &options->max_streams_per_peer,
             "open streams of one peer: of a name in certificates, or without TLS of an IPv4 address or a /64 of IPv6; "
             "0 = three quarters of all: of --max_streams (tcd), of --max_threads (dcd)",
             0, 1 << 20);
  flags->AddBytes("memory", &options->memory_bytes,
                  "resident memory of this process, all parts together, which share it by need; other flags set the "
                  "limit of a single part; 0 = no limit",
                  "half of the machine's memory, or of the control group's limit");
  flags->Add(
      "huge_pages", &options->huge_pages,
      "memory in transparent huge pages, which is faster: the process executes its program once more to have them");
}

DaemonContext::DaemonContext(std::string name, const DaemonOptions& options, const Address& listen, Runtime& runtime,
                             std::unique_ptr<Storage> storage, std::unique_ptr<DaemonTls> tls,
                             const DescriptorBudget& descriptors)
    : name_(std::move(name)),
      options_(options),
      runtime_(runtime),
      storage_(std::move(storage)),
      tls_(std::move(tls)),
      descriptors_(descriptors),
      memory_(ProcessBudget::Open(runtime, options.memory_bytes)),
      server_(std::make_unique<RpcServer>(runtime,
                                          RpcServerOptions{.listen = listen,
                                                           .tls = this->tls(),
                                                           .access = access(),
                                                           .insecure = options.insecure,
                                                           .max_threads = options.max_threads,
                                                           .memory_bytes = PeerMemoryBytes(MemoryForPeers(options)),
                                                           .connections = ConnectionsOf(options, descriptors),
                                                           .handshake_timeout = options.handshake_timeout})),
      mutex_(runtime) {}

RpcServiceOptions DaemonContext::service_options() const {
  return {.threads = options_.max_threads, .streams_per_peer = static_cast<size_t>(options_.max_streams_per_peer)};
}

void DaemonContext::End(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = why;
  }
  // The signal stays pending until Serve waits for it.
  kill(getpid(), SIGTERM);
}

Status DaemonContext::ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

void DaemonContext::Hangup() {
  const Status reopened = options_.log_file.empty() ? Status::Ok() : RedirectLogTo(options_.log_file);
  if (!reopened.ok()) LogError(name_, ": SIGHUP: the log goes on where it was: ", reopened.ToString());
  const Status reloaded = tls_ == nullptr ? Status::Ok() : tls_->Reload();
  LogInfo(name_, ": SIGHUP: ",
          options_.log_file.empty() ? "the log is standard error, "
          : reopened.ok()           ? "the log was opened anew, "
                                    : "the log stays as it is, ",
          tls_ == nullptr ? "there are no certificates"
          : reloaded.ok() ? "certificates and rights were read again"
                          : "certificates and rights stay as they were");
  if (!reloaded.ok()) LogError(name_, ": certificates and rights are refused: ", reloaded.ToString());
}

void DaemonContext::LookForChanges() {
  bool reloaded = false;
  if (const Status status = tls_->LookForChanges(&reloaded); !status.ok()) {
    LogError(name_, ": changed certificates or rights are refused, the old ones stay: ", status.ToString());
  } else if (reloaded) {
    LogInfo(name_, ": certificates and rights have changed and were read again");
  }
}

Status DaemonContext::Serve(const std::vector<grpc::Service*>& services, std::function<Status(Deadline)> ready,
                            const std::string& details, const std::function<void()>& stop) {
  RpcServer& server = *server_;
  DEUT_RETURN_IF_ERROR(server.Start(services));
  const ConnectionLimits connections = ConnectionsOf(options_, descriptors_);
  LogInfo(name_, " listens on ", server.address().ToString(), tls_ != nullptr ? " with mutual TLS" : " without TLS",
          ", at most ", connections.max_connections, " connections, ", connections.max_connections_per_peer,
          " from one address (limit of open files: ", descriptors_.limit, "), data in ", options_.data_dir, ", io ",
          storage_->name(), ", ", memory_ == nullptr ? "no memory budget" : memory_->Describe(),
          details.empty() ? "" : ", ", details);
  auto health = std::make_unique<HealthWatch>(runtime_, name_, std::move(ready),
                                              [&server](bool serving) { server.SetServing(serving); });
  const sigset_t signals = AwaitedSignals();
  int signal = 0;
  MonotonicTime next_look = runtime_.Now() + kHousekeeping;
  uint64_t losses = 0;
  for (;;) {
    signal = AwaitSignal(runtime_, signals, next_look);
    if (signal == SIGTERM || signal == SIGINT) break;
    // Decided by the time, not by the result of the wait, because signals may come more often than the looks.
    if (runtime_.Now() >= next_look) {
      if (tls_ != nullptr) LookForChanges();
      ReturnMemoryFreedLongAgo();
      next_look = runtime_.Now() + kHousekeeping;
    }
    if (signal == SIGHUP) {
      Hangup();
    } else if (signal > 0) {
      LogInfo(name_, " ignores signal ", signal, signal == SIGUSR1 ? " (SIGUSR1)" : " (SIGUSR2)");
    }
    if (options_.streams_keep_rights && tls_ != nullptr && access()->losses() != losses) {
      losses = access()->losses();
      LogInfo(name_,
              ": rights were taken away, so all connections are closed; those who still have some connect again");
      server.CloseConnections();
    }
  }
  if (const Status why = ended(); !why.ok()) {
    LogError(name_, " ends, it can never serve again: ", why.ToString());
  } else {
    LogInfo(name_, " stops (signal ", signal, ")");
  }
  health.reset();
  server.SetServing(false);
  if (stop) stop();
  server.Shutdown(runtime_.Now() + seconds(2));
  return ended();
}

int RunDaemon(const std::string& name, FlagSet& flags, int argc, char** argv, DaemonOptions& options,
              const std::function<Status(DaemonContext&)>& body) {
  gpr_set_log_function(LogFromRpc);
  PrepareSignals();
  const Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(name, files.status());
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(name, operands.status());
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return 0;
  }
  if (!operands->empty())
    return Fail(name, DEUT_ERROR(kInvalidArgument, name, " takes flags only, not ", Quoted(operands->front())));
  if (options.huge_pages) {
    const std::string why = UseHugePages(argv);
    if (!why.empty()) LogInfo(name, " has no huge pages: ", why);
  }
  int terminal = -1;
  if (!options.log_file.empty()) {
    terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (const Status redirected = RedirectLogTo(options.log_file); !redirected.ok()) return Fail(name, redirected);
  }
  DaemonExit exit = DaemonExit::kStartRefused;
  const Status served = Start(name, options, body, &exit);
  return served.ok() ? static_cast<int>(DaemonExit::kClean) : Fail(name, served, exit, terminal);
}

}  // namespace deut
