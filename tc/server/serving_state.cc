#include "tc/server/serving_state.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"

namespace deut::tc {

ServingState::ServingState(Runtime& runtime, std::function<std::string()> describe_start,
                           std::function<void(const Status&)> on_refused)
    : runtime_(runtime),
      describe_start_(std::move(describe_start)),
      on_refused_(std::move(on_refused)),
      mutex_(runtime) {}

Status ServingState::WhyNotServing() {
  MutexLock lock(mutex_);
  if (!refused_.ok()) return refused_;
  return Status(ErrorCode::kUnavailable, Concat("the transaction component is not serving: ", describe_start_()))
      .WithRetryAfter(100);
}

bool ServingState::Serve() {
  {
    MutexLock lock(mutex_);
    if (!refused_.ok()) return false;
    DEUT_CHECK(!serving());
    serving_.store(true, std::memory_order_seq_cst);
  }
  decided_.Signal(runtime_);
  return true;
}

void ServingState::Refuse(const Status& status) {
  DEUT_CHECK(!status.ok());
  {
    MutexLock lock(mutex_);
    if (!refused_.ok()) return;
    refused_ = status;
    serving_.store(false, std::memory_order_seq_cst);
  }
  // Called before the signal, so that a thread that learns of the refusal by WaitDecided can rely on on_refused having
  // been called.
  if (on_refused_ && !stopping()) on_refused_(status);
  decided_.Signal(runtime_);
}

void ServingState::BeginStop() {
  stopping_.store(true, std::memory_order_seq_cst);
  Refuse(DEUT_ERROR(kUnavailable, "the transaction component is stopping"));
}

}  // namespace deut::tc
