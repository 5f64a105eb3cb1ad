#include "protocol/tls_keys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/concat.h"

namespace deut {
namespace {

// How often gRPC looks.
constexpr unsigned kRefreshSeconds = 1;

Status SystemError(const char* what) {
  return DEUT_ERROR(kIoError, "certificates in memory: ", what, ": ", strerror(errno));
}

std::string PathOf(int descriptor) { return Concat("/proc/self/fd/", descriptor); }

}  // namespace

Status TlsKeys::Publish(int* descriptor, const std::string& content) {
  const int file = memfd_create("deuteronomy-tls", MFD_CLOEXEC);
  if (file < 0) return SystemError("memfd_create");
  Status status;
  for (size_t written = 0; written < content.size() && status.ok();) {
    const ssize_t bytes = write(file, content.data() + written, content.size() - written);
    if (bytes > 0) {
      written += static_cast<size_t>(bytes);
    } else if (errno != EINTR) {
      status = SystemError("write");
    }
  }
  // gRPC looks at whole seconds, and takes 0 for a failure.
  const timespec time{.tv_sec = generation_, .tv_nsec = 0};
  const timespec times[2] = {time, time};
  if (status.ok() && futimens(file, times) != 0) status = SystemError("futimens");
  if (!status.ok()) {
    close(file);
    return status;
  }
  if (*descriptor < 0) {
    *descriptor = file;
    return Status::Ok();
  }
  // dup3 replaces the descriptor in one step: a thread that opens the path meanwhile gets the old file or the new one.
  if (dup3(file, *descriptor, O_CLOEXEC) < 0) status = SystemError("dup3");
  close(file);
  return status;
}

Result<std::shared_ptr<TlsKeys>> TlsKeys::Create(Runtime& runtime, std::shared_ptr<const TlsIdentity> identity) {
  std::shared_ptr<TlsKeys> keys(new TlsKeys(runtime, nullptr));
  DEUT_RETURN_IF_ERROR(keys->Replace(std::move(identity)));
  const MutexLock lock(keys->mutex_);
  const std::string identity_path = PathOf(keys->identity_file_), roots_path = PathOf(keys->roots_file_);
  for (const std::string& path : {identity_path, roots_path}) {
    struct stat about{};
    if (stat(path.c_str(), &about) != 0) return SystemError(path.c_str());
  }
  keys->provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(identity_path, identity_path,
                                                                                         roots_path, kRefreshSeconds);
  return keys;
}

Result<std::shared_ptr<TlsKeys>> TlsKeys::Load(Runtime& runtime, const TlsOptions& options, Storage& storage) {
  DEUT_ASSIGN_OR_RETURN(std::shared_ptr<const TlsIdentity> identity, LoadTls(options, storage));
  return Create(runtime, std::move(identity));
}

TlsKeys::~TlsKeys() {
  provider_.reset();
  const MutexLock lock(mutex_);
  for (const int file : {identity_file_, roots_file_}) {
    if (file >= 0) close(file);
  }
}

std::shared_ptr<const TlsIdentity> TlsKeys::identity() const {
  const MutexLock lock(mutex_);
  return identity_;
}

Status TlsKeys::Replace(std::shared_ptr<const TlsIdentity> identity) {
  const MutexLock lock(mutex_);
  ++generation_;
  // The authority comes first, because peers with certificates of the new authority may connect as soon as our own certificate is published.
  DEUT_RETURN_IF_ERROR(Publish(&roots_file_, identity->ca_pem));
  DEUT_RETURN_IF_ERROR(Publish(&identity_file_, Concat(identity->cert_pem, "\n", identity->key_pem)));
  identity_ = std::move(identity);
  return Status::Ok();
}

}  // namespace deut
