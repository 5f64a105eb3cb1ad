// ReaderEviction: decides which transaction or snapshot to abort so that others can write (rule S9,
// OverBudgetPolicy::kAbortReader). It is the oldest one, if that holds back the memory that fills the budget.
//
// No reader is aborted if something else holds the memory back: a DC that is away or slow, or an open transaction's
//   own writes. None is aborted while anything can still leave memory. None is aborted within kMinHeld of becoming
//   the oldest, because most such transactions end by themselves.
// Thread-safety: one thread. Ownership: borrows the engine.
#ifndef TC_SERVER_READER_EVICTION_H_
#define TC_SERVER_READER_EVICTION_H_

#include <functional>
#include <utility>

#include "common/base/ids.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

class ReaderEviction {
 public:
  static constexpr Duration kMinHeld = milliseconds(100);

  // `dc_is_at_rest` returns whether the DC is there, and has applied everything that it was sent.
  ReaderEviction(const Engine& engine, std::function<bool()> dc_is_at_rest)
      : engine_(engine), dc_is_at_rest_(std::move(dc_is_at_rest)) {}

  // Returns the timestamp of the reader to abort now; 0: none.
  Timestamp Next() const;

 private:
  const Engine& engine_;
  const std::function<bool()> dc_is_at_rest_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_READER_EVICTION_H_
