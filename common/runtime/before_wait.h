// BeforeWait: a thread that works off a list asks to be told when it is about to block, so that another one can go on with the list meanwhile. What
// blocks, and how deep below, it need not know: every wait of the project goes through a Runtime. TellingRuntime is one that tells; all else it
// leaves to the one behind it.
//
// While a BeforeWait lives, the first Wait of its thread on any TellingRuntime that is going to block calls `tell` before; at most once. With
// `patience` it does so only when it has waited for so long, counted from the first such wait on. `tell` may itself wait. Costs nothing where nobody
// waits. Who blocks by other means than a Runtime (a write that is to reach the disk) calls Tell before.
// Thread-safety: a BeforeWait is made, told and destroyed by one thread, and they do not nest; TellingRuntime as Runtime.
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

  // This thread is about to block.
  static void Tell() {
    if (tell_ != nullptr) [[unlikely]]
      (*std::exchange(tell_, nullptr))();
  }

 private:
  friend class TellingRuntime;

  // A wait can be anywhere below, so it is not passed on from call to call.
  static inline thread_local const std::function<void()>* tell_ = nullptr;
  static inline thread_local Duration patience_;  // 0: none is left
  static inline thread_local bool waiting_ = false;
  static inline thread_local MonotonicTime until_;  // of its patience, once it has waited
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
