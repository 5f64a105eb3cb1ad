// What both daemons have in common: their flags for address, files and TLS, the start with precise refusals, stopping on SIGTERM and SIGINT.
//
//   DaemonOptions options;  FlagSet flags(...);  AddDaemonFlags(&flags, &options);  ...
//   return RunDaemon("dcd", flags, argc, argv, options, [&](DaemonContext& context) { ...; return context.Serve(...); });
//
// Thread-safety: called from main, before any thread is started.
#ifndef PROTOCOL_DAEMON_H_
#define PROTOCOL_DAEMON_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "protocol/rpc_server.h"
#include "protocol/tls.h"

namespace deut {

struct DaemonOptions {
  std::string listen;
  std::string data_dir;
  IoKind io = IoKind::kAuto;
  TlsOptions tls = {};
  bool insecure = false;
  int max_threads = 1024;
  bool huge_pages = true;
};

// Binds all of them; the defaults shown are what the fields hold.
void AddDaemonFlags(FlagSet* flags, DaemonOptions* options);

// A started process: its storage and certificate.
class DaemonContext {
 public:
  DaemonContext(std::string name, const DaemonOptions& options, Runtime& runtime, std::unique_ptr<Storage> storage,
                std::shared_ptr<const TlsIdentity> tls);

  Runtime& runtime() { return runtime_; }
  Storage& storage() { return *storage_; }
  const std::shared_ptr<const TlsIdentity>& tls() const { return tls_; }

  // Listens, tells so, and returns when the process is told to stop, with the server shut down. `ready` is asked, on a thread of its
  // own, with a deadline, again and again: health says SERVING while it answers OK (health_watch.h). `details` goes to the start-up line. `stop`
  // (may be null) is called when the process is told to stop, before the server waits for its handlers: it makes them come back.
  Status Serve(const std::vector<grpc::Service*>& services, std::function<Status(Deadline)> ready,
               const std::string& details, const std::function<void()>& stop = {});

 private:
  const std::string name_;
  const DaemonOptions& options_;
  Runtime& runtime_;
  const std::unique_ptr<Storage> storage_;
  const std::shared_ptr<const TlsIdentity> tls_;
};

// Parses, sees to huge pages (which may execute the program anew), checks, runs `body`. The exit status: 0 after a clean stop or --help, 1 with the
// reason on stderr.
int RunDaemon(const std::string& name, FlagSet& flags, int argc, char** argv, const DaemonOptions& options,
              const std::function<Status(DaemonContext&)>& body);

}  // namespace deut

#endif  // PROTOCOL_DAEMON_H_
