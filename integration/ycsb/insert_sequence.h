// InsertSequence hands out the numbers of new records to inserting workers. All records below visible() are
// acknowledged, so readers draw their records from these.
//
// Latch-free. Draw fetches and adds `next_`. Acknowledge(k) writes k + 1 into slot k mod kWindow (release). Then it
// advances `visible_` by compare-and-swap from v to v + 1 while slot v mod kWindow holds v + 1. A slot holds the
// number itself, and `visible_` only rises, so no slot needs clearing and there is no ABA. The loser of a
// compare-and-swap reads the slot again.
// A slot may be overwritten only once its number is below `visible_`. An acknowledgement that is a window ahead
// therefore waits (yields) for the slowest insert. A thread that holds numbers a window apart must acknowledge the
// smallest one first.
// Thread-safety: any thread may call all methods.
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

  // REQUIRES: the records below `first` exist.
  InsertSequence(Runtime& runtime, uint64_t first)
      : runtime_(runtime), slots_(kWindow), next_(first), visible_(first) {}

  uint64_t Draw() { return next_.fetch_add(1); }
  void Acknowledge(uint64_t number);
  uint64_t visible() const { return visible_.load(std::memory_order_acquire); }
  // Ends the waits of Acknowledge. From then on visible() may stop rising.
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
