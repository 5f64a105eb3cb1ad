#include "protocol/connections/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/concat.h"
#include "common/io/read_file.h"

namespace deut {
namespace {

template <auto free_function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

Result<std::string> ReadPem(const char* flag, const std::string& path, Storage& storage) {
  auto text = ReadFile(storage, path);
  if (text.ok()) return text;
  return Status(text.status().code(), Concat(flag, " ", path, ": ", text.status().message()));
}

Bio Open(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

// Whether a line begins with a dash after the end of the last object. If so, the file was cut off within the first line
// of the next object.
bool EndsInABeginning(const std::string& pem) {
  const size_t end = pem.rfind("\n-----END ");
  const size_t closing = end == pem.npos ? end : pem.find("-----", end + 6);
  return closing != pem.npos && pem.find("\n-", closing) != pem.npos;
}

// Returns the first certificate, but checks all of them. gRPC silently uses the certificates before a damaged one, for
// example in a file that was cut off.
Result<Certificate> FirstCertificate(const char* flag, const std::string& path, const std::string& pem) {
  const Bio bio = Open(pem);
  Certificate first;
  for (int number = 1;; ++number) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    const bool at_end = next == nullptr && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (at_end && first == nullptr)
      return DEUT_ERROR(kInvalidArgument, flag, " ", path, ": holds no certificate in PEM form");
    if ((at_end && EndsInABeginning(pem)) || (next == nullptr && !at_end)) {
      return DEUT_ERROR(kInvalidArgument, flag, " ", path, ": certificate ", number,
                        " of the file is damaged or cut off; write the whole file anew");
    }
    if (at_end) return first;
    if (first == nullptr) first = std::move(next);
  }
}

// Never prompts at the terminal, so an encrypted key is refused.
int NoPassword(char*, int, int, void*) { return 0; }

Status CheckPem(const TlsOptions& options, const TlsIdentity& identity) {
  DEUT_ASSIGN_OR_RETURN(const Certificate certificate,
                        FirstCertificate("--tls_cert", options.cert_file, identity.cert_pem));
  DEUT_RETURN_IF_ERROR(FirstCertificate("--tls_ca", options.ca_file, identity.ca_pem).status());
  const Key key(PEM_read_bio_PrivateKey(Open(identity.key_pem).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return DEUT_ERROR(kInvalidArgument, "--tls_key ", options.key_file,
                      ": holds no private key in PEM form without a password");
  }
  const bool belong = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!belong) {
    return DEUT_ERROR(kInvalidArgument, "--tls_key ", options.key_file, " is not the key of --tls_cert ",
                      options.cert_file);
  }
  return Status::Ok();
}

}  // namespace

Result<std::shared_ptr<const TlsIdentity>> LoadTls(const TlsOptions& options, Storage& storage) {
  std::vector<std::string> missing;
  if (options.cert_file.empty()) missing.push_back("--tls_cert");
  if (options.key_file.empty()) missing.push_back("--tls_key");
  if (options.ca_file.empty()) missing.push_back("--tls_ca");
  const bool connects = !options.allow_flag.empty();
  if (connects && options.allow.empty()) missing.push_back(options.allow_flag);
  if (!missing.empty()) {
    return DEUT_ERROR(kInvalidArgument, "TLS needs all of --tls_cert, --tls_key",
                      connects ? ", --tls_ca and " : " and ", connects ? options.allow_flag : "--tls_ca",
                      "; missing: ", absl::StrJoin(missing, ", "));
  }
  auto identity = std::make_shared<TlsIdentity>();
  DEUT_ASSIGN_OR_RETURN(identity->cert_pem, ReadPem("--tls_cert", options.cert_file, storage));
  DEUT_ASSIGN_OR_RETURN(identity->key_pem, ReadPem("--tls_key", options.key_file, storage));
  DEUT_ASSIGN_OR_RETURN(identity->ca_pem, ReadPem("--tls_ca", options.ca_file, storage));
  identity->allow = options.allow;
  identity->allow_flag = options.allow_flag;
  DEUT_RETURN_IF_ERROR(CheckPem(options, *identity));
  return std::shared_ptr<const TlsIdentity>(std::move(identity));
}

Status CheckPeerNames(const TlsIdentity& identity, std::string_view peer, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::find(identity.allow.begin(), identity.allow.end(), name) != identity.allow.end()) return Status::Ok();
  }
  return DEUT_ERROR(kPermissionDenied, peer, "'s certificate carries the names [", absl::StrJoin(names, ", "),
                    "], and none of them is allowed (", identity.allow_flag, ")");
}

}  // namespace deut
