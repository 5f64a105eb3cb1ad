// ReaderEviction: which transaction or snapshot is to be aborted so that others can write (rule S9, OverBudgetPolicy::kAbortReader): the oldest one,
// if it holds back what fills the budget.
//
// Nobody is aborted for what another cause holds back (a DC that is away or slow, an open transaction's own writes), nor while anything can still
//   leave memory, nor within kLeastHeld of becoming the oldest one: who is open for so short ends by himself.
// Thread-safety: one thread.
#ifndef TC_SERVER_READER_EVICTION_H_
#define TC_SERVER_READER_EVICTION_H_

#include <functional>
#include <utility>

#include "common/base/ids.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

class ReaderEviction {
 public:
  static constexpr Duration kLeastHeld = milliseconds(100);

  // `dc_is_at_rest`: the DC is there, and has applied all that it was sent.
  ReaderEviction(const Engine& engine, std::function<bool()> dc_is_at_rest)
      : engine_(engine), dc_is_at_rest_(std::move(dc_is_at_rest)) {}

  // The timestamp of who is to be aborted now; 0 = nobody.
  Timestamp Next() const;

 private:
  const Engine& engine_;
  const std::function<bool()> dc_is_at_rest_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_READER_EVICTION_H_
