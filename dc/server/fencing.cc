#include "dc/server/fencing.h"

#include <string>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

Status OtherTc(TcId current, TcId wanted) {
  return DEUT_ERROR(kFenced, "this data component belongs to TC ", current.value, ", not to TC ", wanted.value);
}

Status LowerEpoch(TcEpoch current, TcEpoch wanted) {
  return DEUT_ERROR(kFenced, "TC epoch ", wanted.value, " has been replaced by epoch ", current.value);
}

Status OtherNonce(TcEpoch epoch) {
  return DEUT_ERROR(kFenced, "another TC instance has said Hello with epoch ", epoch.value,
                    " (running from a copy of the log?)");
}

std::string Text(const HelloBasis& basis) {
  return Concat("incarnation ", basis.incarnation.value, " that obeys epoch ", basis.obeyed.epoch.value,
                " with applied (", basis.applied.commit.value, ", ", basis.applied.sequence, ") and a log durable to ",
                basis.log_durable.value);
}

}  // namespace

Fencing::Fencing(Runtime& runtime, DcIncarnation incarnation, const FenceState& state)
    : runtime_(runtime), incarnation_(incarnation) {
  DEUT_CHECK(incarnation.value != 0);  // X3: 0 is the one of a sender that knows none
  if (state.epoch.value != 0) Replace(state);
}

Status Fencing::CheckTc(const FenceState& current, TcId wanted) {
  if (wanted.value == 0) return DEUT_ERROR(kInvalidArgument, "Hello: TC ids start at 1");
  if (current.epoch.value == 0 || current.tc == wanted) return Status::Ok();
  return DEUT_ERROR(kWrongState, "this data component belongs to TC ", current.tc.value, ", not to TC ", wanted.value,
                    "; wrong address, or a folder of another cluster; nothing was changed");
}

Status Fencing::CheckHello(const FenceState& current, const FenceState& wanted) {
  if (wanted.epoch.value == 0) return DEUT_ERROR(kInvalidArgument, "Hello: TC epochs start at 1");
  if (wanted.epoch > kMaxTcEpoch) {
    return DEUT_ERROR(kInvalidArgument, "Hello: TC epoch ", wanted.epoch.value, " is above ", kMaxTcEpoch.value,
                      ", which no TC comes to; nothing was changed");
  }
  DEUT_RETURN_IF_ERROR(CheckTc(current, wanted.tc));
  if (current.epoch.value == 0) return Status::Ok();
  if (wanted.epoch < current.epoch && DEUT_STEP("X5.refuse_lower_epoch"))
    return LowerEpoch(current.epoch, wanted.epoch);
  if (wanted.epoch == current.epoch && wanted.nonce != current.nonce && DEUT_STEP("X5.refuse_other_nonce")) {
    return OtherNonce(current.epoch);
  }
  return Status::Ok();
}

Status Fencing::CheckBasis(const HelloBasis& decided_on, const HelloBasis& found) {
  if (decided_on == found || DEUT_OMITTED("X4.decided_on")) return Status::Ok();
  return DEUT_ERROR(kUnavailable, "Hello: the TC has decided on ", Text(decided_on), "; by now there is ", Text(found),
                    ". Nothing was changed; ask again");
}

void Fencing::Replace(const FenceState& state) {
  DEUT_CHECK(state.epoch.value != 0);  // 0 stands for no TC at all
  auto next = std::make_shared<Fence>(runtime_, state);
  Fence* const old = current_.load(std::memory_order_acquire);
  // The old gate closes before the new fence becomes current: once a call of the new TC enters, no call of the old TC
  // is inside.
  if (old != nullptr && DEUT_STEP("X5.drain")) old->gate.Close();
  current_.store(next.get(), std::memory_order_seq_cst);
  fences_.push_back(std::move(next));
}

std::shared_ptr<CallDrain> Fencing::GateOf(const Sender& sender) {
  Fence* const fence = current_.load(std::memory_order_seq_cst);
  if (fence == nullptr || sender.incarnation != incarnation_ || !Check(fence, sender).ok()) return nullptr;
  return std::shared_ptr<CallDrain>(fence->shared_from_this(), &fence->gate);
}

void Fencing::End() {
  Fence* const fence = current_.load(std::memory_order_seq_cst);
  if (fence != nullptr) fence->gate.Close();
}

Status Fencing::Check(const Fence* fence, const Sender& sender) {
  const TcEpoch epoch = fence == nullptr ? TcEpoch() : fence->state.epoch;
  if (fence != nullptr && sender.tc != fence->state.tc) return OtherTc(fence->state.tc, sender.tc);
  if (sender.epoch < epoch) return LowerEpoch(epoch, sender.epoch);
  if (sender.epoch > epoch) return DEUT_ERROR(kUnavailable, "no TC of epoch ", sender.epoch.value, " has said Hello");
  if (fence != nullptr && sender.nonce != fence->state.nonce) return OtherNonce(epoch);
  return Status::Ok();
}

Fencing::Admission::Admission(Fencing& fencing, const Sender& sender) {
  Fence* const fence = fencing.current_.load(std::memory_order_seq_cst);
  const bool fits = fence != nullptr && sender.epoch == fence->state.epoch && sender.nonce == fence->state.nonce &&
                    sender.tc == fence->state.tc;
  if (!fits && DEUT_STEP("X5.check_every_request")) [[unlikely]] {
    status_ = Check(fence, sender);
    if (status_.ok()) status_ = DEUT_ERROR(kUnavailable, "no TC has said Hello");
    return;
  }
  if (sender.incarnation != fencing.incarnation_ && DEUT_STEP("X3.check_incarnation")) [[unlikely]] {
    status_ = DEUT_ERROR(kWrongIncarnation, "the request is meant for incarnation ", sender.incarnation.value,
                         ", this is ", fencing.incarnation_.value);
    return;
  }
  if (fence == nullptr) return;  // only with an omitted step
  // If the fence was replaced since the load above, its gate is closed, and the call is refused.
  DEUT_POINT("dc.admission.before_gate");
  call_.emplace(fence->gate);
  if (!call_->entered()) {
    call_.reset();
    status_ = DEUT_ERROR(kFenced, "TC epoch ", sender.epoch.value, " is being replaced");
    return;
  }
  DEUT_POINT("dc.admission.admitted");
}

}  // namespace deut::dc
