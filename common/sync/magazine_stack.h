// MagazineStack: a stack of magazines (block_pool.h), each of which holds some blocks of memory.
//
// The head is a 16-byte word: the first magazine and a count of changes, replaced by compare-and-swap. The count
//   tells apart a head that was removed and came back (ABA). A load reads the two halves separately, the count first.
//   If the halves are of two different moments, the compare-and-swap fails, because no count repeats.
// Steps. Push: next = head; head = the magazine. Pop: load `next` of the first magazine; head = that. The loser of a
//   compare-and-swap loads the head again. Another thread may own the first magazine by the time its `next` is
//   loaded. So a magazine's memory is never freed while a stack exists that it was in, and `next` is atomic.
// The thread that pops a magazine sees everything that was written to it before its push (release, acquire).
// Thread-safety: any thread. Ownership: nothing; magazines that are still in a stack when it is destroyed are leaked.
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
  // Returns null if the stack is empty.
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
  // Not inlined: the 16-byte compare-and-swap needs a register (rbx) through which a caller with a realigned frame,
  // as in a sanitizer build, may address that frame.
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
