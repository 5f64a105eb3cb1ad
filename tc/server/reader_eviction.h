// ReaderEviction: which transaction or snapshot is to be aborted so that others can write (rule S9, OverBudgetPolicy::kAbortReader): the oldest one,
// if it holds back what fills the budget.
//
// Nobody is aborted for what another cause holds back (a DC that is away or slow), nor while values can still leave memory, nor within kLeastHeld of
// becoming the oldest one: who is open for so short ends by himself.
// Thread-safety: one thread.
#ifndef TC_SERVER_READER_EVICTION_H_
#define TC_SERVER_READER_EVICTION_H_

#include "common/base/ids.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

class ReaderEviction {
 public:
  static constexpr Duration kLeastHeld = milliseconds(100);

  explicit ReaderEviction(const Engine& engine) : engine_(engine) {}

  // The timestamp of who is to be aborted now; 0 = nobody.
  Timestamp Next() const;

 private:
  const Engine& engine_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_READER_EVICTION_H_
