// TLS of both links. It is always mutual: each side shows a certificate of the same authority and checks that a name of the other's
// certificate (subject alternative names, common name) is on its allow-list. What a certificate says about host names does not
// matter; who it names does, so addresses may change. A client asks its server (SNI) for the first name of --tls_allow.
//   --tls_cert FILE   this process's certificate (and intermediate ones), PEM
//   --tls_key FILE    its private key, PEM
//   --tls_ca FILE     the authority that peers' certificates must come from, PEM
//   --tls_allow A,B   names; a peer needs one of them
// Files are read once, at start; a changed certificate needs a restart.
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

  bool any() const { return !cert_file.empty() || !key_file.empty() || !ca_file.empty() || !allow.empty(); }
};

struct TlsIdentity {
  std::string cert_pem;
  std::string key_pem;
  std::string ca_pem;
  std::vector<std::string> allow;
};

// INVALID_ARGUMENT if only some flags are given, a file is no PEM, or key and certificate do not belong together; the storage's error,
// with flag and file, if a file cannot be read.
Result<std::shared_ptr<const TlsIdentity>> LoadTls(const TlsOptions& options, Storage& storage);

// OK if one of the names is on the list, else PERMISSION_DENIED that shows the names. `peer` says who, for the message.
Status CheckPeerNames(const TlsIdentity& identity, std::string_view peer, const std::vector<std::string>& names);

}  // namespace deut

#endif  // PROTOCOL_TLS_H_
