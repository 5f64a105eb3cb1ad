#include "common/io/model_storage.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/io/model_transfer.h"
#include "common/io/transfer.h"

namespace deut {

Status ModelDisk::Crashed() { return DEUT_ERROR(kIoError, "the disk has crashed since this was opened"); }

Result<std::optional<DiskFault::Action>> ModelDisk::BeginLocked(uint64_t of_life, const DiskOperation& operation) {
  if (of_life != life) return Crashed();
  counts.reads += operation.kind == kDiskRead;
  counts.writes += operation.kind == kDiskWrite;
  counts.syncs += operation.kind == kDiskSync;
  counts.names += operation.kind == kDiskName;
  counts.directory_syncs += operation.kind == kDiskSyncDirectory;
  if (!faulty) return std::optional<DiskFault::Action>();
  if ((operation.kind & kDiskChanging) != 0) {
    ++counts.changing;
    if (crash_after == 1) return std::optional(DiskFault::Action::kCrash);  // CrashLocked resets it
    if (crash_after > 1) --crash_after;
  }
  return faults.FaultFor(operation);
}

Status ModelDisk::AdmitLocked(uint64_t of_life, const DiskOperation& operation, bool* crashes) {
  DEUT_ASSIGN_OR_RETURN(const auto action, BeginLocked(of_life, operation));
  *crashes = action == DiskFault::Action::kCrash;
  if (action == DiskFault::Action::kIoError) return DEUT_ERROR(kIoError, operation.path, ": injected error");
  if (!action && (operation.kind & kDiskChanging) != 0) ShowChangeLocked();
  if (action == DiskFault::Action::kShortage)
    return DEUT_ERROR(kResourceExhausted, operation.path, ": injected: Too many open files");
  const bool syncs = operation.kind == kDiskSync || operation.kind == kDiskSyncDirectory;
  if (action == DiskFault::Action::kNoSpace && syncs) return DEUT_ERROR(kIoError, operation.path, ": injected error");
  if (action == DiskFault::Action::kNoSpace)
    return DEUT_ERROR(kResourceExhausted, operation.path, ": injected: no space left");
  return Status::Ok();
}

Status ModelDisk::EndLocked(bool crashes) {
  if (!crashes) return Status::Ok();
  CrashLocked(random.Next());
  return Crashed();
}

void ModelDisk::CrashLocked(uint64_t seed) {
  ++life;
  crash_after = 0;
  locks.clear();
  Random of_crash(seed);
  model.Crash(&of_crash);
  changed.NotifyAll(runtime);
}

void ModelDisk::WaitWhileHeldLocked(uint64_t of_life, DiskOperationKind kind, const std::string& path) {
  ++held_operations;
  while ((held_kinds & kind) != 0 && life == of_life && path.find(held_path) != std::string::npos) changed.Wait(mutex);
  --held_operations;
}

namespace {

class ModelHandle final : public File {
 public:
  ModelHandle(std::shared_ptr<ModelDisk> disk, uint64_t life, std::string path, const OpenOptions& options,
              std::shared_ptr<ModelFile> file)
      : shared_(std::move(disk)), disk_(*shared_), target_{life, std::move(path), options, std::move(file)} {}

  const std::string& path() const override { return target_.path; }

  Result<size_t> Read(uint64_t offset, void* data, size_t bytes) override {
    IoRequest request{.kind = IoRequest::Kind::kRead, .file = this, .offset = offset, .data = data, .bytes = bytes};
    DEUT_RETURN_IF_ERROR(Run(&request));
    return request.transferred;
  }
  Status Write(uint64_t offset, const void* data, size_t bytes) override {
    IoRequest request{.kind = IoRequest::Kind::kWrite,
                      .file = this,
                      .offset = offset,
                      .data = const_cast<void*>(data),
                      .bytes = bytes};
    return Run(&request);
  }
  Status Sync() override {
    IoRequest request{.kind = IoRequest::Kind::kSync, .file = this};
    return Run(&request);
  }

  Result<uint64_t> Size() override {
    MutexLock lock(disk_.mutex);
    disk_.WaitWhileHeldLocked(target_.life, kDiskOther, target_.path);
    bool crashes = false;
    DEUT_RETURN_IF_ERROR(disk_.AdmitLocked(target_.life, {.kind = kDiskOther, .path = target_.path}, &crashes));
    const uint64_t size = target_.file->size();
    DEUT_RETURN_IF_ERROR(disk_.EndLocked(crashes));
    return size;
  }

