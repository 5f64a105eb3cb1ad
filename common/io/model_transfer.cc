#include "common/io/model_transfer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace deut {
namespace {

using Action = DiskFault::Action;

Status Injected(const ModelTarget& target, const IoRequest& request, const char* operation) {
  return DEUT_ERROR(kIoError, operation, " of ", request.bytes, " bytes at offset ", request.offset, " of ",
                    target.path, ": injected error");
}

void BeginRead(const ModelTarget& target, std::optional<Action> action, Random* random, ModelTransfer* transfer) {
  const IoRequest& request = *transfer->request;
  if (action == Action::kShortage) {
    transfer->status = DEUT_ERROR(kResourceExhausted, "read of ", request.bytes, " bytes at offset ", request.offset,
                                  " of ", target.path, ": injected: Cannot allocate memory");
    return;
  }
  if (action == Action::kIoError || action == Action::kNoSpace) {
    transfer->status = Injected(target, request, "read");
    return;
  }
  const uint64_t bytes = action == Action::kShort ? request.bytes / 2 : request.bytes;
  char* data = static_cast<char*>(request.data);
  transfer->transferred = target.file->Read(request.offset, data, bytes);
  if (action == Action::kFlipBit && transfer->transferred > 0) {
    char& byte = data[random->Below(transfer->transferred)];
    byte = static_cast<char>(byte ^ (1 << random->Below(8)));
  }
}

// Writes a random part of the sectors, for a write that fails.
void WriteSome(const ModelTarget& target, const IoRequest& request, Random* random) {
  const char* data = static_cast<const char*>(request.data);
  for (uint64_t at = 0; at < request.bytes; at += kSectorBytes) {
    if (random->OneIn(2)) continue;
    const uint64_t part = std::min<uint64_t>(kSectorBytes, request.bytes - at);
    target.file->AbandonWrite(target.file->BeginWrite(request.offset + at, data + at, part));
  }
}

void BeginWrite(DiskModel& model, const ModelTarget& target, std::optional<Action> action, Random* random,
                ModelTransfer* transfer) {
  const IoRequest& request = *transfer->request;
  if (action == Action::kNoSpace ||
      !model.AllocateSpace(*target.file, request.bytes == 0 ? 0 : request.offset + request.bytes)) {
    transfer->status = DEUT_ERROR(kResourceExhausted, "write of ", request.bytes, " bytes at offset ", request.offset,
                                  " of ", target.path, ": no space left, ", model.free_bytes(), " bytes free");
    return;
  }
  const char* data = static_cast<const char*>(request.data);
  if (action == Action::kIoError) {
    WriteSome(target, request, random);
    transfer->status = Injected(target, request, "write");
    return;
  }
  uint64_t bytes = request.bytes;
  if (action == Action::kShort) {
    bytes = bytes / 2 / kSectorBytes * kSectorBytes;
    transfer->status = Injected(target, request, "write");
  }
  std::vector<char> flipped;
  if (action == Action::kFlipBit && bytes > 0) {
    flipped.assign(data, data + bytes);
    char& byte = flipped[random->Below(bytes)];
    byte = static_cast<char>(byte ^ (1 << random->Below(8)));
    data = flipped.data();
  }
  if (bytes > 0) transfer->write = target.file->BeginWrite(request.offset, data, bytes);
  transfer->transferred = bytes;
}

}  // namespace

DiskOperationKind KindOf(const IoRequest& request) {
  if (request.kind == IoRequest::Kind::kRead) return kDiskRead;
  return request.kind == IoRequest::Kind::kWrite ? kDiskWrite : kDiskSync;
}

ModelTransfer BeginTransferLocked(ModelDisk& disk, const ModelTarget& target, IoRequest* request) {
  ModelTransfer transfer{.request = request, .status = {}, .write = {}, .sync = {}};
  auto verdict = disk.BeginLocked(
      target.life, {.kind = KindOf(*request), .path = target.path, .offset = request->offset, .bytes = request->bytes});
  if (!verdict.ok()) {
    transfer.status = verdict.status();
    return transfer;
  }
  const std::optional<Action> action = *verdict;
  switch (request->kind) {
    case IoRequest::Kind::kRead:
      BeginRead(target, action, &disk.random, &transfer);
      break;
    case IoRequest::Kind::kWrite:
      BeginWrite(disk.model, target, action, &disk.random, &transfer);
      break;
    case IoRequest::Kind::kSync:
      transfer.sync = target.file->BeginSync();
      transfer.sync_fails = action == Action::kIoError || action == Action::kNoSpace;
      if (transfer.sync_fails) transfer.status = DEUT_ERROR(kIoError, "sync of ", target.path, ": injected error");
      break;
  }
  if (action == Action::kCrash) {
    // The device may have done all of the transfer without having reported it.
    if (disk.random.OneIn(2)) EndTransferLocked(disk, target, &transfer, TransferEnd::kReaped);
    disk.CrashLocked(disk.random.Next());
  }
  if (!action && (KindOf(*request) & kDiskChanging) != 0) disk.ShowChangeLocked();
  return transfer;
}

void EndTransferLocked(ModelDisk& disk, const ModelTarget& target, ModelTransfer* transfer, TransferEnd end) {
  if (target.life == disk.life) {
    const bool covers = end == TransferEnd::kReaped && !disk.ignore_sync;
    if (transfer->write) {
      if (transfer->status.ok()) {
        target.file->CompleteWrite(*transfer->write, covers && target.options.sync_writes);
      } else {
        target.file->AbandonWrite(*transfer->write);
      }
    }
    if (transfer->sync) {
      target.file->EndSync(*transfer->sync, transfer->sync_fails ? ModelFile::SyncEnd::kFails
                                            : covers             ? ModelFile::SyncEnd::kCovers
                                                                 : ModelFile::SyncEnd::kCoversNothing);
    }
  } else if (transfer->status.ok()) {
    transfer->status = ModelDisk::Crashed();
  }
  transfer->write.reset();
  transfer->sync.reset();
  if (end == TransferEnd::kReaped) {
    transfer->request->status = transfer->status;
    transfer->request->transferred = transfer->transferred;
  }
}

}  // namespace deut
