// BatchedEvent: an event that is set together with others. The events of one batch share a word on which their waiters sleep. So one system call
// wakes the waiters of the whole batch, and no sleeping waiter runs before the signaller has set all events of the batch.
//
// The signaller sets each event of the batch, then calls Wake on their word once. The waiter loads the word, looks at the event, and sleeps while the
// word has the loaded value.
//   Race. If the waiter looks before the event is set, it has loaded the word before Wake changes it. So it does not sleep, or is woken.
//   If the waiter looks after the event is set, it does not sleep. The order holds because all these loads and stores are sequentially consistent.
// A word may serve several batches. Then a waiter of another batch wakes, finds its event not set, and sleeps again.
// Lifetime: a waiter may destroy its event as soon as the event is set, even before Wake. So the signaller does not touch an event after its Set.
// Thread-safety: one thread calls Set; any thread calls Wait, IsSet and Wake. Ownership: none; the word outlives its waiters.
#ifndef COMMON_SYNC_BATCHED_EVENT_H_
#define COMMON_SYNC_BATCHED_EVENT_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"

namespace deut {

class BatchedEvent {
 public:
  // The word of a batch. It has a cache line of its own, because different threads use several words at the same time.
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

  // Sets the event without waking a thread: Word::Wake must follow. REQUIRES: the caller has fetched the pointer to the word before, because the
  // object that holds the event may be destroyed from now on.
  void Set() { set_.store(true, std::memory_order_seq_cst); }

  // Waits until the event is set. False: the deadline passed before. REQUIRES: `word` is the word that the signaller wakes.
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
