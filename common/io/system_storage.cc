// Storage of the operating system. Names, locks and free space are the same for both kinds; the queue is io_uring's
// or that of pread/pwrite.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/base/concat.h"
#include "common/base/descriptor.h"
#include "common/io/posix_queue.h"
#include "common/io/shortage.h"
#include "common/io/storage.h"
#include "common/io/system_file.h"
#include "common/io/transfer.h"
#include "common/io/uring_queue.h"
#include "common/observe/log.h"
#include "common/sync/mutex.h"

namespace deut {
namespace {

class SystemLock final : public FileLock {
 public:
  // The lock ends with the descriptor. `made`: the file was not there before.
  SystemLock(int descriptor, std::string path, bool made)
      : descriptor_(descriptor), path_(std::move(path)), made_(made) {}
  ~SystemLock() override {
    // While it is held: another process that has opened this file sees, once it has the lock, that the name is gone (LockedIsThere).
    if (made_ && remove_) unlink(path_.c_str());
  }
  void RemoveWhenReleased(bool remove) override { remove_ = remove; }

 private:
  Descriptor descriptor_;
  const std::string path_;
  const bool made_;
  bool remove_ = false;
};

constexpr int kLockAttempts = 1000;

// Whether the locked file still has its name. The previous holder may have removed the file between the open and the lock here. Then the lock is on a
// file without a name and keeps no other process away. *made becomes true also if the file is empty: the process that has made it has not locked it
// first.
bool LockedIsThere(int descriptor, const std::string& path, bool* made) {
  struct stat locked{}, named{};
  if (fstat(descriptor, &locked) != 0 || stat(path.c_str(), &named) != 0) return false;
  *made = *made || locked.st_size == 0;
  return locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

std::string ParentOf(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  const size_t slash = last == std::string::npos ? std::string::npos : path.rfind('/', last);
  if (slash == std::string::npos) return path.starts_with('/') ? "/" : ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return Status::Ok();
  const int error = errno;
  struct stat about{};
  if (error == EEXIST && stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
    return DEUT_ERROR(kAlreadyExists, path);
  }
  return error == EEXIST ? ErrnoStatus("create directory", path, ENOTDIR)
                         : ErrnoStatus("create directory", path, error);
}

class SystemStorage final : public Storage {
 public:
  // `kind`: kAuto only if the kernel has granted a ring.
  SystemStorage(IoKind kind, std::string name, Runtime& runtime)
      : kind_(kind), name_(std::move(name)), runtime_(runtime), mutex_(runtime) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, const OpenOptions& options) override {
    return SystemFile::Open(runtime_, path, options);
  }

  Status CreateDirectory(const std::string& path) override {
    if (path.empty()) return DEUT_ERROR(kInvalidArgument, "create directory: the path is empty");
    Status made = MakeDirectory(path);
    if (made == ErrorCode::kNotFound && ParentOf(path) != path) {
      DEUT_RETURN_IF_ERROR(CreateDirectory(ParentOf(path)));
      made = MakeDirectory(path);
    }
    if (!made.ok() && made != ErrorCode::kAlreadyExists) return made;
    DEUT_RETURN_IF_ERROR(Directory(path).status());
    return made.ok() ? SyncDirectory(ParentOf(path)) : Status::Ok();
  }

  Result<std::vector<std::string>> List(const std::string& directory) override {
    Descriptor descriptor(OpenDirectory("list", directory));
    if (descriptor.get() < 0) return ErrnoStatus("list", directory, errno);
    DIR* stream = fdopendir(descriptor.get());
    if (stream == nullptr) return ErrnoStatus("list", directory, errno);
    [[maybe_unused]] const int of_the_stream = descriptor.Release();
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int error = errno;
    closedir(stream);
    if (error != 0) return ErrnoStatus("list", directory, error);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (RetryShortage(runtime_, "rename", from, [&] { return rename(from.c_str(), to.c_str()); }) != 0)
      return ErrnoStatus(Concat("rename ", from, " to"), to, errno);
    return Status::Ok();
  }

  Status Remove(const std::string& path) override {
    if (RetryShortage(runtime_, "remove", path, [&] { return std::remove(path.c_str()); }) != 0)
      return ErrnoStatus("remove", path, errno);
    return Status::Ok();
  }

  Status SyncDirectory(const std::string& path) override {
    DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<const Descriptor> directory, Directory(path));
    int result;
    do {
      result = fsync(directory->get());
    } while (result != 0 && errno == EINTR);
    if (result != 0) return SyncStatus("sync of directory", path, errno);
    return Status::Ok();
  }

