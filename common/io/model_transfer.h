// One transfer on a ModelDisk in two steps, so that a crash or later requests may fall between them.
// Thread-safety: the disk's mutex is held. `target` is an open file of `disk`.
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

// An open file: what a handle is about.
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
  std::optional<uint64_t> write;              // begun and to be ended
  std::optional<ModelFile::SyncTicket> sync;  // likewise
  bool sync_fails = false;
};

enum class TransferEnd : uint8_t {
  kReaped,   // request->status and transferred are filled
  kDropped,  // nobody hears of it, and nothing is covered by it
};

DiskOperationKind KindOf(const IoRequest& request);

// Reads or writes at once. REQUIRES: CheckTransfer said OK.
ModelTransfer BeginTransferLocked(ModelDisk& disk, const ModelTarget& target, IoRequest* request)
    DEUT_REQUIRES(disk.mutex);
void EndTransferLocked(ModelDisk& disk, const ModelTarget& target, ModelTransfer* transfer, TransferEnd end)
    DEUT_REQUIRES(disk.mutex);

}  // namespace deut

#endif  // COMMON_IO_MODEL_TRANSFER_H_
