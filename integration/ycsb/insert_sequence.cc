#include "integration/ycsb/insert_sequence.h"

namespace deut::ycsb {

void InsertSequence::Acknowledge(uint64_t number) {
  while (number - visible() >= kWindow) {
    if (stopped_.load()) return;
    runtime_.Yield();
  }
  // Sequentially consistent: if two threads acknowledge v and v + 1 at the same time, at least one of them sees both
  // slots. Otherwise each could miss the other's slot, and visible_ would stop below an acknowledged number.
  slots_[number % kWindow].store(number + 1);
  uint64_t edge = visible_.load();
  while (slots_[edge % kWindow].load() == edge + 1) {
    if (visible_.compare_exchange_strong(edge, edge + 1)) ++edge;
  }
}

}  // namespace deut::ycsb
