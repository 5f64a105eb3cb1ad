// SteppedGuard: the guard of a long pass over many objects. Every kSteps steps it is released and taken again, so that objects that other threads
// retire meanwhile are freed during the pass.
//
// *Else:* one guard over the commit of a million keys keeps everything that any thread retires during the pass: seconds, and gigabytes.
// An object that the caller uses across Step must not depend on a guard: it belongs to the caller's thread. (Write sets, and entries that hold one
//   of their versions, belong to the collector's.) An inner SteppedGuard under an outer guard frees nothing, so a pass hands its guard down.
// Thread-safety: used by one thread.
#ifndef TC_MVCC_STEPPED_GUARD_H_
#define TC_MVCC_STEPPED_GUARD_H_

#include <cstddef>
#include <optional>

#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"

namespace deut::tc {

class SteppedGuard {
 public:
  // 64 updates take about ten microseconds.
  static constexpr size_t kSteps = 64;

  explicit SteppedGuard(ReclamationDomain& domain) : domain_(domain) { guard_.emplace(domain_); }
  SteppedGuard(const SteppedGuard&) = delete;
  SteppedGuard& operator=(const SteppedGuard&) = delete;

  // Called before each object. Afterwards a pointer that only the guard kept valid is no longer valid.
  void Step() {
    if (++steps_ < kSteps || DEUT_OMITTED("S9.guard_steps")) return;
    steps_ = 0;
    guard_.reset();
    guard_.emplace(domain_);
  }

 private:
  ReclamationDomain& domain_;
  std::optional<ReclamationDomain::Guard> guard_;
  size_t steps_ = 0;
};

}  // namespace deut::tc

#endif  // TC_MVCC_STEPPED_GUARD_H_
