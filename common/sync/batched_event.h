// BatchedEvent: an event that is set together with others. The events of one batch share a word that their waiters sleep on, so one system call
// wakes the waiters of the whole batch, and none of them runs before the signaller has set all of the batch's events.
//
// Signaller: Set each event of the batch, then Wake their word once. Waiter: load the word, look at the event, sleep while the word has that value.
//   Race. The waiter looks before the event is set: then the word was loaded before Wake changes it, so the waiter does not sleep, or is woken.
//   The waiter looks afterwards: it does not sleep. The order holds because stores and loads of both are sequentially consistent.
// A word may serve several batches. Then a waiter of another batch wakes, finds its event not set, and sleeps again.
// Lifetime: a waiter may destroy its event as soon as that is set, also before Wake. So the signaller does not touch an event after its Set.
// Thread-safety: Set by one thread; Wait and IsSet from any; Wake from any. Ownership: none; the word outlives its waiters.
#ifndef COMMON_SYNC_BATCHED_EVENT_H_
#define COMMON_SYNC_BATCHED_EVENT_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"

namespace deut {

class BatchedEvent {
 public:
  // Words that are used at the same time by different threads lie in cache lines of their own.
  class alignas(64) Word {
   public:
    void Wake(Runtime& runtime) {
      value_.fetch_add(1, std::memory_order_seq_cst);
      runtime.WakeAll(value_);
    }

   private:
    friend class BatchedEvent;
    std::atomic<uint32_t> value_{0};
  };

  bool IsSet() const { return set_.load(std::memory_order_seq_cst); }

  // Wakes nobody: Word::Wake must follow. REQUIRES: the word is read out of the event's surroundings before, which may be gone afterwards.
  void Set() { set_.store(true, std::memory_order_seq_cst); }

  // True once set; false when the deadline passed first. REQUIRES: `word` is the one that the signaller wakes.
  bool Wait(Runtime& runtime, Word& word, Deadline deadline) {
    for (;;) {
      const uint32_t seen = word.value_.load(std::memory_order_seq_cst);
      if (IsSet()) return true;
      if (!runtime.Wait(word.value_, seen, deadline)) return IsSet();
    }
  }

 private:
  std::atomic<bool> set_{false};
};

}  // namespace deut

#endif  // COMMON_SYNC_BATCHED_EVENT_H_
