#include "dc/record_ops/apply_team.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {

ApplyTeam::ApplyTeam(Runtime& runtime, size_t helpers) : runtime_(runtime), gate_(runtime) {
  helpers_.reserve(helpers);
  for (size_t i = 0; i < helpers; ++i) helpers_.push_back(runtime_.StartThread("dc-apply-team", [this] { Help(); }));
}

ApplyTeam::~ApplyTeam() {
  stop_.store(true, std::memory_order_seq_cst);
  calls_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(calls_);
}

bool ApplyTeam::TryRun(size_t pieces, Work work) {
  if (helpers_.empty() || busy_.exchange(true, std::memory_order_acquire)) return false;
  DEUT_DCHECK(work_ == nullptr);  // the call before has ended, with its helpers
  work_ = &work;
  pieces_ = pieces;
  next_.store(0, std::memory_order_relaxed);
  // The work is stored before the gate opens, and helpers read it only inside the gate. A helper that still runs from
  // an earlier call cannot be inside: Close has waited for it.
  gate_.Open();
  calls_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.Wake(calls_, static_cast<int>(std::min(helpers_.size(), pieces)));
  RunPieces();
  gate_.Close();
  work_ = nullptr;
  busy_.store(false, std::memory_order_release);
  return true;
}

void ApplyTeam::Help() {
  for (;;) {
    const uint32_t calls = calls_.load(std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) return;
    {
      const CallDrain::Call call(gate_);
      if (call.entered()) RunPieces();
    }
    DEUT_POINT("apply_team.before_wait");
    runtime_.Wait(calls_, calls, kNoDeadline);
  }
}

void ApplyTeam::RunPieces() {
  DEUT_DCHECK(work_ != nullptr);
  for (size_t piece; (piece = next_.fetch_add(1, std::memory_order_relaxed)) < pieces_;) (*work_)(piece);
}

}  // namespace deut::dc
