#include "protocol/connections/tls_keys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

// How often gRPC reads the files.
constexpr unsigned kRefreshSeconds = 1;

Status SystemError(const char* what) {
  // A descriptor may be free again soon.
  if (errno == EMFILE || errno == ENFILE)
    return DEUT_ERROR(kResourceExhausted, "certificates in memory: ", what, ": ", strerror(errno));
  return DEUT_ERROR(kIoError, "certificates in memory: ", what, ": ", strerror(errno));
}

std::string PathOf(int descriptor) { return Concat("/proc/self/fd/", descriptor); }

}  // namespace

Result<Descriptor> TlsKeys::Prepare(const std::string& content) const {
  Descriptor file(memfd_create("deuteronomy-tls", MFD_CLOEXEC));
  if (!file.valid()) return SystemError("memfd_create");
  for (size_t written = 0; written < content.size();) {
    const ssize_t bytes = write(file.get(), content.data() + written, content.size() - written);
    if (bytes > 0) {
      written += static_cast<size_t>(bytes);
    } else if (errno != EINTR) {
      return SystemError("write");
    }
  }
  // gRPC compares whole seconds, and takes 0 for a failure.
  const timespec time{.tv_sec = generation_, .tv_nsec = 0};
  const timespec times[2] = {time, time};
  if (futimens(file.get(), times) != 0) return SystemError("futimens");
  return file;
}

void TlsKeys::Publish(Descriptor file, Descriptor* place) {
  if (!place->valid()) {
    *place = std::move(file);
    return;
  }
  // dup3 replaces the descriptor in one step: a thread that opens the path meanwhile gets the old file or the new one.
  // It needs no new descriptor, and its number is below the limit (Replace has checked). So only a signal, or a thread
  // that opens a file, can interrupt it, and not for long.
  while (dup3(file.get(), place->get(), O_CLOEXEC) < 0) DEUT_CHECK(errno == EINTR || errno == EBUSY);
}

Result<std::shared_ptr<TlsKeys>> TlsKeys::Create(Runtime& runtime, std::shared_ptr<const TlsIdentity> identity) {
  std::shared_ptr<TlsKeys> keys(new TlsKeys(runtime, nullptr));
  DEUT_RETURN_IF_ERROR(keys->Replace(std::move(identity)));
  const MutexLock lock(keys->mutex_);
  const std::string identity_path = PathOf(keys->identity_file_.get()), roots_path = PathOf(keys->roots_file_.get());
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

// The provider goes first, so that gRPC stops reading the files before they are closed.
TlsKeys::~TlsKeys() { provider_.reset(); }

std::shared_ptr<const TlsIdentity> TlsKeys::identity() const {
  const MutexLock lock(mutex_);
  return identity_;
}

Status TlsKeys::Replace(std::shared_ptr<const TlsIdentity> identity) {
  const MutexLock lock(mutex_);
  ++generation_;
  // Every step that can fail comes before the first exchange. A new authority beside the old certificate would cut
  // peers off.
  DEUT_ASSIGN_OR_RETURN(Descriptor roots, Prepare(identity->ca_pem));
  DEUT_POINT("tls_keys.one_prepared");
  DEUT_ASSIGN_OR_RETURN(Descriptor own, Prepare(Concat(identity->cert_pem, "\n", identity->key_pem)));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SystemError("getrlimit");
  for (const Descriptor* place : {&roots_file_, &identity_file_}) {
    if (place->valid() && static_cast<rlim_t>(place->get()) >= limit.rlim_cur)
      return DEUT_ERROR(kResourceExhausted, "certificates in memory: the limit of open files was lowered to ",
                        limit.rlim_cur, ", below a file that is open");
  }
  // The authority comes first, because peers with certificates from the new authority may connect as soon as our own
  // certificate is published.
  Publish(std::move(roots), &roots_file_);
  Publish(std::move(own), &identity_file_);
  identity_ = std::move(identity);
  return Status::Ok();
}

}  // namespace deut
