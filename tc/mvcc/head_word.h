// HeadWord: {last_read and flags, head of the version chain} of a record as one 16-byte word (rule R5).
//
// Every change is a 16-byte compare-and-swap. So an install and the check of last_read are one step, and sealing is one step.
// Flags in last_read: DEAD seals the entry (R5). QUEUED means that the entry is in the read cache's queue, so it stays (read_cache.h).
// A load reads the two halves, 8 bytes each, last_read first. A reader that finds last_read late enough and then loads the head sees every install
//   that did not see that last_read.
// The processor must have cmpxchg16b (checked at start); without it the program does not start.
// Thread-safety: any thread. Ownership: none; it does not own the chain.
#ifndef TC_MVCC_HEAD_WORD_H_
#define TC_MVCC_HEAD_WORD_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut::tc {

struct RecordVersion;

class HeadWord {
 public:
  static constexpr uint64_t kDead = uint64_t{1} << 63;
  static constexpr uint64_t kQueued = uint64_t{1} << 62;
  static constexpr uint64_t kFlags = kDead | kQueued;

  struct Value {
    uint64_t bits;  // last_read and flags
    RecordVersion* head;
    bool dead() const { return (bits & kDead) != 0; }
    bool queued() const { return (bits & kQueued) != 0; }
    friend bool operator==(const Value&, const Value&) = default;
    Timestamp last_read() const { return Timestamp{bits & ~kFlags}; }
    Value WithLastRead(Timestamp timestamp) const { return {(bits & kFlags) | timestamp.value, head}; }
    Value WithHead(RecordVersion* new_head) const { return {bits, new_head}; }
  };

  Value Load() const {
    Value value;
    value.bits = __atomic_load_n(&halves_[0], __ATOMIC_SEQ_CST);
    value.head = reinterpret_cast<RecordVersion*>(__atomic_load_n(&halves_[1], __ATOMIC_SEQ_CST));
#if __has_feature(thread_sanitizer)
    // ThreadSanitizer records the release of a compare-and-swap under the word's address, and does not find it under that of the second half.
    (void)__atomic_load_n(&halves_[0], __ATOMIC_SEQ_CST);
#endif
    return value;
  }

  // On failure loads the present value into `expected`.
  bool CompareExchange(Value& expected, Value desired) {
    Word expected_word = Pack(expected);
    if (__atomic_compare_exchange_n(&word_, &expected_word, Pack(desired), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return true;
    expected = Unpack(expected_word);
    return false;
  }

 private:
  using Word = unsigned __int128;
  static_assert(__atomic_always_lock_free(sizeof(Word), nullptr), "compile with -mcx16 (x86-64-v3)");

  static Word Pack(Value v) { return (Word{reinterpret_cast<uintptr_t>(v.head)} << 64) | v.bits; }
  static Value Unpack(Word w) {
    return Value{static_cast<uint64_t>(w), reinterpret_cast<RecordVersion*>(static_cast<uintptr_t>(w >> 64))};
  }

  union {
    alignas(16) Word word_ = 0;
    uint64_t halves_[2];
  };
};
static_assert(sizeof(HeadWord) == 16);

}  // namespace deut::tc

#endif  // TC_MVCC_HEAD_WORD_H_
