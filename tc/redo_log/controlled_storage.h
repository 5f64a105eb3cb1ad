// ControlledStorage: memory storage whose queues complete requests only when a test says so, in the order that it
// says. The bytes are written at once. It is for tests of the log's work between submission and completion.
// Thread-safety: all methods from any thread. One queue per storage. Ownership: owns the memory storage.
#ifndef TC_REDO_LOG_CONTROLLED_STORAGE_H_
#define TC_REDO_LOG_CONTROLLED_STORAGE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut::tc {

class ControlledStorage final : public Storage {
 public:
  ControlledStorage() : memory_(NewMemoryStorage(RealRuntime())) {}

  // While held, requests stay in flight until Complete. Hold(false) completes those that wait.
  void Hold(bool hold) {
    MutexLock lock(mutex_);
    hold_ = hold;
    if (!hold) CompleteLocked(held_.size(), 0);
  }
  size_t held() {
    MutexLock lock(mutex_);
    return held_.size();
  }
  // Completes the `index`-th of the requests in flight, in order of submission.
  void Complete(size_t index, Status status = Status::Ok()) {
    MutexLock lock(mutex_);
    if (!status.ok()) held_[index]->status = std::move(status);
    CompleteLocked(1, index);
  }

  // Makes a request in flight transfer only one byte.
  void Shorten(size_t index) {
    MutexLock lock(mutex_);
    held_[index]->transferred = 1;
  }

  Result<std::unique_ptr<IoQueue>> NewQueue(size_t /*depth*/) override {
    return std::unique_ptr<IoQueue>(new Queue(*this));
  }

  Result<std::unique_ptr<File>> Open(const std::string& path, const OpenOptions& options) override {
    return memory_->Open(path, options);
  }
  Status CreateDirectory(const std::string& path) override { return memory_->CreateDirectory(path); }
  Result<std::vector<std::string>> List(const std::string& directory) override { return memory_->List(directory); }
  Status Rename(const std::string& from, const std::string& to) override { return memory_->Rename(from, to); }
  Status Remove(const std::string& path) override { return memory_->Remove(path); }
  Status SyncDirectory(const std::string& path) override { return memory_->SyncDirectory(path); }
  Result<bool> Exists(const std::string& path) override { return memory_->Exists(path); }
  Result<uint64_t> FreeBytes(const std::string& path) override { return memory_->FreeBytes(path); }
  Result<uint64_t> CapacityBytes(const std::string& path) override { return memory_->CapacityBytes(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override { return memory_->Lock(path); }
  std::string name() const override { return "controlled"; }

 private:
  class Queue final : public IoQueue {
   public:
    explicit Queue(ControlledStorage& storage) : storage_(storage) {}
    Status Submit(IoRequest* request) override {
      request->status = request->file->Write(request->offset, request->data, request->bytes);
      request->transferred = request->bytes;
      MutexLock lock(storage_.mutex_);
      in_flight_.fetch_add(1);
      storage_.held_.push_back(request);
      if (!storage_.hold_) storage_.CompleteLocked(1, storage_.held_.size() - 1);
      return Status::Ok();
    }
    void Reap(std::vector<IoRequest*>* completed, Deadline deadline) override {
      for (;;) {
        const uint32_t seen = storage_.changed_.load();
        {
          MutexLock lock(storage_.mutex_);
          const bool woken = std::exchange(storage_.woken_, false);
          if (!storage_.completed_.empty() || woken || in_flight_.load() == 0) {
            in_flight_.fetch_sub(storage_.completed_.size());
            completed->insert(completed->end(), storage_.completed_.begin(), storage_.completed_.end());
            storage_.completed_.clear();
            return;
          }
        }
        if (!RealRuntime().Wait(storage_.changed_, seen, deadline)) return;
      }
    }
    void Wake() override {
      MutexLock lock(storage_.mutex_);
      storage_.woken_ = true;
      storage_.Changed();
    }
    size_t in_flight() const override { return in_flight_.load(); }

   private:
    ControlledStorage& storage_;
    std::atomic<size_t> in_flight_{0};
  };

  void CompleteLocked(size_t count, size_t index) DEUT_REQUIRES(mutex_) {
    const auto first = held_.begin() + static_cast<ptrdiff_t>(index);
    completed_.insert(completed_.end(), first, first + static_cast<ptrdiff_t>(count));
    held_.erase(first, first + static_cast<ptrdiff_t>(count));
    Changed();
  }
  void Changed() {
    changed_.fetch_add(1);
    RealRuntime().WakeAll(changed_);
  }

  const std::unique_ptr<Storage> memory_;
  Mutex mutex_{RealRuntime()};
  std::deque<IoRequest*> held_ DEUT_GUARDED_BY(mutex_);
  std::vector<IoRequest*> completed_ DEUT_GUARDED_BY(mutex_);
  bool hold_ DEUT_GUARDED_BY(mutex_) = false;
  bool woken_ DEUT_GUARDED_BY(mutex_) = false;
  std::atomic<uint32_t> changed_{0};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_CONTROLLED_STORAGE_H_
