// Fencing: which TC the DC obeys, and which of its requests are inside (rules X3, X5).
//
// A Fence is one (TC, epoch, nonce) with a gate for the calls made under it. The current fence is behind one atomic pointer.
// States: a fence is current, then replaced (its gate is closed for ever). Fences are kept until the DC ends; there are as many
//   as there were Hellos of new epochs.
// Steps of replacing, by one thread at a time: (1) the new fence is durable, (2) the old gate is closed, which waits until the
//   calls inside have left, (3) the new fence becomes current, (4) Hello is answered. So a call of the old TC is either over before the
//   new TC hears the answer, or refused: nothing of it happens afterwards.
// Direct reads go through the gate of the fence that they were opened under, and look at nothing else: it is open while that fence is current and
//   this life goes on, and nobody opens it again. Whoever holds the gate keeps it, also when the DC has ended; End closes the last one.
// Thread-safety: Admission from any thread, latch-free; Replace by one thread at a time.
#ifndef DC_SERVER_FENCING_H_
#define DC_SERVER_FENCING_H_

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "dc/server/state_file.h"
#include "protocol/call_gate.h"
#include "protocol/data_component.h"

namespace deut::dc {

class Fencing {
 public:
  // `state`: as found in the state file. Its TC knows this life only after a new Hello.
  Fencing(Runtime& runtime, DcIncarnation incarnation, const FenceState& state);
  Fencing(const Fencing&) = delete;
  Fencing& operator=(const Fencing&) = delete;

  DcIncarnation incarnation() const { return incarnation_; }

  // WRONG_STATE, naming both, if a DC that obeys `current` belongs to another TC than `wanted`.
  static Status CheckTc(const FenceState& current, TcId wanted);
  // Whether a Hello of `wanted` is to be refused by a DC that obeys `current`: FENCED if its epoch is lower, or equal with another
  // nonce; WRONG_STATE if it is another TC; INVALID_ARGUMENT if its epoch is 0 or near overflow, as no TC could follow that one.
  static Status CheckHello(const FenceState& current, const FenceState& wanted);
  // UNAVAILABLE, with both, if what a Hello was decided on is not what is found when it arrives.
  static Status CheckBasis(const HelloBasis& decided_on, const HelloBasis& found);

  // Steps 2 and 3. REQUIRES: `state` is durable.
  void Replace(const FenceState& state);

  // The gate of the sender's calls; null if an Admission would refuse it.
  std::shared_ptr<CallGate> GateOf(const Sender& sender);
  // This life ends: returns when no call is inside; none gets in any more.
  void End();

 private:
  struct Fence : std::enable_shared_from_this<Fence> {
    Fence(Runtime& runtime, const FenceState& fence_state) : state(fence_state), gate(runtime) { gate.Open(); }
    const FenceState state;
    CallGate gate;
  };

 public:
  // One call of a sender: inside from construction to destruction if status() is OK. FENCED if the DC obeys another; WRONG_INCARNATION
  // if the call is meant for another life; UNAVAILABLE if no TC of that epoch has said Hello yet.
  class Admission {
   public:
    Admission(Fencing& fencing, const Sender& sender);
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    const Status& status() const { return status_; }

   private:
    Status status_;
    std::optional<CallGate::Call> call_;
  };

 private:
  static Status Check(const Fence* fence, const Sender& sender);

  Runtime& runtime_;
  const DcIncarnation incarnation_;
  std::vector<std::shared_ptr<Fence>> fences_;  // of the thread that replaces
  std::atomic<Fence*> current_{nullptr};
};

}  // namespace deut::dc

#endif  // DC_SERVER_FENCING_H_