  Status Truncate(uint64_t bytes) override { return Resize(bytes, /*allocates=*/false); }
  Status Allocate(uint64_t bytes) override { return Resize(bytes, /*allocates=*/true); }

  const ModelTarget& target() const { return target_; }

 private:
  Status Run(IoRequest* request) {
    DEUT_RETURN_IF_ERROR(
        CheckTransfer(target_.options, target_.path, request->kind, request->offset, request->data, request->bytes));
    MutexLock lock(disk_.mutex);
    disk_.WaitWhileHeldLocked(target_.life, KindOf(*request), target_.path);
    ModelTransfer transfer = BeginTransferLocked(disk_, target_, request);
    EndTransferLocked(disk_, target_, &transfer, TransferEnd::kReaped);
    return std::move(request->status);
  }

  Status Resize(uint64_t bytes, bool allocates) {
    const char* operation = allocates ? "allocate in " : "truncate of ";
    if (!target_.options.writable) {
      return DEUT_ERROR(kInvalidArgument, operation, target_.path, ", which was opened for reading");
    }
    if (bytes > INT64_MAX) return DEUT_ERROR(kInvalidArgument, operation, target_.path, ": ", bytes, " bytes");
    MutexLock lock(disk_.mutex);
    disk_.WaitWhileHeldLocked(target_.life, kDiskAllocate, target_.path);
    bool crashes = false;
    DEUT_RETURN_IF_ERROR(disk_.AdmitLocked(
        target_.life, {.kind = kDiskAllocate, .path = target_.path, .offset = 0, .bytes = bytes}, &crashes));
    const uint64_t size = target_.file->size();
    Status status;
    if (bytes > size && !disk_.model.AllocateSpace(*target_.file, bytes)) {
      status = DEUT_ERROR(kResourceExhausted, operation, target_.path, ": ", bytes, " bytes wanted, ",
                          disk_.model.free_bytes(), " bytes free");
    } else if (bytes > size || !allocates) {
      target_.file->Resize(bytes);
      if (bytes < size) disk_.model.FreeSpace(size, bytes);
      if (allocates && !crashes && !disk_.ignore_sync) target_.file->CoverSize();
    }
    DEUT_RETURN_IF_ERROR(disk_.EndLocked(crashes));
    return status;
  }

  const std::shared_ptr<ModelDisk> shared_;
  ModelDisk& disk_;
  const ModelTarget target_;
};

class ModelQueue final : public IoQueue {
 public:
  ModelQueue(std::shared_ptr<ModelDisk> disk, uint64_t life, size_t depth)
      : disk_(std::move(disk)), life_(life), depth_(depth) {}

  ~ModelQueue() override {
    MutexLock lock(disk_->mutex);
    for (Pending& pending : pending_) EndLocked(&pending, TransferEnd::kDropped);
  }

  Status Submit(IoRequest* request) override {
    const ModelTarget& target = static_cast<const ModelHandle*>(request->file)->target();
    DEUT_RETURN_IF_ERROR(
        CheckTransfer(target.options, target.path, request->kind, request->offset, request->data, request->bytes));
    if (pending_.size() == depth_)
      return DEUT_ERROR(kResourceExhausted, depth_, " requests are in flight, the queue's depth");
    request->transferred = 0;
    MutexLock lock(disk_->mutex);
    pending_.push_back({request, BeginTransferLocked(*disk_, target, request)});
    return Status::Ok();
  }

  void Reap(std::vector<IoRequest*>* completed, Deadline deadline) override {
    if (pending_.empty()) return;
    MutexLock lock(disk_->mutex);
    size_t held = MoveHeldToEndLocked();
    while (held == pending_.size() && !woken_) {
      disk_->held_operations += held;
      const bool in_time = disk_->changed.WaitUntil(disk_->mutex, deadline);
      disk_->held_operations -= held;
      held = MoveHeldToEndLocked();
      if (!in_time) break;
    }
    woken_ = false;
    size_t count = pending_.size() - held;
    if (count == 0) return;
    if (disk_->faulty) {  // completes some requests, in any order
      std::shuffle(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count), disk_->random);
      count = disk_->random.Between(1, count);
    }
    for (size_t i = 0; i < count; ++i) {
      EndLocked(&pending_[i], TransferEnd::kReaped);
      completed->push_back(pending_[i].request);
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count));
  }

