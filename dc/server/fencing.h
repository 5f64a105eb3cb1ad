// Fencing: the TC that the DC obeys, and the calls of that TC that are running (rules X3, X5).
//
// A Fence is one (TC, epoch, nonce) with a gate for the calls made under it. One atomic pointer leads to the current
// fence. States: a fence is current, then replaced (its gate is closed for ever). Fences are kept until the DC ends;
// there is one for each Hello of a new epoch.
// Steps of a replacement, by one thread at a time:
// - (1) the new fence becomes durable
// - (2) the old gate is closed, which waits until the calls inside have left
// - (3) the new fence becomes current
// - (4) Hello is answered
// So a call of the old TC either ends before the new TC hears the answer, or is refused: it has no effect afterwards.
// Direct reads pass the gate of the fence under which they were opened, and check nothing else. That gate is open
// while its fence is current and this incarnation runs, and is never opened again. A holder of the gate shares its
// ownership, even after the DC has ended; End closes the last gate.
// Thread-safety: Admission from any thread, latch-free; Replace by one thread at a time. Ownership: owns its fences,
// shared with direct reads.
#ifndef DC_SERVER_FENCING_H_
#define DC_SERVER_FENCING_H_

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/call_drain.h"
#include "dc/server/state_file.h"
#include "protocol/data_component.h"

namespace deut::dc {

class Fencing {
 public:
  // `state`: as found in the state file. Its TC learns of this incarnation only by a new Hello.
  Fencing(Runtime& runtime, DcIncarnation incarnation, const FenceState& state);
  Fencing(const Fencing&) = delete;
  Fencing& operator=(const Fencing&) = delete;

  DcIncarnation incarnation() const { return incarnation_; }

  // WRONG_STATE, naming both TCs, if a DC that obeys `current` belongs to a TC other than `wanted`. INVALID_ARGUMENT
  // if `wanted` is 0.
  static Status CheckTc(const FenceState& current, TcId wanted);
  // Checks whether a DC that obeys `current` accepts a Hello of `wanted`. FENCED: its epoch is lower, or equal with
  // another nonce. WRONG_STATE: it is another TC. INVALID_ARGUMENT: its epoch is 0 or above kMaxTcEpoch, so that no
  // TC could follow it.
  static Status CheckHello(const FenceState& current, const FenceState& wanted);
  // UNAVAILABLE, with both states, if a Hello was decided on a state other than the one that is found when it
  // arrives.
  static Status CheckBasis(const HelloBasis& decided_on, const HelloBasis& found);

  // Takes steps 2 and 3. REQUIRES: `state` is durable.
  void Replace(const FenceState& state);

  // Returns the gate of the sender's calls; null if an Admission would refuse the sender.
  std::shared_ptr<CallDrain> GateOf(const Sender& sender);
  // Ends this incarnation: returns when no call is inside; no further call can enter.
  void End();

 private:
  struct Fence : std::enable_shared_from_this<Fence> {
    Fence(Runtime& runtime, const FenceState& fence_state) : state(fence_state), gate(runtime) { gate.Open(); }
    const FenceState state;
    CallDrain gate;
  };

 public:
  // One call of a sender. If status() is OK, it is inside the gate from construction to destruction. FENCED: the DC
  // obeys another TC. WRONG_INCARNATION: the call is meant for another incarnation. UNAVAILABLE: no TC of that epoch
  // has said Hello yet.
  class Admission {
   public:
    Admission(Fencing& fencing, const Sender& sender);
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    const Status& status() const { return status_; }

   private:
    Status status_;
    std::optional<CallDrain::Call> call_;
  };

 private:
  static Status Check(const Fence* fence, const Sender& sender);

  Runtime& runtime_;
  const DcIncarnation incarnation_;
  std::vector<std::shared_ptr<Fence>> fences_;  // used only by the thread that replaces
  std::atomic<Fence*> current_{nullptr};
};

}  // namespace deut::dc

#endif  // DC_SERVER_FENCING_H_
