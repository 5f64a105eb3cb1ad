// DaemonTls: certificates and rights of a daemon, read at its start and again while it runs.
//   --tls_cert, --tls_key, --tls_ca   tls.h
//   --tls_clients, --tls_readers, --tls_admins (tcd), --tls_tc, --tls_admins (dcd), --tls_rights   authorization.h
// Reload takes up all files or none: after an error, which names the reason, the old ones stay. LookForChanges does the same once the files have
// changed and then stayed the same from one call to the next, so that it does not take up a certificate whose key is still being written.
// Thread-safety: Reload and LookForChanges by one thread; the rest from any.
#ifndef PROTOCOL_DAEMON_TLS_H_
#define PROTOCOL_DAEMON_TLS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "protocol/authorization.h"
#include "protocol/tls.h"
#include "protocol/tls_keys.h"

namespace deut {

struct DaemonTlsOptions {
  TlsOptions files = {};
  std::vector<Role> roles = {};  // those of this daemon
  std::vector<std::string> readers = {}, clients = {}, admins = {}, tcs = {};
  std::string rights_file = {};
  // --tls_allow of earlier versions, which gave every peer the same rights. It is refused, and the error names the flags that replace it.
  std::vector<std::string> allow = {};

  bool any() const {
    return files.any() || !readers.empty() || !clients.empty() || !admins.empty() || !tcs.empty() ||
           !rights_file.empty() || !allow.empty();
  }
};

class DaemonTls {
 public:
  // INVALID_ARGUMENT names the flag, or file and line.
  static Result<std::unique_ptr<DaemonTls>> Load(Runtime& runtime, const DaemonTlsOptions& options, Storage& storage);

  const std::shared_ptr<TlsKeys>& keys() const { return keys_; }
  const std::shared_ptr<AccessControl>& access() const { return access_; }

  Status Reload();
  // OK and *reloaded, if the files have changed and were taken up; OK if there was nothing to do. An error is returned once. What is wrong in a file
  // is looked at again when the file changes. A file that could not be read is tried again at every call.
  Status LookForChanges(bool* reloaded);

 private:
  DaemonTls(DaemonTlsOptions options, Storage& storage) : options_(std::move(options)), storage_(storage) {}
  Status TakeUp();
  // Of all files: changes when one of them does.
  std::string Signature() const;

  const DaemonTlsOptions options_;
  Storage& storage_;
  std::shared_ptr<TlsKeys> keys_;
  std::shared_ptr<AccessControl> access_;
  std::string taken_;  // of what was taken up, or refused for what it says, last
  std::string seen_;
  std::string reported_;  // the last error of LookForChanges
};

}  // namespace deut

#endif  // PROTOCOL_DAEMON_TLS_H_
