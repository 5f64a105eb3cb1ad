// Mutex, MutexLock, CondVar: blocking mutual exclusion over a Runtime, for cold paths only (start-up, files,
// sessions). No read, update, commit or scan path takes one, except inside the heap of pages (slab_heap.h).
// States of a mutex: 0 free, 1 held, 2 held and perhaps waited for. Lock: 0 -> 1 by compare-and-swap, else exchange
//   to 2 and wait until the exchange finds 0. Unlock: exchange to 0; a thread whose exchange finds 2 wakes one
//   waiter.
// Thread-safety: all methods from any thread; not recursive, not fair. Clang's thread-safety analysis knows these
//   classes: mark what a mutex guards with DEUT_GUARDED_BY, methods with DEUT_REQUIRES and DEUT_EXCLUDES.
// Why not absl::Mutex: it blocks in the kernel by itself, and a simulated runtime could not decide who waits.
// Lifetime: the runtime outlives them. The thread that unlocked a mutex last may destroy it.
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
    if (state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kWaited, std::memory_order_acquire) != kFree) runtime_.Wait(state_, kWaited, kNoDeadline);
  }

  void Unlock() __attribute__((release_capability())) {
    Runtime& runtime = runtime_;  // after the exchange the mutex may be gone; the wake touches its address only
    if (state_.exchange(kFree, std::memory_order_release) == kWaited) runtime.Wake(state_, 1);
  }

 private:
  friend class CondVar;
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

// A wait may return for no reason, so the caller tests its condition again. The condition is changed under the mutex.
class CondVar {
 public:
  void Wait(Mutex& mutex) DEUT_REQUIRES(mutex) { WaitUntil(mutex, kNoDeadline); }

  // False only when the deadline has passed. In either case the caller holds the mutex again.
  bool WaitUntil(Mutex& mutex, Deadline deadline) DEUT_REQUIRES(mutex) __attribute__((no_thread_safety_analysis)) {
    waiters_.fetch_add(1, std::memory_order_relaxed);  // ordered by the mutex
    const uint32_t round = round_.load(std::memory_order_relaxed);
    mutex.Unlock();
    const bool in_time = mutex.runtime_.Wait(round_, round, deadline);
    mutex.Lock();
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    return in_time;
  }

  // Called with the mutex held, or by the thread that changed the condition after it released the mutex.
  void NotifyOne(Runtime& runtime) { Notify(runtime, 1); }
  void NotifyAll(Runtime& runtime) { Notify(runtime, INT32_MAX); }

 private:
  void Notify(Runtime& runtime, int waiters) {
    if (waiters_.load(std::memory_order_relaxed) == 0) return;
    round_.fetch_add(1, std::memory_order_relaxed);
    runtime.Wake(round_, waiters);
  }

  std::atomic<uint32_t> round_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace deut

#endif  // COMMON_SYNC_MUTEX_H_
