// One transfer on a ModelDisk in two steps, so that a crash or later requests may come between them.
// Thread-safety: the caller holds the disk's mutex. `target` is an open file of `disk`.
#ifndef COMMON_IO_MODEL_TRANSFER_H_
#define COMMON_IO_MODEL_TRANSFER_H_

#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/io/model_file.h"
#include "common/io/model_storage.h"
#include "common/io/storage.h"

namespace deut {

// The open file behind a handle.
struct ModelTarget {
  uint64_t life = 0;
  std::string path;
  OpenOptions options;
  std::shared_ptr<ModelFile> file;
};

struct ModelTransfer {
  IoRequest* request = nullptr;
  Status status;
  size_t transferred = 0;
  std::optional<uint64_t> write;              // number of a write that has begun and must be ended
  std::optional<ModelFile::SyncTicket> sync;  // a sync that has begun and must be ended
  bool sync_fails = false;
};

enum class TransferEnd : uint8_t {
  kReaped,   // request->status and transferred are filled
  kDropped,  // the submitter does not learn the result, and the transfer covers nothing
};

DiskOperationKind KindOf(const IoRequest& request);

// Reads or writes at once. REQUIRES: CheckTransfer returned OK.
ModelTransfer BeginTransferLocked(ModelDisk& disk, const ModelTarget& target, IoRequest* request)
    DEUT_REQUIRES(disk.mutex);
void EndTransferLocked(ModelDisk& disk, const ModelTarget& target, ModelTransfer* transfer, TransferEnd end)
    DEUT_REQUIRES(disk.mutex);

}  // namespace deut

#endif  // COMMON_IO_MODEL_TRANSFER_H_
