// What all storages share: the check of a transfer before it starts, the step after each system call, and errors of the
// operating system as Status. Pure functions.
#ifndef COMMON_IO_TRANSFER_H_
#define COMMON_IO_TRANSFER_H_

#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut {

// INVALID_ARGUMENT if the file was not opened for this, the offset is beyond what a file may have, or the alignment rule is broken.
Status CheckTransfer(const OpenOptions& options, std::string_view path, IoRequest::Kind kind, uint64_t offset,
                     const void* data, size_t bytes);

// "operation path: text of the error". ENOENT, EEXIST, ENOSPC, EDQUOT and the shortages (shortage.h) have codes of their own.
Status ErrnoStatus(std::string_view operation, std::string_view path, int error);
// The same for a sync: IO_ERROR whatever the error (storage.h).
Status SyncStatus(std::string_view operation, std::string_view path, int error);

// The most that one system call is asked to transfer.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;
// EINTR, and the shortages of shortage.h, are retried at most this many times in a row. Then they are errors.
constexpr uint32_t kMaxRetries = 10000;

enum class TransferStep : uint8_t { kDone, kAgain };

// Accounts for one result of a system call on `request`: bytes transferred, 0, or minus an errno. kAgain: the rest, from
// request->transferred on, is to be submitted once more. kDone: status and transferred are final. `retries` starts at 0.
TransferStep AdvanceTransfer(IoRequest* request, bool direct, int64_t result, uint32_t* retries);

}  // namespace deut

#endif  // COMMON_IO_TRANSFER_H_
