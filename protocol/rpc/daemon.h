// The common part of both daemons: their flags for address, files and TLS, the start with precise refusals, signals and exit statuses.
// README.md lists the signals and statuses for operators ("Signals and exit statuses").
//
//   DaemonOptions options;  FlagSet flags(...);  AddDaemonFlags(&flags, &options);  ...
//   return RunDaemon("dcd", flags, argc, argv, options, [&](DaemonContext& context) { ...; return context.Serve(...); });
//
// Thread-safety: called from main, before any thread is started.
#ifndef PROTOCOL_RPC_DAEMON_H_
#define PROTOCOL_RPC_DAEMON_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/descriptor_budget.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/process_budget.h"
#include "grpcpp/impl/service_type.h"
#include "protocol/connections/daemon_tls.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/service_options.h"

namespace deut {

// The exit statuses. They are part of the interface to supervisors, so a number is never reused. 3 is that of FailStop (common/base/check.h).
enum class DaemonExit : int {
  kClean = 0,         // stopped by a signal, or --help
  kStartRefused = 1,  // flags, files or address are refused, or the component could not recover
  kFenced = 4,        // another instance has taken over; a new start of this one would take over from that one
  kRefused = 5,       // the component can never serve with its present files and peers, so a new start cannot help
};

struct DaemonOptions {
  std::string listen;
  std::string log_file;  // empty: standard error
  std::string data_dir;
  IoKind io = IoKind::kAuto;
  DaemonTlsOptions tls = {};
  bool insecure = false;
  int max_threads = RpcServiceOptions().threads;
  // The most open streams of one peer; 0: three quarters of max_threads.
  int max_streams_per_peer = 0;
  // The most connections at once; 0: as many as open files and memory allow (DefaultMaxConnections).
  int max_connections = 0;
  // The most connections from one address (connection_table.h); 0: half of all.
  int max_connections_per_peer = 0;
  Duration handshake_timeout = seconds(10);
  // Streams are checked against rights only when they begin. So all connections are closed when a right is taken away. Not a flag.
  bool streams_keep_rights = false;
  // The descriptors that a program needs for its data. Not a flag.
  DescriptorNeeds descriptors = {};
  bool huge_pages = true;
  // The memory budget of the process; 0: none. Without a value: ProcessBudget::Open.
  std::optional<uint64_t> memory_bytes;
};

// Adds the flags of all fields. The fields' present values are shown as defaults.
void AddDaemonFlags(FlagSet* flags, DaemonOptions* options);

// A started process: its storage and certificate.
class DaemonContext {
 public:
  DaemonContext(std::string name, const DaemonOptions& options, const Address& listen, Runtime& runtime,
                std::unique_ptr<Storage> storage, std::unique_ptr<DaemonTls> tls, const DescriptorBudget& descriptors);

  Runtime& runtime() { return runtime_; }
  Storage& storage() { return *storage_; }
  // Null without TLS.
  std::shared_ptr<TlsKeys> tls() const { return tls_ == nullptr ? nullptr : tls_->keys(); }
  std::shared_ptr<const AccessControl> access() const { return tls_ == nullptr ? nullptr : tls_->access(); }
  // The memory budget of this process; null: there is none.
  ProcessBudget* memory() const { return memory_.get(); }
  // The number of data files that this process may keep open.
  uint64_t files() const { return descriptors_.files; }
  // The bounds on the resources that the daemon's service holds for its peers.
  RpcServiceOptions service_options() const;
  // The loop that runs the events of this process's streams to other processes.
  RpcEventLoop& events() { return *server_->executor(); }

  // Ends Serve with this error, now or as soon as Serve is called. The first error counts. The process then exits with kFenced or kRefused.
  // Any thread may call this; it never blocks.
  void End(const Status& why);
  // The error of End; OK if it was not called.
  Status ended() const;

  // Listens and logs the start-up line, which contains `details`. Returns after a signal to stop or a call of End, with the server shut down.
  // A separate thread calls `ready` repeatedly, with a deadline; the health service answers SERVING while it returns OK (health_watch.h).
  // `stop` (may be null) is called before the server waits for its handlers, and makes them return.
  Status Serve(const std::vector<grpc::Service*>& services, std::function<Status(Deadline)> ready,
               const std::string& details, const std::function<void()>& stop = {});

 private:
  void Hangup();
  void LookForChanges();

  const std::string name_;
  const DaemonOptions& options_;
  Runtime& runtime_;
  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<DaemonTls> tls_;
  const DescriptorBudget descriptors_;
  const std::unique_ptr<ProcessBudget> memory_;
  const std::unique_ptr<RpcServer> server_;  // started by Serve
  mutable Mutex mutex_;
  Status ended_ DEUT_GUARDED_BY(mutex_);
};

// Parses the flags, sets up huge pages (which may execute the program anew), checks the options, and runs `body`. Returns a DaemonExit. Its reason is
// in the log, and on the standard error with which the process was started.
// Lowers the threads of `options` below the flags' number if the system does not let the process have that many (thread_budget.h).
int RunDaemon(const std::string& name, FlagSet& flags, int argc, char** argv, DaemonOptions& options,
              const std::function<Status(DaemonContext&)>& body);

}  // namespace deut

#endif  // PROTOCOL_RPC_DAEMON_H_
