#include "integration/bugs/workers.h"

#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/random.h"

namespace deut::bugs {

bool IsOrdinary(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kOk:
    case ErrorCode::kAborted:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kOutcomeUnknown:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kWrongIncarnation:
      return true;
    case ErrorCode::kNotFound:
    case ErrorCode::kAlreadyExists:
      // A failed precondition of a one-shot transaction.
      return status.message().find(" key ") != std::string_view::npos;
    default:
      // A workload may have seen provisional data (D1).
      return status.message().find("provisional") != std::string_view::npos;
  }
}

Workers::Workers(history::Workload& workload, const std::vector<history::RecordedClient*>& clients, uint64_t seed,
                 uint64_t steps, Watchdog* watchdog)
    : running_(clients.size()), failures_(clients.size()) {
  for (size_t i = 0; i < clients.size(); ++i) {
    threads_.push_back(RealRuntime().StartThread(Concat("workload", i),
                                                 [this, i, &workload, mine = clients[i], seed, steps, watchdog] {
                                                   Random random(seed + i);
                                                   for (uint64_t taken = 0; taken < steps && !stop_.load(); ++taken) {
                                                     Status step = workload.Step(*mine, random);
                                                     if (step.ok() && watchdog != nullptr) watchdog->Moved();
                                                     if (!IsOrdinary(step) && failures_[i].ok())
                                                       failures_[i] = std::move(step);
                                                   }
                                                   running_.fetch_sub(1);
                                                 }));
  }
}

Workers::~Workers() { Stop(); }

std::vector<Status> Workers::Join() {
  threads_.clear();
  return std::move(failures_);
}

}  // namespace deut::bugs
