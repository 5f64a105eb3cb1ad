// DaemonTls: a daemon's certificates and rights, read at its start and again while it runs.
//   --tls_cert, --tls_key, --tls_ca   tls.h
//   --tls_clients, --tls_readers, --tls_admins (tcd), --tls_tc, --tls_admins (dcd), --tls_rights   authorization.h
// Reload replaces all files or none: after an error, which names the reason, the old ones stay in use. LookForChanges
// reloads once the files have changed and then stayed the same from one call to the next. So it does not load a
// certificate whose key is still being written.
// Thread-safety: one thread calls Reload and LookForChanges; any thread may call the rest.
#ifndef PROTOCOL_CONNECTIONS_DAEMON_TLS_H_
#define PROTOCOL_CONNECTIONS_DAEMON_TLS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "protocol/connections/authorization.h"
#include "protocol/connections/tls.h"
#include "protocol/connections/tls_keys.h"

namespace deut {

struct DaemonTlsOptions {
  TlsOptions files = {};
  std::vector<Role> roles = {};  // the roles that this daemon knows
  std::vector<std::string> readers = {}, clients = {}, admins = {}, tcs = {};
  std::string rights_file = {};
  // --tls_allow of earlier versions, which gave every peer the same rights. Load refuses it, and the error names the
  // flags that replace it.
  std::vector<std::string> allow = {};

  bool any() const {
    return files.any() || !readers.empty() || !clients.empty() || !admins.empty() || !tcs.empty() ||
           !rights_file.empty() || !allow.empty();
  }
};

class DaemonTls {
 public:
  // INVALID_ARGUMENT names the flag, or the file and its line.
  static Result<std::unique_ptr<DaemonTls>> Load(Runtime& runtime, const DaemonTlsOptions& options, Storage& storage);

  const std::shared_ptr<TlsKeys>& keys() const { return keys_; }
  const std::shared_ptr<AccessControl>& access() const { return access_; }

  Status Reload();
  // Reloads the files if they have changed. OK with *reloaded: they were replaced. OK without it: there was nothing to
  // do. Each error is returned once. A file with wrong content is read again when it changes. A file that could not be
  // read is read again at every call.
  Status LookForChanges(bool* reloaded);

 private:
  DaemonTls(DaemonTlsOptions options, Storage& storage) : options_(std::move(options)), storage_(storage) {}
  Status ReplaceAll();
  // Identifies the present state of all files; it changes when one of them does.
  std::string Signature() const;

  const DaemonTlsOptions options_;
  Storage& storage_;
  std::shared_ptr<TlsKeys> keys_;
  std::shared_ptr<AccessControl> access_;
  std::string loaded_signature_;  // the signature of the files last loaded, or refused for their content
  std::string seen_signature_;
  std::string reported_;  // the last error that LookForChanges returned
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_DAEMON_TLS_H_
