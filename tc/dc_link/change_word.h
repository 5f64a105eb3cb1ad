// ChangeWord: a counter that threads wait on until a state may have changed. Each then examines the state itself.
//
// Steps. Waiter: load the counter, look at the state; if it is not as wanted: waiters += 1, sleep while the counter
// is as loaded.
//   Changer: change the state, counter += 1, wake if waiters > 0. All are sequentially consistent. So either the
//   changer sees the waiter, or the waiter's sleep sees the new counter and does not begin. (A wrap-around of the
//   counter within one look is no concern.)
// Thread-safety: all methods from any thread. Ownership: the runtime outlives it.
#ifndef TC_DC_LINK_CHANGE_WORD_H_
#define TC_DC_LINK_CHANGE_WORD_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"

namespace deut::tc {

class ChangeWord {
 public:
  explicit ChangeWord(Runtime& runtime) : runtime_(runtime) {}
  ChangeWord(const ChangeWord&) = delete;
  ChangeWord& operator=(const ChangeWord&) = delete;

  uint32_t seen() const { return word_.load(std::memory_order_seq_cst); }

  void Bump() {
    word_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) > 0) runtime_.WakeAll(word_);
  }

  // Returns after a bump since `seen` was loaded, or at the deadline, or spuriously. False only at the deadline.
  bool Wait(uint32_t seen, Deadline deadline) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    const bool in_time = runtime_.Wait(word_, seen, deadline);
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
    return in_time;
  }

 private:
  Runtime& runtime_;
  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_CHANGE_WORD_H_
