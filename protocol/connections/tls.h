// TLS of both links. It is always mutual: each side shows a certificate from the same authority. The names in a
// certificate say who its holder is: URIs and DNS names, or the common name if it has no alternative names. The host
// does not matter, so addresses may change.
//   --tls_cert FILE   this process's certificate (and intermediate ones), PEM
//   --tls_key FILE    its private key, PEM
//   --tls_ca FILE     the authority that peers' certificates must come from, PEM
// A client accepts a server if its certificate has one of the allowed names: --tls_allow A,B of programs, --tls_dc A,B
// of tcd. It requests the first of them (SNI). The rights of clients at a server are in authorization.h.
// Files are read at the start, and again when they have changed or the daemon gets SIGHUP (tls_keys.h).
// Thread-safety: constant after loading.
#ifndef PROTOCOL_CONNECTIONS_TLS_H_
#define PROTOCOL_CONNECTIONS_TLS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut {

struct TlsOptions {
  std::string cert_file;
  std::string key_file;
  std::string ca_file;
  std::vector<std::string> allow;
  // The flag of `allow`, for messages. Empty: this process is no client, and needs no `allow`.
  std::string allow_flag = "--tls_allow";

  bool any() const { return !cert_file.empty() || !key_file.empty() || !ca_file.empty() || !allow.empty(); }
};

struct TlsIdentity {
  std::string cert_pem;
  std::string key_pem;
  std::string ca_pem;
  std::vector<std::string> allow;  // names of the server that this process connects to
  std::string allow_flag = "--tls_allow";
};

// INVALID_ARGUMENT if only some flags are given, a file is no PEM, or key and certificate do not belong together. If a
// file cannot be read: the storage's error, with flag and file.
Result<std::shared_ptr<const TlsIdentity>> LoadTls(const TlsOptions& options, Storage& storage);

// OK if one of the names is in the allow-list, else PERMISSION_DENIED with the names. `peer` names the other side in
// the message.
Status CheckPeerNames(const TlsIdentity& identity, std::string_view peer, const std::vector<std::string>& names);

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_TLS_H_