  void Wake() override {
    MutexLock lock(disk_->mutex);
    woken_ = true;
    disk_->changed.NotifyAll(disk_->runtime);
  }

  size_t in_flight() const override { return pending_.size(); }

 private:
  struct Pending {
    IoRequest* request;
    ModelTransfer transfer;
  };

  // Moves the requests that may not complete now behind the others. Returns their number.
  size_t MoveHeldToEndLocked() DEUT_REQUIRES(disk_->mutex) {
    if (disk_->life != life_) return 0;
    const uint32_t all = disk_->hold ? uint32_t{kDiskWrite | kDiskSync} : 0;
    const uint32_t kinds = disk_->held_kinds;
    if ((all | kinds) == 0) return 0;
    const std::string path = disk_->held_path;
    const auto first_held = std::stable_partition(pending_.begin(), pending_.end(), [&](const Pending& pending) {
      const DiskOperationKind kind = KindOf(*pending.request);
      if ((all & kind) != 0) return false;
      return (kinds & kind) == 0 || pending.request->file->path().find(path) == std::string::npos;
    });
    return static_cast<size_t>(pending_.end() - first_held);
  }

  void EndLocked(Pending* pending, TransferEnd end) DEUT_REQUIRES(disk_->mutex) {
    const ModelTarget& target = static_cast<const ModelHandle*>(pending->request->file)->target();
    EndTransferLocked(*disk_, target, &pending->transfer, end);
  }

  const std::shared_ptr<ModelDisk> disk_;
  const uint64_t life_;
  const size_t depth_;
  std::vector<Pending> pending_;  // only the queue's thread uses it
  bool woken_ DEUT_GUARDED_BY(disk_->mutex) = false;
};

class ModelLock final : public FileLock {
 public:
  ModelLock(std::shared_ptr<ModelDisk> disk, uint64_t life, std::string path, bool made)
      : disk_(std::move(disk)), life_(life), path_(std::move(path)), made_(made) {}
  ~ModelLock() override {
    MutexLock lock(disk_->mutex);
    const auto found = disk_->locks.find(path_);
    if (found == disk_->locks.end() || found->second != life_) return;
    disk_->locks.erase(found);
    if (made_ && remove_ && disk_->life == life_) (void)disk_->model.Remove(path_);
  }
  void RemoveWhenReleased(bool remove) override { remove_ = remove; }

 private:
  const std::shared_ptr<ModelDisk> disk_;
  const uint64_t life_;
  const std::string path_;
  const bool made_;
  bool remove_ = false;
};