  Result<bool> Exists(const std::string& path) override {
    struct stat about{};
    if (stat(path.c_str(), &about) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ErrnoStatus("look up", path, errno);
  }

  Result<uint64_t> FreeBytes(const std::string& path) override {
    struct statvfs about{};
    if (statvfs(path.c_str(), &about) != 0) return ErrnoStatus("free space of", path, errno);
    return uint64_t{about.f_bavail} * about.f_frsize;
  }

  Result<uint64_t> CapacityBytes(const std::string& path) override {
    struct statvfs about{};
    if (statvfs(path.c_str(), &about) != 0) return ErrnoStatus("size of the file system of", path, errno);
    return uint64_t{about.f_blocks} * about.f_frsize;
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    // A further attempt follows only if a holder has removed the file meanwhile.
    for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
      bool made = false;
      Descriptor file(OpenLockFile(path, &made));
      if (file.get() < 0 && errno == ENOENT && !made) continue;
      if (file.get() < 0) return ErrnoStatus("open lock file", path, errno);
      // flock belongs to the open file description: a second Open conflicts also within one process.
      if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return ErrnoStatus("lock", path, errno);
        return DEUT_ERROR(kUnavailable, path, " is locked by ", Holder(file.get()));
      }
      if (!LockedIsThere(file.get(), path, &made)) continue;
      const int descriptor = file.get();
      auto lock = std::make_unique<SystemLock>(file.Release(), path, made);
      lock->RemoveWhenReleased(true);
      const std::string pid = Concat(getpid(), "\n");
      if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, pid.data(), pid.size(), 0) < 0) {
        return ErrnoStatus("write lock file", path, errno);
      }
      DEUT_RETURN_IF_ERROR(Directory(ParentOf(path)).status());
      lock->RemoveWhenReleased(false);
      return std::unique_ptr<FileLock>(std::move(lock));
    }
    return ErrnoStatus("open lock file", path, ENOENT);
  }

  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) override {
    if (kind_ != IoKind::kPosix) {
      Result<std::unique_ptr<IoQueue>> ring = UringQueue::Create(depth, runtime_);
      if (ring.ok() || kind_ == IoKind::kUring) return ring;
      // The kernel may grant some rings only, or small ones (RLIMIT_MEMLOCK, ENOMEM).
      LogWarning("a queue of ", depth, " requests uses pread/pwrite: ", ring.status().message());
    }
    return std::unique_ptr<IoQueue>(std::make_unique<PosixQueue>(depth, runtime_));
  }

  std::string name() const override { return name_; }

 private:
  // *made: this call has made the file, or failed to make it. False: the file was there, though it may be gone by now.
  int OpenLockFile(const std::string& path, bool* made) {
    const auto try_open = [&](int flags) {
      return RetryShortage(runtime_, "open lock file", path,
                           [&] { return open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0644); });
    };
    *made = true;
    const int descriptor = try_open(O_CREAT | O_EXCL);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
    *made = false;
    return try_open(0);
  }

  // Names the process that wrote the lock file, for a message.
  static std::string Holder(int descriptor) {
    char text[32] = {};
    if (pread(descriptor, text, sizeof(text) - 1, 0) <= 0) return "another process";
    const long pid = std::strtol(text, nullptr, 10);
    if (pid <= 0) return "another process";
    return pid == getpid() ? Concat("this process (", pid, ")") : Concat("process ", pid);
  }

  int OpenDirectory(std::string_view operation, const std::string& path) {
    return RetryShortage(runtime_, operation, path,
                         [&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  }

  // Returns the directory, which stays open from its first use on. A log or a page store cannot go on when the sync
  // of its directory fails, so that sync must not depend on a free descriptor. If another directory has taken the
  // name, it is opened instead.
  Result<std::shared_ptr<const Descriptor>> Directory(const std::string& path) {
    struct stat now{};
    if (stat(path.c_str(), &now) != 0) return ErrnoStatus("open directory", path, errno);
    {
      const MutexLock lock(mutex_);
      const auto found = directories_.find(path);
      struct stat kept{};
      if (found != directories_.end() && fstat(found->second->get(), &kept) == 0 && kept.st_dev == now.st_dev &&
          kept.st_ino == now.st_ino) {
        return found->second;
      }
    }
    auto opened = std::make_shared<const Descriptor>(OpenDirectory("open directory", path));
    if (opened->get() < 0) return ErrnoStatus("open directory", path, errno);
    const MutexLock lock(mutex_);
    // A process has one or two data folders. A caller with many directories gains nothing if all are kept.
    if (directories_.size() >= kMaxKeptDirectories) directories_.clear();
    directories_[path] = opened;
    return std::shared_ptr<const Descriptor>(std::move(opened));
  }

  static constexpr size_t kMaxKeptDirectories = 16;

  const IoKind kind_;
  const std::string name_;
  Runtime& runtime_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Descriptor>> directories_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Storage>> NewSystemStorage(IoKind kind, Runtime& runtime) {
  std::string name = kind == IoKind::kPosix ? "pread/pwrite" : "io_uring";
  if (kind != IoKind::kPosix) {
    const Status probe = UringQueue::Create(1, runtime).status();
    if (!probe.ok() && kind == IoKind::kUring) {
      return DEUT_ERROR(kIoError, "the kernel refuses io_uring (", probe.message(),
                        "): allow it (container seccomp profile, sysctl kernel.io_uring_disabled) or use pread/pwrite");
    }
    if (!probe.ok()) {
      kind = IoKind::kPosix;
      name = Concat("pread/pwrite (io_uring refused: ", probe.message(), ")");
    }
  }
  return std::unique_ptr<Storage>(std::make_unique<SystemStorage>(kind, std::move(name), runtime));
}

}  // namespace deut
