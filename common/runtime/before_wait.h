// BeforeWait: a thread that works through a list registers a callback, `tell`, that runs just before the thread
// blocks. So another thread can take over the list meanwhile. The thread need not know which call below it blocks,
// because every wait of the project goes through a Runtime.
// TellingRuntime is a Runtime that calls `tell` before it blocks; it forwards everything else to the runtime behind
// it.
//
// While a BeforeWait lives, the first Wait of its thread on any TellingRuntime that is going to block calls `tell`
// first, at most once. With `patience`, it calls `tell` only when that much time has passed since the first such wait
// began. `tell` may itself wait. It costs nothing where no thread waits. A thread that blocks by other means than a
// Runtime (for example in a synchronous write) calls Tell before.
// Thread-safety: one thread makes, notifies and destroys a BeforeWait, and they do not nest; TellingRuntime as
// Runtime.
// Ownership: `tell` outlives its BeforeWait; the runtime behind outlives the TellingRuntime.
#ifndef COMMON_RUNTIME_BEFORE_WAIT_H_
#define COMMON_RUNTIME_BEFORE_WAIT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"

namespace deut {

class BeforeWait {
 public:
  explicit BeforeWait(const std::function<void()>& tell, Duration patience = Duration(0)) {
    tell_ = &tell;
    patience_ = patience;
    waiting_ = false;
  }
  ~BeforeWait() { tell_ = nullptr; }
  BeforeWait(const BeforeWait&) = delete;
  BeforeWait& operator=(const BeforeWait&) = delete;

  // The calling thread is about to block.
  static void Tell() {
    if (tell_ != nullptr) [[unlikely]]
      (*std::exchange(tell_, nullptr))();
  }

 private:
  friend class TellingRuntime;

  // Thread-local, because the wait may be in any function below, and no argument reaches there.
  static inline thread_local const std::function<void()>* tell_ = nullptr;
  static inline thread_local Duration patience_;  // 0: no patience is left
  static inline thread_local bool waiting_ = false;
  static inline thread_local MonotonicTime until_;  // end of the patience, once the thread has waited
};

class TellingRuntime final : public Runtime {
 public:
  explicit TellingRuntime(Runtime& behind) : behind_(behind) {}

  MonotonicTime Now() override { return behind_.Now(); }
  int64_t WallMicros() override { return behind_.WallMicros(); }
  uint64_t RandomSeed() override { return behind_.RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return behind_.StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (word.load(std::memory_order_seq_cst) != expected) return true;
    if (BeforeWait::tell_ != nullptr && BeforeWait::patience_ > Duration(0)) {
      if (!std::exchange(BeforeWait::waiting_, true)) BeforeWait::until_ = behind_.Now() + BeforeWait::patience_;
      const Deadline until = BeforeWait::until_;
      if (behind_.Wait(word, expected, std::min(deadline, until))) return true;
      if (deadline <= until) return false;
      BeforeWait::patience_ = Duration(0);
    }
    BeforeWait::Tell();
    return behind_.Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { behind_.Wake(word, waiters); }
  void Yield() override { behind_.Yield(); }

 private:
  Runtime& behind_;
};

}  // namespace deut

#endif  // COMMON_RUNTIME_BEFORE_WAIT_H_
