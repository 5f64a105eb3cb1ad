// AppliedPosition: a position that one thread advances and any thread reads, as one 16-byte word. Ownership: a value.
// Thread-safety: Advance by one thread at a time, load by any. Latch-free (16-byte compare-and-swap; the build checks
// the processor).
#ifndef DC_SERVER_APPLIED_POSITION_H_
#define DC_SERVER_APPLIED_POSITION_H_

#include <atomic>
#include <cstdint>

#include "common/base/ids.h"

namespace deut::dc {

class AppliedPosition {
 public:
  AppliedPosition() = default;
  explicit AppliedPosition(Position position) : word_(Word{position.commit.value, position.sequence}) {}

  Position load() const {
    const Word word = word_.load(std::memory_order_acquire);
    return Position{Lsn(word.commit), static_cast<uint32_t>(word.sequence)};
  }

  // Sets the position to the later of itself and `position`.
  void Advance(Position position) {
    Word word = word_.load(std::memory_order_acquire);
    while (
        Position{Lsn(word.commit), static_cast<uint32_t>(word.sequence)} < position &&
        !word_.compare_exchange_weak(word, Word{position.commit.value, position.sequence}, std::memory_order_acq_rel)) {
    }
  }

 private:
  struct alignas(16) Word {
    uint64_t commit = 0;
    uint64_t sequence = 0;
  };
  static_assert(std::atomic<Word>::is_always_lock_free);
  std::atomic<Word> word_{Word{}};
};

}  // namespace deut::dc

#endif  // DC_SERVER_APPLIED_POSITION_H_
