#include "common/io/watched_storage.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <string_view>
#include <utility>

#include "common/observe/log.h"
#include "common/runtime/blocking_hook.h"
#include "common/sync/mutex.h"

namespace deut {
namespace {

int64_t Millis(Duration duration) { return duration_cast<milliseconds>(duration).count(); }

}  // namespace

class WatchedStorage::Watch {
 public:
  struct Operation {
    std::string_view name;  // a literal
    const std::string& path;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    MonotonicTime begin;
    Duration begun_at_clock = {};  // by the watch's clock
    bool slow = false;
    bool logged = false;
  };
  using Operations = std::list<Operation*>;

  Watch(Runtime& runtime, DiskWatchOptions options)
      : runtime_(runtime),
        options_(std::move(options)),
        check_interval_((options_.stuck_after == Duration() ? options_.slow_after
                                                            : std::min(options_.slow_after, options_.stuck_after)) /
                        4),
        mutex_(runtime),
        last_check_(runtime.Now()) {
    thread_ = runtime.StartThread("disk-watch", [this] { Run(); });
  }
  ~Watch() {
    stop_.store(1, std::memory_order_seq_cst);
    runtime_.WakeAll(stop_);
    thread_.reset();
    DEUT_CHECK(operations_.empty());
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // An operation under the watch, from construction to destruction. `waits`: it may wait for the disk on this thread,
  // so a thread that serves others hands over its work first.
  class Watched {
   public:
    Watched(Watch& watch, std::string_view name, const std::string& path, uint64_t offset, uint64_t bytes, bool waits)
        : watch_(watch),
          operation_{.name = name, .path = path, .offset = offset, .bytes = bytes, .begin = watch.runtime_.Now()},
          link_{&operation_},  // allocated outside the mutex
          at_(link_.begin()) {
      if (waits) BlockingHook::NotifyBlocking();
      const MutexLock lock(watch_.mutex_);
      operation_.begun_at_clock =
          watch_.clock_ + std::min(operation_.begin - watch_.last_check_, 2 * watch_.check_interval_);
      watch_.operations_.splice(watch_.operations_.end(), link_);
    }
    ~Watched() {
      {
        const MutexLock lock(watch_.mutex_);
        link_.splice(link_.begin(), watch_.operations_, at_);
        if (operation_.slow) --watch_.slow_in_flight_;
      }
      if (operation_.logged) {
        LogWarning("disk: ", Describe(operation_), " has come back after ",
                   Millis(watch_.runtime_.Now() - operation_.begin), " ms");
      }
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    Watch& watch_;
    Operation operation_;
    Operations link_;
    const Operations::iterator at_;
  };

  template <typename Body>
  auto RunWatched(std::string_view name, const std::string& path, uint64_t offset, uint64_t bytes, const Body& body,
                  bool waits = true) {
    const Watched watched(*this, name, path, offset, bytes, waits);
    return body();
  }

  DiskWatchStatistics statistics() const {
    DiskWatchStatistics statistics;
    const MutexLock lock(mutex_);
    statistics.slow_operations = slow_operations_;
    statistics.slow_in_flight = slow_in_flight_;
    if (slow_in_flight_ != 0) statistics.oldest_age = runtime_.Now() - operations_.front()->begin;
    return statistics;
  }

 private:
  static std::string Describe(const Operation& operation) {
    if (operation.bytes == 0) return Concat(operation.name, " ", operation.path);
    return Concat(operation.name, " ", operation.path, ", ", operation.bytes, " bytes at offset ", operation.offset);
  }

  void Run() {
    while (stop_.load(std::memory_order_seq_cst) == 0) {
      CheckOperations();
      runtime_.Wait(stop_, 0, runtime_.Now() + check_interval_);
    }
  }

  void CheckOperations() {
    const MonotonicTime now = runtime_.Now();
    std::string newly_slow;
    uint64_t others = 0;
    Status stuck;
    {
      const MutexLock lock(mutex_);
      clock_ += std::min(now - std::exchange(last_check_, now), 2 * check_interval_);
      if (!operations_.empty() && !stuck_reported_ && options_.stuck_after != Duration() &&
          clock_ - operations_.front()->begun_at_clock >= options_.stuck_after) {
        stuck_reported_ = true;
        stuck = DEUT_ERROR(kIoError, "the disk is stuck: ", Describe(*operations_.front()), ": no answer within ",
                           Millis(options_.stuck_after), " ms");
      }
      for (Operation* operation : operations_) {
        if (clock_ - operation->begun_at_clock < options_.slow_after) break;
        if (operation->slow) continue;
        operation->slow = true;
        ++slow_in_flight_;
        ++slow_operations_;
        if (!newly_slow.empty()) {
          ++others;
          continue;
        }
        operation->logged = true;
        newly_slow = Concat(Describe(*operation), " has not come back for ", Millis(now - operation->begin), " ms");
      }
    }
    if (!newly_slow.empty()) {
      LogWarning("disk: ", newly_slow, others == 0 ? "" : Concat(", nor have ", others, " other operations"));
    }
    if (!stuck.ok()) options_.on_stuck(stuck);
  }

  Runtime& runtime_;
  const DiskWatchOptions options_;
  const Duration check_interval_;
  mutable Mutex mutex_;
  Operations operations_ DEUT_GUARDED_BY(mutex_);
  uint64_t slow_in_flight_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t slow_operations_ DEUT_GUARDED_BY(mutex_) = 0;
  // The watch's time. It stands still while this process does not run (stopped, or its machine asleep), so that no
  // operation seems old then.
  Duration clock_ DEUT_GUARDED_BY(mutex_) = {};
  MonotonicTime last_check_ DEUT_GUARDED_BY(mutex_);
  bool stuck_reported_ DEUT_GUARDED_BY(mutex_) = false;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

namespace {

using Watch = WatchedStorage::Watch;

class WatchedFile final : public File {
 public:
  WatchedFile(Watch& watch, std::unique_ptr<File> file) : watch_(watch), file_(std::move(file)) {}

  const std::string& path() const override { return file_->path(); }
  Result<size_t> Read(uint64_t offset, void* data, size_t bytes) override {
    return watch_.RunWatched("the read of", path(), offset, bytes, [&] { return file_->Read(offset, data, bytes); });
  }
  Status Write(uint64_t offset, const void* data, size_t bytes) override {
    return watch_.RunWatched("the write of", path(), offset, bytes, [&] { return file_->Write(offset, data, bytes); });
  }
  Status Sync() override {
    return watch_.RunWatched("the sync of", path(), 0, 0, [&] { return file_->Sync(); });
  }
  Result<uint64_t> Size() override {
    return watch_.RunWatched("the size query of", path(), 0, 0, [&] { return file_->Size(); });
  }
  Status Truncate(uint64_t bytes) override {
    return watch_.RunWatched("the truncation of", path(), 0, 0, [&] { return file_->Truncate(bytes); });
  }
  Status Allocate(uint64_t bytes) override {
    return watch_.RunWatched("the allocation of", path(), 0, bytes, [&] { return file_->Allocate(bytes); });
  }
  File& file() { return *file_; }

 private:
  Watch& watch_;
  const std::unique_ptr<File> file_;
};

// Requests name watched files; this queue replaces them by the files that the underlying queue knows.
class WatchedQueue final : public IoQueue {
 public:
  WatchedQueue(Watch& watch, std::unique_ptr<IoQueue> queue) : watch_(watch), queue_(std::move(queue)) {}

  Status Submit(IoRequest* request) override { return Begin(request, &IoQueue::Submit); }
  Status SubmitLater(IoRequest* request) override { return Begin(request, &IoQueue::SubmitLater); }
  void Reap(std::vector<IoRequest*>* completed, Deadline deadline) override {
    const size_t before = completed->size();
    queue_->Reap(completed, deadline);
    for (size_t i = before; i < completed->size(); ++i) {
      const auto found =
          std::ranges::find_if(requests_, [&](const Request& each) { return each.request == (*completed)[i]; });
      (*completed)[i]->file = found->file;
      requests_.erase(found);
    }
  }
  void Wake() override { queue_->Wake(); }
  size_t in_flight() const override { return queue_->in_flight(); }

 private:
  struct Request {
    IoRequest* request;
    File* file;  // the watched file that the request named
    std::unique_ptr<Watch::Watched> watched;
  };

  static std::string_view NameOf(IoRequest::Kind kind) {
    switch (kind) {
      case IoRequest::Kind::kRead:
        return "the read of";
      case IoRequest::Kind::kWrite:
        return "the write of";
      case IoRequest::Kind::kSync:
        return "the sync of";
    }
    return "the transfer of";
  }

  Status Begin(IoRequest* request, Status (IoQueue::*submit)(IoRequest*)) {
    File* const file = request->file;
    auto watched = std::make_unique<Watch::Watched>(watch_, NameOf(request->kind), file->path(), request->offset,
                                                    request->bytes, /*waits=*/false);
    request->file = &static_cast<WatchedFile*>(file)->file();
    Status status = (*queue_.*submit)(request);
    if (status.ok()) {
      requests_.push_back({.request = request, .file = file, .watched = std::move(watched)});
    } else {
      request->file = file;
    }
    return status;
  }

  Watch& watch_;
  std::vector<Request> requests_;  // those in flight
  // Declared behind `requests_`: its destructor waits for the requests in flight, which are watched until then.
  const std::unique_ptr<IoQueue> queue_;
};

}  // namespace

WatchedStorage::WatchedStorage(Runtime& runtime, Storage& storage, DiskWatchOptions options)
    : storage_(storage), watch_(std::make_unique<Watch>(runtime, std::move(options))) {}
WatchedStorage::~WatchedStorage() = default;

DiskWatchStatistics WatchedStorage::statistics() const { return watch_->statistics(); }

Result<std::unique_ptr<File>> WatchedStorage::Open(const std::string& path, const OpenOptions& options) {
  auto opened = watch_->RunWatched("the opening of", path, 0, 0, [&] { return storage_.Open(path, options); });
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<File>(std::make_unique<WatchedFile>(*watch_, std::move(*opened)));
}
Status WatchedStorage::CreateDirectory(const std::string& path) {
  return watch_->RunWatched("the creation of", path, 0, 0, [&] { return storage_.CreateDirectory(path); });
}
Result<std::vector<std::string>> WatchedStorage::List(const std::string& directory) {
  return watch_->RunWatched("the listing of", directory, 0, 0, [&] { return storage_.List(directory); });
}
Status WatchedStorage::Rename(const std::string& from, const std::string& to) {
  return watch_->RunWatched("the renaming of", from, 0, 0, [&] { return storage_.Rename(from, to); });
}
Status WatchedStorage::Remove(const std::string& path) {
  return watch_->RunWatched("the removal of", path, 0, 0, [&] { return storage_.Remove(path); });
}
Status WatchedStorage::SyncDirectory(const std::string& path) {
  return watch_->RunWatched("the sync of", path, 0, 0, [&] { return storage_.SyncDirectory(path); });
}
Result<bool> WatchedStorage::Exists(const std::string& path) {
  return watch_->RunWatched("the lookup of", path, 0, 0, [&] { return storage_.Exists(path); });
}
Result<uint64_t> WatchedStorage::FreeBytes(const std::string& path) {
  // The kernel answers from memory, and each batch of the log asks for it.
  return watch_->RunWatched(
      "the free-space query of", path, 0, 0, [&] { return storage_.FreeBytes(path); }, /*waits=*/false);
}
Result<std::unique_ptr<FileLock>> WatchedStorage::Lock(const std::string& path) {
  return watch_->RunWatched("the locking of", path, 0, 0, [&] { return storage_.Lock(path); });
}
Result<std::unique_ptr<IoQueue>> WatchedStorage::NewQueue(size_t depth) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, storage_.NewQueue(depth));
  return std::unique_ptr<IoQueue>(std::make_unique<WatchedQueue>(*watch_, std::move(queue)));
}

Result<uint64_t> WatchedStorage::CapacityBytes(const std::string& path) {
  return watch_->RunWatched("the capacity query of", path, 0, 0, [&] { return storage_.CapacityBytes(path); });
}

}  // namespace deut
