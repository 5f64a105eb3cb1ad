// Mutex: a lock for cold paths (connecting, configuration, statistics). Hot paths of tc/ and dc/ are latch-free and have none.
// States of the word: 0 free, 1 held, 2 held and perhaps waited for. Lock: compare-and-swap 0 -> 1; who loses exchanges to 2 and waits
// while it is 2. Unlock: exchange to 0, and wake one waiter if it was 2. Not recursive, not fair.
// Waits go through the Runtime, as every wait does. Known to clang's thread-safety analysis: DEUT_GUARDED_BY, DEUT_REQUIRES.
#ifndef COMMON_SYNC_MUTEX_H_
#define COMMON_SYNC_MUTEX_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"

#define DEUT_GUARDED_BY(mutex) __attribute__((guarded_by(mutex)))
#define DEUT_REQUIRES(mutex) __attribute__((requires_capability(mutex)))
#define DEUT_EXCLUDES(mutex) __attribute__((locks_excluded(mutex)))

namespace deut {

class __attribute__((capability("mutex"))) Mutex {
 public:
  explicit Mutex(Runtime& runtime) : runtime_(runtime) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() __attribute__((acquire_capability())) {
    uint32_t state = kFree;
    if (state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) return;
    while (state_.exchange(kWaited, std::memory_order_acquire) != kFree) runtime_.Wait(state_, kWaited, kNoDeadline);
  }

  void Unlock() __attribute__((release_capability())) {
    if (state_.exchange(kFree, std::memory_order_release) == kWaited) runtime_.Wake(state_, 1);
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kWaited = 2;
  Runtime& runtime_;
  std::atomic<uint32_t> state_{kFree};
};

class __attribute__((scoped_lockable)) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) __attribute__((acquire_capability(mutex))) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() __attribute__((release_capability())) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace deut

#endif  // COMMON_SYNC_MUTEX_H_
