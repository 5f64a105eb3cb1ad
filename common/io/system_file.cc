#include "common/io/system_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/io/shortage.h"
#include "common/io/transfer.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

int OpenFlags(const OpenOptions& options) {
  int flags = O_CLOEXEC | (options.writable ? O_RDWR : O_RDONLY);
  if (options.create) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  if (options.sync_writes) flags |= O_DSYNC;
  return flags;
}

int OpenRetrying(Runtime& runtime, const std::string& path, int flags, bool once) {
  const auto attempt = [&] {
    for (;;) {
      const int descriptor = open(path.c_str(), flags, 0644);
      if (descriptor >= 0 || errno != EINTR) return descriptor;
    }
  };
  if (!once) return RetryShortage(runtime, "open", path, attempt);
  const int descriptor = attempt();
  const int error = errno;
  if (descriptor < 0 && IsShortage(error)) RecordShortage(runtime, "open", path, error);
  errno = error;
  return descriptor;
}

// False where the file system or device wants a larger alignment than kIoAlignment, or has no direct transfers.
bool DirectFits([[maybe_unused]] int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx about{};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 && (about.stx_mask & STATX_DIOALIGN) != 0) {
    return about.stx_dio_offset_align != 0 && about.stx_dio_offset_align <= kIoAlignment &&
           about.stx_dio_mem_align <= kIoAlignment;
  }
#endif
  return true;
}

}  // namespace

void TransferBlocking(Runtime& runtime, IoRequest* request) {
  const auto* file = static_cast<const SystemFile*>(request->file);
  TransferRetries retries;
  for (;;) {
    char* data = static_cast<char*>(request->data) + request->transferred;
    const size_t rest = std::min(request->bytes - request->transferred, kMaxTransferBytes);
    const auto offset = static_cast<off_t>(request->offset + request->transferred);
    int64_t result = 0;
    switch (request->kind) {
      case IoRequest::Kind::kRead:
        result = pread(file->descriptor(), data, rest, offset);
        break;
      case IoRequest::Kind::kWrite:
        result = pwrite(file->descriptor(), data, rest, offset);
        break;
      case IoRequest::Kind::kSync:
        result = fdatasync(file->descriptor());
        break;
    }
    if (result < 0) result = -errno;
    if (DEUT_CAS_FAILS("transfer.shortage")) result = -ENOMEM;
    switch (AdvanceTransfer(request, file->options().direct, result, &retries)) {
      case TransferStep::kDone:
        return;
      case TransferStep::kRetryNow:
        break;
      case TransferStep::kRetryAfterPause:
        RecordShortage(runtime, NameOf(request->kind), file->path(), static_cast<int>(-result));
        runtime.SleepUntil(runtime.Now() + RetryPause(retries));
        break;
    }
  }
}

Result<std::unique_ptr<File>> SystemFile::Open(Runtime& runtime, const std::string& path, const OpenOptions& options) {
  if (options.create && !options.writable) return DEUT_ERROR(kInvalidArgument, "create of ", path, " for reading only");
  const int flags = OpenFlags(options);
  int descriptor = OpenRetrying(runtime, path, options.direct ? flags | O_DIRECT : flags, options.once);
  if (descriptor < 0 && options.direct && errno == EINVAL) {
    descriptor = OpenRetrying(runtime, path, flags & ~O_EXCL, options.once);
  }
  if (descriptor < 0) return ErrnoStatus("open", path, errno);
  if (options.direct && !DirectFits(descriptor)) fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_DIRECT);
  return std::unique_ptr<File>(new SystemFile(runtime, path, options, descriptor));
}

SystemFile::~SystemFile() { close(descriptor_); }

Result<size_t> SystemFile::Read(uint64_t offset, void* data, size_t bytes) {
  IoRequest request{.kind = IoRequest::Kind::kRead, .file = this, .offset = offset, .data = data, .bytes = bytes};
  DEUT_RETURN_IF_ERROR(CheckTransfer(options_, path_, request.kind, offset, data, bytes));
  TransferBlocking(runtime_, &request);
  DEUT_RETURN_IF_ERROR(request.status);
  return request.transferred;
}

Status SystemFile::Write(uint64_t offset, const void* data, size_t bytes) {
  IoRequest request{
      .kind = IoRequest::Kind::kWrite, .file = this, .offset = offset, .data = const_cast<void*>(data), .bytes = bytes};
  DEUT_RETURN_IF_ERROR(CheckTransfer(options_, path_, request.kind, offset, data, bytes));
  TransferBlocking(runtime_, &request);
  return std::move(request.status);
}

Status SystemFile::Sync() {
  IoRequest request{.kind = IoRequest::Kind::kSync, .file = this};
  DEUT_RETURN_IF_ERROR(CheckTransfer(options_, path_, request.kind, 0, nullptr, 0));
  TransferBlocking(runtime_, &request);
  return std::move(request.status);
}

Result<uint64_t> SystemFile::Size() {
  struct stat about{};
  if (fstat(descriptor_, &about) != 0) return ErrnoStatus("size of", path_, errno);
  return static_cast<uint64_t>(about.st_size);
}

Status SystemFile::Truncate(uint64_t bytes) {
  if (!options_.writable) return DEUT_ERROR(kInvalidArgument, "truncate of ", path_, ", which was opened for reading");
  if (bytes > INT64_MAX) return DEUT_ERROR(kInvalidArgument, "truncate of ", path_, " to ", bytes, " bytes");
  int result;
  do {
    result = ftruncate(descriptor_, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return ErrnoStatus(Concat("truncate to ", bytes, " bytes of"), path_, errno);
  return Status::Ok();
}

Status SystemFile::Allocate(uint64_t bytes) {
  if (!options_.writable) return DEUT_ERROR(kInvalidArgument, "allocate in ", path_, ", which was opened for reading");
  DEUT_ASSIGN_OR_RETURN(uint64_t at, Size());
  if (at >= bytes) return Status::Ok();
  // Reserves the space first, so that a full disk is found before anything is written. Not every file system can
  // reserve; there the writes below find it.
  if (posix_fallocate(descriptor_, static_cast<off_t>(at), static_cast<off_t>(bytes - at)) == ENOSPC) {
    (void)ftruncate(descriptor_, static_cast<off_t>(at));
    return ErrnoStatus(Concat("allocate ", bytes, " bytes in"), path_, ENOSPC);
  }
  // Reserved blocks become ordinary ones only when they are written; otherwise each later write would change
  // metadata, too. A second descriptor without O_DIRECT writes them, because the end need not be aligned.
  const int plain = OpenRetrying(runtime_, Concat("/proc/self/fd/", descriptor_), O_RDWR | O_CLOEXEC, /*once=*/false);
  if (plain < 0) return ErrnoStatus("allocate in", path_, errno);
  SystemFile writer(runtime_, path_, OpenOptions{.writable = true}, plain);
  const AlignedBuffer zeros(std::min<uint64_t>(bytes - at, 1 << 20));
  while (at < bytes) {
    const size_t part = std::min<uint64_t>(bytes - at, zeros.size());
    DEUT_RETURN_IF_ERROR(writer.Write(at, zeros.data(), part));
    at += part;
  }
  return writer.Sync();
}

}  // namespace deut
