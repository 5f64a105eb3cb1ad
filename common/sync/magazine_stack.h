// MagazineStack: a stack of magazines (block_pool.h), each of which holds some blocks of memory.
//
// The head is a 16-byte word of the first magazine and a count of changes, replaced by compare-and-swap, so that a head which has gone and come
//   back is told apart. Loads read the halves, the count first; halves of two different moments fail the compare-and-swap, as no count repeats.
// Steps. Push: next = head; head: it. Pop: look at the first one's `next`; head: that. Who loses looks at the head again. The first one may be
//   another thread's by the time its `next` is loaded: so a magazine's memory is never freed while there are stacks it was in, and `next` is atomic.
// What was written to a magazine before its push is seen by who pops it (release, acquire).
// Thread-safety: any thread. Ownership: nothing; what is left in a stack at its end is lost.
#ifndef COMMON_SYNC_MAGAZINE_STACK_H_
#define COMMON_SYNC_MAGAZINE_STACK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/testing/test_points.h"

namespace deut {

struct Magazine {
  static constexpr uint32_t kBlocks = 30;

  bool empty() const { return count == 0; }
  bool full() const { return count == kBlocks; }

  std::atomic<Magazine*> next{nullptr};
  uint32_t count = 0;
  void* blocks[kBlocks] = {};
};

class MagazineStack {
 public:
  constexpr MagazineStack() = default;
  MagazineStack(const MagazineStack&) = delete;
  MagazineStack& operator=(const MagazineStack&) = delete;

  void Push(Magazine* magazine) {
    for (Head seen = Load();;) {
      magazine->next.store(seen.first, std::memory_order_relaxed);
      DEUT_POINT("magazine_stack.push.before_cas");
      if (!DEUT_CAS_FAILS("magazine_stack.push.cas") && Replace(seen, magazine)) return;
      seen = Load();
    }
  }
  // Null if there is none.
  Magazine* Pop() {
    for (Head seen = Load();;) {
      if (seen.first == nullptr) return nullptr;
      Magazine* const next = seen.first->next.load(std::memory_order_relaxed);
      DEUT_POINT("magazine_stack.pop.before_cas");
      if (!DEUT_CAS_FAILS("magazine_stack.pop.cas") && Replace(seen, next)) return seen.first;
      seen = Load();
    }
  }

 private:
  struct Head {
    Magazine* first;
    uint64_t changes;
  };
  using Word = unsigned __int128;
  static_assert(__atomic_always_lock_free(sizeof(Word), nullptr), "compile with -mcx16 (x86-64-v3)");

  Head Load() const {
    const uint64_t changes = __atomic_load_n(&halves_[0], __ATOMIC_ACQUIRE);
    return {reinterpret_cast<Magazine*>(__atomic_load_n(&halves_[1], __ATOMIC_ACQUIRE)), changes};
  }
  // A function of its own: its instruction needs a register that a caller with a realigned frame, as under a sanitizer, may address that by.
  __attribute__((noinline)) bool Replace(Head seen, Magazine* first) {
    Word expected = Pack(seen);
    const uint64_t changes = DEUT_OMITTED("pool.count_changes") ? seen.changes : seen.changes + 1;
    return __atomic_compare_exchange_n(&word_, &expected, Pack({first, changes}), false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
  }
  static Word Pack(Head head) { return (Word{reinterpret_cast<uintptr_t>(head.first)} << 64) | head.changes; }

  union {
    alignas(16) Word word_ = 0;
    uint64_t halves_[2];
  };
};

}  // namespace deut

#endif  // COMMON_SYNC_MAGAZINE_STACK_H_
