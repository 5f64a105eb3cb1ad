#include "common/io/faulty_disk.h"

#include <utility>

#include "common/io/model_storage.h"
#include "common/sync/mutex.h"

namespace deut {

FaultyDisk::FaultyDisk(Runtime& runtime, uint64_t seed)
    : disk_(std::make_shared<ModelDisk>(runtime, /*is_faulty=*/true, seed)) {}

FaultyDisk::FaultyDisk(std::shared_ptr<ModelDisk> disk) : disk_(std::move(disk)) {}

FaultyDisk::~FaultyDisk() = default;

std::unique_ptr<Storage> FaultyDisk::Mount() { return NewModelStorage(disk_); }

void FaultyDisk::Crash(uint64_t seed) {
  MutexLock lock(disk_->mutex);
  disk_->CrashLocked(seed);
}

std::unique_ptr<FaultyDisk> FaultyDisk::CopyAfterCrash(uint64_t seed) const {
  MutexLock lock(disk_->mutex);
  return Crashed(disk_->runtime, disk_->model, seed);
}

std::unique_ptr<FaultyDisk> FaultyDisk::Crashed(Runtime& runtime, const DiskModel& model, uint64_t seed) {
  Random random(seed);
  auto copy = std::make_shared<ModelDisk>(runtime, model, random.Next());
  {
    MutexLock lock(copy->mutex);
    copy->model.Crash(&random);
  }
  return std::unique_ptr<FaultyDisk>(new FaultyDisk(std::move(copy)));
}

void FaultyDisk::WatchChanges(std::function<void(const Copier&)> watcher) {
  MutexLock lock(disk_->mutex);
  // Clears the old watcher first, so that an empty `watcher` ends the watching.
  disk_->watcher = nullptr;
  if (!watcher) return;
  disk_->watcher = [&runtime = disk_->runtime, watcher = std::move(watcher)](const DiskModel& model) {
    watcher([&](uint64_t seed) { return Crashed(runtime, model, seed); });
  };
}

void FaultyDisk::CrashAfter(uint64_t changing_operations) {
  MutexLock lock(disk_->mutex);
  disk_->crash_after = changing_operations;
}

uint64_t FaultyDisk::crashes() const {
  MutexLock lock(disk_->mutex);
  return disk_->life - 1;
}

int FaultyDisk::AddFault(DiskFault fault) {
  MutexLock lock(disk_->mutex);
  return disk_->faults.Add(std::move(fault));
}

void FaultyDisk::RemoveFault(int id) {
  MutexLock lock(disk_->mutex);
  disk_->faults.Remove(id);
}

void FaultyDisk::RemoveAllFaults() {
  MutexLock lock(disk_->mutex);
  disk_->faults.RemoveAll();
}

uint64_t FaultyDisk::hits(int id) const {
  MutexLock lock(disk_->mutex);
  return disk_->faults.hits(id);
}

Status FaultyDisk::FlipBit(const std::string& path, uint64_t offset, int bit) {
  MutexLock lock(disk_->mutex);
  DEUT_ASSIGN_OR_RETURN(auto file, disk_->model.Open(path, /*create=*/false, /*exclusive=*/false));
  if (offset >= file->size() || bit < 0 || bit > 7) {
    return DEUT_ERROR(kInvalidArgument, "bit ", bit, " of offset ", offset, " of ", path, ", which has ", file->size(),
                      " bytes");
  }
  file->FlipBit(offset, bit);
  return Status::Ok();
}

void FaultyDisk::SetFreeBytes(uint64_t bytes) {
  MutexLock lock(disk_->mutex);
  disk_->model.set_free_bytes(bytes);
}

void FaultyDisk::SetIgnoreSync(bool ignore) {
  MutexLock lock(disk_->mutex);
  disk_->ignore_sync = ignore;
}

// Held completions and held operations wait on `changed`, so each new setting wakes them to look again.
void FaultyDisk::HoldCompletions(bool hold) {
  MutexLock lock(disk_->mutex);
  disk_->hold = hold;
  disk_->changed.NotifyAll(disk_->runtime);
}

void FaultyDisk::HoldOperations(uint32_t kinds, std::string path_contains) {
  MutexLock lock(disk_->mutex);
  disk_->held_kinds = kinds;
  disk_->held_path = std::move(path_contains);
  disk_->changed.NotifyAll(disk_->runtime);
}

size_t FaultyDisk::held_operations() const {
  MutexLock lock(disk_->mutex);
  return disk_->held_operations;
}

DiskCounts FaultyDisk::counts() const {
  MutexLock lock(disk_->mutex);
  return disk_->counts;
}

}  // namespace deut
