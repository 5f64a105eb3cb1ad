// FatalError: the first error after which nothing on the disk can be trusted any more. Later errors are consequences of
// it and are dropped. Internal to the page store; segment_store.h states which errors are fatal.
// Thread-safety: all methods from any thread; is_set() and an OK status() take no lock. Ownership: a value.
#ifndef DC_PAGE_STORE_FATAL_ERROR_H_
#define DC_PAGE_STORE_FATAL_ERROR_H_

#include <atomic>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut::dc {

class FatalError {
 public:
  explicit FatalError(Runtime& runtime) : mutex_(runtime) {}
  FatalError(const FatalError&) = delete;
  FatalError& operator=(const FatalError&) = delete;

  // The first call decides the error. Returns the error that status() reports from now on. REQUIRES: not OK.
  Status Set(Status error) {
    DEUT_CHECK(!error.ok());
    const MutexLock lock(mutex_);
    if (error_.ok()) error_ = std::move(error);
    set_.store(true);
    return error_;
  }
  bool is_set() const { return set_.load(); }
  Status status() const {
    if (!set_.load()) return Status::Ok();
    const MutexLock lock(mutex_);
    return error_;
  }

 private:
  std::atomic<bool> set_{false};
  mutable Mutex mutex_;
  Status error_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_FATAL_ERROR_H_
