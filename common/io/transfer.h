// The parts that all storages share: the check of a transfer before it starts, the step after each system call, and
// errors of the operating system as Status. Pure functions.
#ifndef COMMON_IO_TRANSFER_H_
#define COMMON_IO_TRANSFER_H_

#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut {

// "read", "write" or "sync".
const char* NameOf(IoRequest::Kind kind);

// INVALID_ARGUMENT if the file was not opened for this kind, the offset is beyond the largest file, or the alignment
// rule is broken.
Status CheckTransfer(const OpenOptions& options, std::string_view path, IoRequest::Kind kind, uint64_t offset,
                     const void* data, size_t bytes);

// "operation path: text of the error". ENOENT, EEXIST, ENOSPC, EDQUOT and the shortages (shortage.h) have codes of their own.
Status ErrnoStatus(std::string_view operation, std::string_view path, int error);
// The same for a sync: always IO_ERROR (storage.h).
Status SyncStatus(std::string_view operation, std::string_view path, int error);

// The largest transfer that one system call is asked for.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;
// The storage retries at once after EINTR and after writes that make no progress, at most this many times in a row.
// Then it fails.
constexpr uint32_t kMaxRetries = 10000;

// After a shortage (shortage.h) the storage retries with a pause: 1 ms, then twice the pause before, at most
// kLongestPause.
//   - A read gives up after about a second, as an open does. Its caller tries later.
//   - A write is retried for about five minutes, because its caller can only fail-stop. Either the kernel has not
//     taken the bytes, or it has taken some and reported how many. The storage submits the rest from the same memory,
//     so a later success means the same as a first one, also for a synchronous write. Components that watch their
//     disk end earlier, if the shortage outlasts their limit.
//   - A sync is retried only for EAGAIN, which says that it was not started. After any other failure the kernel may
//     have dropped the bytes that it could not write, and a second sync would cover nothing.
constexpr Duration kLongestPause = milliseconds(64);
constexpr uint32_t kMaxReadShortages = 21;      // 1 s of pauses
constexpr uint32_t kMaxWriteShortages = 4'700;  // 300 s of pauses

enum class TransferStep : uint8_t {
  kDone,            // status and transferred are final
  kRetryNow,        // the rest, from request->transferred on, must be submitted again
  kRetryAfterPause  // the same, after a pause of RetryPause
};

// Consecutive failures. Both are 0 at the start of a transfer.
struct TransferRetries {
  uint32_t at_once = 0;
  uint32_t shortages = 0;
};

// Accounts for one result of a system call on `request`: bytes transferred, 0, or minus an errno.
TransferStep AdvanceTransfer(IoRequest* request, bool direct, int64_t result, TransferRetries* retries);

// REQUIRES: the last step was kRetryAfterPause.
Duration RetryPause(const TransferRetries& retries);

}  // namespace deut

#endif  // COMMON_IO_TRANSFER_H_
