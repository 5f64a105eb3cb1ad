// InsertSequence: hands out the numbers of new records to inserting workers, and knows up to where all are acknowledged: readers draw
// from records below visible(), which therefore exist.
//
// Latch-free. `next_` is fetched-and-added by Take. Acknowledge(k) writes k + 1 into slot k mod window (release), then advances
// `visible_` by compare-and-swap from v to v + 1 while slot v mod window holds v + 1. A slot holds the number itself and `visible_`
// only rises, so there is nothing to clear and no ABA; the loser of a compare-and-swap looks again. A slot may be overwritten only
// once its number is below visible_: an acknowledgement that is a window ahead waits (yields) for the slowest insert. So whoever
// holds several numbers acknowledges the smallest first where they are a window apart.
// Thread-safety: all methods from any thread.
#ifndef INTEGRATION_YCSB_INSERT_SEQUENCE_H_
#define INTEGRATION_YCSB_INSERT_SEQUENCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/runtime/runtime.h"

namespace deut::ycsb {

class InsertSequence {
 public:
  static constexpr size_t kWindow = 1 << 16;

  // Records below `first` exist.
  InsertSequence(Runtime& runtime, uint64_t first)
      : runtime_(runtime), slots_(kWindow), next_(first), visible_(first) {}

  uint64_t Take() { return next_.fetch_add(1); }
  void Acknowledge(uint64_t number);
  uint64_t visible() const { return visible_.load(std::memory_order_acquire); }
  // Ends the waits of Acknowledge; visible() may stand still from then on.
  void Stop() { stopped_.store(true); }

 private:
  Runtime& runtime_;
  std::vector<std::atomic<uint64_t>> slots_;
  alignas(64) std::atomic<uint64_t> next_;
  alignas(64) std::atomic<uint64_t> visible_;
  std::atomic<bool> stopped_{false};
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_INSERT_SEQUENCE_H_
