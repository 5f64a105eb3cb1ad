#include "protocol/testing/test_authority.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "common/base/check.h"

namespace deut::testing {
namespace {

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(bytes));
  BIO_free(bio);
  return text;
}

std::string CertificatePem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  DEUT_CHECK(PEM_write_bio_X509(bio, certificate) == 1);
  return Text(bio);
}

std::string KeyPem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  DEUT_CHECK(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Text(bio);
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  DEUT_CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

X509* NewCertificate(const std::string& common_name, EVP_PKEY* key, long serial) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate, key);
  return certificate;
}

}  // namespace

struct TestAuthority::Impl {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = nullptr;
  long serial = 1;
};

TestAuthority::TestAuthority(const std::string& name) : impl_(std::make_unique<Impl>()) {
  impl_->certificate = NewCertificate(name, impl_->key, impl_->serial++);
  X509_set_issuer_name(impl_->certificate, X509_get_subject_name(impl_->certificate));
  AddExtension(impl_->certificate, impl_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(impl_->certificate, impl_->certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  DEUT_CHECK(X509_sign(impl_->certificate, impl_->key, EVP_sha256()) != 0);
}

TestAuthority::~TestAuthority() {
  X509_free(impl_->certificate);
  EVP_PKEY_free(impl_->key);
}

std::string TestAuthority::ca_pem() const { return CertificatePem(impl_->certificate); }

TestAuthority::Issued TestAuthority::Issue(const std::string& common_name, const std::vector<std::string>& dns_names) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = NewCertificate(common_name, key, impl_->serial++);
  X509_set_issuer_name(certificate, X509_get_subject_name(impl_->certificate));
  std::string names;
  for (const std::string& name : dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  if (!names.empty()) AddExtension(certificate, impl_->certificate, NID_subject_alt_name, names);
  DEUT_CHECK(X509_sign(certificate, impl_->key, EVP_sha256()) != 0);
  Issued issued{.cert_pem = CertificatePem(certificate), .key_pem = KeyPem(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

std::shared_ptr<const TlsIdentity> TestAuthority::Identity(const std::string& common_name,
                                                           const std::vector<std::string>& dns_names,
                                                           const std::vector<std::string>& allow) {
  Issued issued = Issue(common_name, dns_names);
  return std::make_shared<TlsIdentity>(
      TlsIdentity{.cert_pem = issued.cert_pem, .key_pem = issued.key_pem, .ca_pem = ca_pem(), .allow = allow});
}

}  // namespace deut::testing
