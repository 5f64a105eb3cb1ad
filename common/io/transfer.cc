#include "common/io/transfer.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/io/shortage.h"

namespace deut {
namespace {

Status TransferError(const IoRequest& request, int error) {
  if (request.kind == IoRequest::Kind::kSync) return SyncStatus("sync of", request.file->path(), error);
  return ErrnoStatus(Concat(NameOf(request.kind), " of ", request.bytes, " bytes at offset ", request.offset, " of"),
                     request.file->path(), error);
}

}  // namespace

const char* NameOf(IoRequest::Kind kind) {
  switch (kind) {
    case IoRequest::Kind::kRead:
      return "read";
    case IoRequest::Kind::kWrite:
      return "write";
    case IoRequest::Kind::kSync:
      return "sync";
  }
  return "transfer";
}

Status CheckTransfer(const OpenOptions& options, std::string_view path, IoRequest::Kind kind, uint64_t offset,
                     const void* data, size_t bytes) {
  if (kind != IoRequest::Kind::kRead && !options.writable) {
    return DEUT_ERROR(kInvalidArgument, NameOf(kind), " of ", path, ", which was opened for reading");
  }
  if (kind == IoRequest::Kind::kSync) return Status::Ok();
  if (offset > INT64_MAX || bytes > INT64_MAX - offset) {
    return DEUT_ERROR(kInvalidArgument, NameOf(kind), " of ", bytes, " bytes at offset ", offset, " of ", path,
                      ": beyond the largest file");
  }
  if (options.direct && (offset % kIoAlignment != 0 || bytes % kIoAlignment != 0 ||
                         reinterpret_cast<uintptr_t>(data) % kIoAlignment != 0)) {
    return DEUT_ERROR(kInvalidArgument, "direct ", NameOf(kind), " of ", bytes, " bytes at offset ", offset, " of ",
                      path, ": offset, length and memory must be multiples of ", kIoAlignment);
  }
  return Status::Ok();
}

namespace {

std::string ErrnoMessage(std::string_view operation, std::string_view path, int error) {
  return Concat(operation, " ", path, ": ", std::generic_category().message(error));
}

}  // namespace

Status SyncStatus(std::string_view operation, std::string_view path, int error) {
  return Status(ErrorCode::kIoError, ErrnoMessage(operation, path, error));
}

Status ErrnoStatus(std::string_view operation, std::string_view path, int error) {
  const std::string message = ErrnoMessage(operation, path, error);
  switch (error) {
    case ENOENT:
      return Status(ErrorCode::kNotFound, message);
    case EEXIST:
      return Status(ErrorCode::kAlreadyExists, message);
    case ENOSPC:
    case EDQUOT:
      return Status(ErrorCode::kResourceExhausted, message);
    default:
      return Status(IsShortage(error) ? ErrorCode::kResourceExhausted : ErrorCode::kIoError, message);
  }
}

namespace {

uint32_t MaxShortageRetries(IoRequest::Kind kind, int error) {
  switch (kind) {
    case IoRequest::Kind::kRead:
      return kMaxReadShortages;
    case IoRequest::Kind::kWrite:
      return kMaxWriteShortages;
    case IoRequest::Kind::kSync:
      return error == EAGAIN ? kMaxWriteShortages : 0;
  }
  return 0;
}

}  // namespace

Duration RetryPause(const TransferRetries& retries) {
  // More doublings than this exceed the longest pause.
  constexpr uint32_t kMaxDoublings = 6;
  return std::min(Duration(milliseconds(1)) * (1 << std::min(retries.shortages - 1, kMaxDoublings)), kLongestPause);
}

TransferStep AdvanceTransfer(IoRequest* request, bool direct, int64_t result, TransferRetries* retries) {
  if (result < 0) {
    const int error = static_cast<int>(-result);
    if (IsShortage(error) && ++retries->shortages <= MaxShortageRetries(request->kind, error))
      return TransferStep::kRetryAfterPause;
    if (error == EINTR && ++retries->at_once <= kMaxRetries) return TransferStep::kRetryNow;
    request->status = TransferError(*request, error);
    return TransferStep::kDone;
  }
  retries->shortages = 0;
  if (request->kind == IoRequest::Kind::kSync) return TransferStep::kDone;
  const bool reads = request->kind == IoRequest::Kind::kRead;
  const size_t before = request->transferred;
  request->transferred += static_cast<size_t>(result);
  if (request->transferred == request->bytes) return TransferStep::kDone;
  if (result == 0) {
    if (!reads) request->status = TransferError(*request, EIO);
    return TransferStep::kDone;  // a read met the end of the file
  }
  if (direct && request->transferred % kIoAlignment != 0) {
    // A direct read is cut off unaligned only at the end of a file. A write resumes at the last whole block.
    if (reads) return TransferStep::kDone;
    request->transferred = RoundDownToIo(request->transferred);
  }
  if (request->transferred > before) {
    retries->at_once = 0;
  } else if (++retries->at_once > kMaxRetries) {
    request->status = TransferError(*request, EIO);
    return TransferStep::kDone;
  }
  return TransferStep::kRetryNow;
}

}  // namespace deut
