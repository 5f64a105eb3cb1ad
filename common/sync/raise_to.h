// RaiseTo: sets a word that only rises to max(itself, value), sequentially consistent. Thread-safety: any thread.
#ifndef COMMON_SYNC_RAISE_TO_H_
#define COMMON_SYNC_RAISE_TO_H_

#include <atomic>
#include <cstdint>

namespace deut {

inline void RaiseTo(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t seen = word.load(std::memory_order_seq_cst);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_seq_cst)) {
  }
}

}  // namespace deut

#endif  // COMMON_SYNC_RAISE_TO_H_
