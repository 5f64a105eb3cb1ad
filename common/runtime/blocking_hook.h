// BlockingHook: a thread that works through a list registers a callback, `hook`, that runs just before the thread
// blocks. So another thread can take over the list meanwhile. The thread need not know which call below it blocks,
// because every wait of the project goes through a Runtime.
// BlockingHookRuntime is a Runtime that calls `hook` before it blocks; it forwards everything else to the runtime
// behind it.
//
// While a BlockingHook lives, the first Wait of its thread on any BlockingHookRuntime that is going to block calls
// `hook` first, at most once. With `patience`, it calls `hook` only when that much time has passed since the first such
// wait began. `hook` may itself wait. It costs nothing where no thread waits. A thread that blocks by other means than
// a Runtime (for example in a synchronous write) calls NotifyBlocking before.
// Thread-safety: one thread makes, notifies and destroys a BlockingHook, and they do not nest; BlockingHookRuntime as
// Runtime.
// Ownership: `hook` outlives its BlockingHook; the runtime behind outlives the BlockingHookRuntime.
#ifndef COMMON_RUNTIME_BLOCKING_HOOK_H_
#define COMMON_RUNTIME_BLOCKING_HOOK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"

namespace deut {

class BlockingHook {
 public:
  explicit BlockingHook(const std::function<void()>& hook, Duration patience = Duration(0)) {
    hook_ = &hook;
    patience_ = patience;
    waiting_ = false;
  }
  ~BlockingHook() { hook_ = nullptr; }
  BlockingHook(const BlockingHook&) = delete;
  BlockingHook& operator=(const BlockingHook&) = delete;

  // The calling thread is about to block.
  static void NotifyBlocking() {
    if (hook_ != nullptr) [[unlikely]]
      (*std::exchange(hook_, nullptr))();
  }

 private:
  friend class BlockingHookRuntime;

  // Thread-local, because the wait may be in any function below, and no argument reaches there.
  static inline thread_local const std::function<void()>* hook_ = nullptr;
  static inline thread_local Duration patience_;  // 0: no patience is left
  static inline thread_local bool waiting_ = false;
  static inline thread_local MonotonicTime until_;  // end of the patience, once the thread has waited
};

class BlockingHookRuntime final : public Runtime {
 public:
  explicit BlockingHookRuntime(Runtime& behind) : behind_(behind) {}

  MonotonicTime Now() override { return behind_.Now(); }
  int64_t WallMicros() override { return behind_.WallMicros(); }
  uint64_t RandomSeed() override { return behind_.RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return behind_.StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (word.load(std::memory_order_seq_cst) != expected) return true;
    if (BlockingHook::hook_ != nullptr && BlockingHook::patience_ > Duration(0)) {
      if (!std::exchange(BlockingHook::waiting_, true)) BlockingHook::until_ = behind_.Now() + BlockingHook::patience_;
      const Deadline until = BlockingHook::until_;
      if (behind_.Wait(word, expected, std::min(deadline, until))) return true;
      if (deadline <= until) return false;
      BlockingHook::patience_ = Duration(0);
    }
    BlockingHook::NotifyBlocking();
    return behind_.Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { behind_.Wake(word, waiters); }
  void Yield() override { behind_.Yield(); }

 private:
  Runtime& behind_;
};

}  // namespace deut

#endif  // COMMON_RUNTIME_BLOCKING_HOOK_H_
