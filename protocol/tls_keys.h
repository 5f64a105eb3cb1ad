// TlsKeys: certificate, key and authority of this process as gRPC's credentials take them, and their exchange while it runs.
// Handshakes that begin later than kTakenUpWithin after an exchange use the new ones; connections that are open stay as they are.
// (DaemonTls checks them first: what is wrong is refused, and the old ones stay.)
//
// How: gRPC 1.51 exchanges certificates only for credentials that read files. It does so once a second, certificate and key one after the other, and
// is left without any by a pair that does not belong together. So it is given files in memory (memfd) that hold what was checked. Each exchange puts
// a new file in the place of the old one under the same number, in one step, with another time of modification: gRPC compares that before and after
// its reading, and so never uses the key of one with the certificate of another. Certificate and key are in the same file.
// Thread-safety: all methods from any thread. Ownership: credentials keep the provider and with it what it needs; the object outlives them.
#ifndef PROTOCOL_TLS_KEYS_H_
#define PROTOCOL_TLS_KEYS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "protocol/tls.h"

namespace deut {

class TlsKeys {
 public:
  static constexpr Duration kTakenUpWithin = seconds(2);

  // IO_ERROR if the system has no files in memory, or /proc is not mounted.
  static Result<std::shared_ptr<TlsKeys>> Create(Runtime& runtime, std::shared_ptr<const TlsIdentity> identity);
  // LoadTls and Create.
  static Result<std::shared_ptr<TlsKeys>> Load(Runtime& runtime, const TlsOptions& options, Storage& storage);
  ~TlsKeys();
  TlsKeys(const TlsKeys&) = delete;
  TlsKeys& operator=(const TlsKeys&) = delete;

  // What was loaded or replaced last. Its allow-list never changes.
  std::shared_ptr<const TlsIdentity> identity() const;
  // `identity` has been checked, as by LoadTls. After an error the old one stays as a whole. RESOURCE_EXHAUSTED: no descriptor is free now.
  Status Replace(std::shared_ptr<const TlsIdentity> identity);

  const std::shared_ptr<grpc::experimental::CertificateProviderInterface>& provider() const { return provider_; }

 private:
  TlsKeys(Runtime& runtime, std::shared_ptr<const TlsIdentity> identity)
      : mutex_(runtime), identity_(std::move(identity)) {}

  // A new file in memory.
  Result<Descriptor> Prepare(const std::string& content) const DEUT_REQUIRES(mutex_);
  // Puts it at *place, under the number of the one that is there. Never fails.
  static void Publish(Descriptor file, Descriptor* place);

  mutable Mutex mutex_;
  std::shared_ptr<const TlsIdentity> identity_ DEUT_GUARDED_BY(mutex_);
  int64_t generation_ DEUT_GUARDED_BY(mutex_) = 0;
  Descriptor identity_file_ DEUT_GUARDED_BY(mutex_);
  Descriptor roots_file_ DEUT_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

}  // namespace deut

#endif  // PROTOCOL_TLS_KEYS_H_
