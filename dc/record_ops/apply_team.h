// ApplyTeam: threads that help another one with the pieces of its work, as the updates of a large batch of the log.
//
// States: at rest (gate closed); at work (gate open, of one thread's TryRun). TryRun: takes the team (exchange of `busy_`), writes down the work,
//   opens the gate, wakes helpers, takes pieces itself until none is left, closes the gate, which waits for the helpers inside, gives
//   the team back. Helper: looks at `calls_`, enters the gate, takes pieces, leaves, waits until `calls_` has changed.
// Each piece is taken by one fetch-and-add, so by one thread. The work is written only while the gate is closed and nobody is inside, and read
//   only inside. A helper that wakes late finds the gate closed, or the next work: both are right. A call that comes between its look at
//   `calls_` and its wait changes the word that it waits for.
// When TryRun returns, all that its pieces did happened before: the helpers have left the gate.
// Thread-safety: TryRun from any thread; one at a time gets the team. Ownership: borrows the runtime. The destructor ends the helpers.
#ifndef DC_RECORD_OPS_APPLY_TEAM_H_
#define DC_RECORD_OPS_APPLY_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/runtime/runtime.h"
#include "protocol/call_gate.h"

namespace deut::dc {

class ApplyTeam {
 public:
  using Work = absl::FunctionRef<void(size_t piece)>;

  // `helpers` besides the thread that calls; with 0 TryRun always answers false.
  ApplyTeam(Runtime& runtime, size_t helpers);
  ~ApplyTeam();
  ApplyTeam(const ApplyTeam&) = delete;
  ApplyTeam& operator=(const ApplyTeam&) = delete;

  // Calls `work` for every piece below `pieces`, once each, on this thread and on helpers, several at a time and in any order; returns when all of
  // them are done. False, and nothing was called: there are no helpers, or another thread has them.
  bool TryRun(size_t pieces, Work work);

 private:
  void Help();
  void TakePieces();

  Runtime& runtime_;
  CallGate gate_;
  std::atomic<bool> busy_{false};
  const Work* work_ = nullptr;  // of the call whose gate is open, as the next two
  size_t pieces_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Thread>> helpers_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_APPLY_TEAM_H_
