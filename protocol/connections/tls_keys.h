// TlsKeys: certificate, key and authority of this process for gRPC's credentials, and their replacement while it runs.
// Handshakes that begin later than kEffectiveWithin after a replacement use the new ones. Open connections stay as they
// are. (DaemonTls checks the files first: it refuses wrong ones, and the old ones stay.)
//
// How: gRPC 1.51 replaces certificates only for credentials that read files. It reads once a second, first the
// certificate, then the key. A pair that does not belong together leaves it without any. So TlsKeys gives it in-memory
// files (memfd) with checked content. Each replacement puts a new file in the place of the old one under the same
// number, in one step, with another modification time. gRPC compares that time before and after it reads, so it never
// uses the key of one with the certificate of another. Certificate and key are in the same file.
// Thread-safety: any thread may call any method. Ownership: credentials keep the provider alive; this object outlives
// them.
#ifndef PROTOCOL_CONNECTIONS_TLS_KEYS_H_
#define PROTOCOL_CONNECTIONS_TLS_KEYS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "protocol/connections/tls.h"

namespace deut {

class TlsKeys {
 public:
  static constexpr Duration kEffectiveWithin = seconds(2);

  // IO_ERROR if the system has no in-memory files, or /proc is not mounted.
  static Result<std::shared_ptr<TlsKeys>> Create(Runtime& runtime, std::shared_ptr<const TlsIdentity> identity);
  // LoadTls and Create in one.
  static Result<std::shared_ptr<TlsKeys>> Load(Runtime& runtime, const TlsOptions& options, Storage& storage);
  ~TlsKeys();
  TlsKeys(const TlsKeys&) = delete;
  TlsKeys& operator=(const TlsKeys&) = delete;

  // The identity last loaded or replaced. Its allow-list never changes.
  std::shared_ptr<const TlsIdentity> identity() const;
  // REQUIRES: `identity` has been checked, as by LoadTls. After an error the old one stays as a whole.
  // RESOURCE_EXHAUSTED: no descriptor is free now.
  Status Replace(std::shared_ptr<const TlsIdentity> identity);

  const std::shared_ptr<grpc::experimental::CertificateProviderInterface>& provider() const { return provider_; }

 private:
  TlsKeys(Runtime& runtime, std::shared_ptr<const TlsIdentity> identity)
      : mutex_(runtime), identity_(std::move(identity)) {}

  // Makes a new in-memory file.
  Result<Descriptor> Prepare(const std::string& content) const DEUT_REQUIRES(mutex_);
  // Puts the file at *place, under the number of the present one. Never fails.
  static void Publish(Descriptor file, Descriptor* place);

  mutable Mutex mutex_;
  std::shared_ptr<const TlsIdentity> identity_ DEUT_GUARDED_BY(mutex_);
  int64_t generation_ DEUT_GUARDED_BY(mutex_) = 0;
  Descriptor identity_file_ DEUT_GUARDED_BY(mutex_);
  Descriptor roots_file_ DEUT_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_TLS_KEYS_H_
