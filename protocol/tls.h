// TLS of both links. It is always mutual: each side shows a certificate of the same authority. The names of a certificate (URIs and DNS names, or the
// common name of one that has no alternative names) say who it is; where a host is does not matter, so addresses may change.
//   --tls_cert FILE   this process's certificate (and intermediate ones), PEM
//   --tls_key FILE    its private key, PEM
//   --tls_ca FILE     the authority that peers' certificates must come from, PEM
// A client needs one of the names it allows in its server's certificate, and asks it (SNI) for the first one: --tls_allow A,B of programs,
// --tls_dc A,B of tcd. What a server allows its clients is in authorization.h.
// Files are read at start, and again when they have changed or the daemon gets SIGHUP (tls_keys.h).
// Thread-safety: constant after loading.
#ifndef PROTOCOL_TLS_H_
#define PROTOCOL_TLS_H_

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
  // The flag of `allow`, for messages; empty: this process is no client of anybody, and needs none.
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

// INVALID_ARGUMENT if only some flags are given, a file is no PEM, or key and certificate do not belong together; the storage's error,
// with flag and file, if a file cannot be read.
Result<std::shared_ptr<const TlsIdentity>> LoadTls(const TlsOptions& options, Storage& storage);

// OK if one of the names is on the list, else PERMISSION_DENIED that shows the names. `peer` says who, for the message.
Status CheckPeerNames(const TlsIdentity& identity, std::string_view peer, const std::vector<std::string>& names);

}  // namespace deut

#endif  // PROTOCOL_TLS_H_