class ModelStorage final : public Storage {
 public:
  ModelStorage(std::shared_ptr<ModelDisk> disk, uint64_t life) : disk_(std::move(disk)), life_(life) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, const OpenOptions& options) override {
    if (options.create && !options.writable)
      return DEUT_ERROR(kInvalidArgument, "create of ", path, " for reading only");
    MutexLock lock(disk_->mutex);
    const DiskOperationKind kind = options.create && !disk_->model.Exists(path) ? kDiskName : kDiskOpen;
    disk_->WaitWhileHeldLocked(life_, kind, path);
    bool crashes = false;
    DEUT_RETURN_IF_ERROR(disk_->AdmitLocked(life_, {.kind = kind, .path = path}, &crashes));
    auto opened = disk_->model.Open(path, options.create, options.exclusive);
    DEUT_RETURN_IF_ERROR(disk_->EndLocked(crashes));
    DEUT_ASSIGN_OR_RETURN(auto file, std::move(opened));
    return std::unique_ptr<File>(std::make_unique<ModelHandle>(disk_, life_, path, options, std::move(file)));
  }

  Status CreateDirectory(const std::string& path) override {
    return Change(kDiskName, path, [&](DiskModel& model) { return model.CreateDirectory(path); });
  }

  Status Rename(const std::string& from, const std::string& to) override {
    return Change(kDiskName, from, [&](DiskModel& model) { return model.Rename(from, to); });
  }

  Status Remove(const std::string& path) override {
    return Change(kDiskName, path, [&](DiskModel& model) { return model.Remove(path); });
  }

  Status SyncDirectory(const std::string& path) override {
    MutexLock lock(disk_->mutex);
    disk_->WaitWhileHeldLocked(life_, kDiskSyncDirectory, path);
    bool crashes = false;
    DEUT_RETURN_IF_ERROR(disk_->AdmitLocked(life_, {.kind = kDiskSyncDirectory, .path = path}, &crashes));
    const bool covers = !disk_->ignore_sync && (!crashes || disk_->random.OneIn(2));
    Status status = disk_->model.SyncDirectory(path, covers);
    DEUT_RETURN_IF_ERROR(disk_->EndLocked(crashes));
    return status;
  }

  Result<std::vector<std::string>> List(const std::string& directory) override {
    std::vector<std::string> names;
    DEUT_RETURN_IF_ERROR(Change(kDiskOther, directory, [&](DiskModel& model) {
      DEUT_ASSIGN_OR_RETURN(names, model.List(directory));
      return Status::Ok();
    }));
    return names;
  }

  Result<bool> Exists(const std::string& path) override {
    bool exists = false;
    DEUT_RETURN_IF_ERROR(Change(kDiskOther, path, [&](DiskModel& model) {
      exists = model.Exists(path);
      return Status::Ok();
    }));
    return exists;
  }

  Result<uint64_t> FreeBytes(const std::string& path) override {
    uint64_t bytes = 0;
    DEUT_RETURN_IF_ERROR(Change(kDiskOther, path, [&](DiskModel& model) {
      bytes = model.free_bytes();
      return model.Exists(path) ? Status::Ok()
                                : DEUT_ERROR(kNotFound, "free space of ", path, ": no such file or directory");
    }));
    return bytes;
  }

  Result<uint64_t> CapacityBytes(const std::string& path) override {
    uint64_t bytes = 0;
    DEUT_RETURN_IF_ERROR(Change(kDiskOther, path, [&](DiskModel& model) {
      bytes = model.capacity_bytes();
      return model.Exists(path)
                 ? Status::Ok()
                 : DEUT_ERROR(kNotFound, "size of the file system of ", path, ": no such file or directory");
    }));
    return bytes;
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    MutexLock lock(disk_->mutex);
    const DiskOperationKind kind = disk_->model.Exists(path) ? kDiskOpen : kDiskName;
    disk_->WaitWhileHeldLocked(life_, kind, path);
    bool crashes = false;
    DEUT_RETURN_IF_ERROR(disk_->AdmitLocked(life_, {.kind = kind, .path = path}, &crashes));
    const bool made = !disk_->model.Exists(path);
    const auto opened = disk_->model.Open(path, /*create=*/true, /*exclusive=*/false);
    DEUT_RETURN_IF_ERROR(disk_->EndLocked(crashes));
    DEUT_RETURN_IF_ERROR(opened.status());
    if (!disk_->locks.try_emplace(path, life_).second)
      return DEUT_ERROR(kUnavailable, path, " is locked by this process");
    return std::unique_ptr<FileLock>(std::make_unique<ModelLock>(disk_, life_, path, made));
  }

  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) override {
    DEUT_CHECK(depth > 0);
    return std::unique_ptr<IoQueue>(std::make_unique<ModelQueue>(disk_, life_, depth));
  }

  std::string name() const override { return disk_->faulty ? "faulty (in memory)" : "memory"; }

 private:
  template <typename Operation>
  Status Change(DiskOperationKind kind, const std::string& path, const Operation& operation) {
    MutexLock lock(disk_->mutex);
    disk_->WaitWhileHeldLocked(life_, kind, path);
    bool crashes = false;
    DEUT_RETURN_IF_ERROR(disk_->AdmitLocked(life_, {.kind = kind, .path = path}, &crashes));
    Status status = operation(disk_->model);
    DEUT_RETURN_IF_ERROR(disk_->EndLocked(crashes));
    return status;
  }

  const std::shared_ptr<ModelDisk> disk_;
  const uint64_t life_;
};

}  // namespace

std::unique_ptr<Storage> NewModelStorage(std::shared_ptr<ModelDisk> disk) {
  uint64_t life;
  {
    MutexLock lock(disk->mutex);
    life = disk->life;
  }
  return std::make_unique<ModelStorage>(std::move(disk), life);
}

}  // namespace deut
