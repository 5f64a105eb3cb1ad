// ApplyTeam: threads that help another thread with the pieces of its work, such as the updates of a large batch of
// the log.
//
// States: idle (gate closed); at work (gate open, for one thread's TryRun).
// - TryRun acquires the team (exchange of `busy_`), stores the work, opens the gate and wakes helpers. It takes
//   pieces itself until none is left. Then it closes the gate, which waits for the helpers inside, and releases the
//   team.
// - A helper loads `calls_`, enters the gate, takes pieces, leaves, and waits until `calls_` has changed.
// Each piece is taken by one fetch-and-add, so by one thread. The work is written only while the gate is closed and
// no helper is inside, and is read only inside. A helper that wakes late finds the gate closed, or the next work:
// both are correct. A call between the helper's load of `calls_` and its wait changes the word that it waits for, so
// no call is missed.
// When TryRun returns, everything that its pieces did happened before: the helpers have left the gate.
// Thread-safety: TryRun from any thread; one caller at a time gets the team. Ownership: borrows the runtime. The
// destructor ends the helpers.
#ifndef DC_RECORD_OPS_APPLY_TEAM_H_
#define DC_RECORD_OPS_APPLY_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/runtime/runtime.h"
#include "common/sync/call_drain.h"

namespace deut::dc {

class ApplyTeam {
 public:
  using Work = absl::FunctionRef<void(size_t piece)>;

  // `helpers` threads besides the calling one. With 0, TryRun always returns false.
  ApplyTeam(Runtime& runtime, size_t helpers);
  ~ApplyTeam();
  ApplyTeam(const ApplyTeam&) = delete;
  ApplyTeam& operator=(const ApplyTeam&) = delete;

  // Calls `work` once for every piece below `pieces`, on this thread and on helpers, several at a time and in any
  // order. Returns when all pieces are done. False: nothing was called, because there are no helpers or another
  // thread has them.
  bool TryRun(size_t pieces, Work work);

 private:
  void Help();
  void RunPieces();

  Runtime& runtime_;
  CallDrain gate_;
  std::atomic<bool> busy_{false};
  const Work* work_ = nullptr;  // work_, pieces_ and next_ belong to the call for which the gate is open
  size_t pieces_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Thread>> helpers_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_APPLY_TEAM_H_
