// LogFailure: the redo log's first failure, reported once. From then on nothing more becomes durable (field: fail-stop, never a retry).
// States: none -> being reported (compare-and-swap; one winner) -> reported. Thread-safety: all methods from any thread.
#ifndef TC_REDO_LOG_LOG_FAILURE_H_
#define TC_REDO_LOG_LOG_FAILURE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/base/status.h"

namespace deut::tc {

class LogFailure {
 public:
  explicit LogFailure(std::function<void(const Status&)> callback) : callback_(std::move(callback)) {}

  void Report(const Status& status) {
    uint32_t none = kNone;
    if (!state_.compare_exchange_strong(none, kReporting, std::memory_order_seq_cst)) return;
    status_ = status;
    state_.store(kReported, std::memory_order_seq_cst);
    callback_(status);
  }

  bool failed() const { return state_.load(std::memory_order_seq_cst) == kReported; }
  // OK while nothing has failed.
  Status status() const { return failed() ? status_ : Status::Ok(); }

 private:
  static constexpr uint32_t kNone = 0, kReporting = 1, kReported = 2;
  const std::function<void(const Status&)> callback_;
  std::atomic<uint32_t> state_{kNone};
  Status status_;  // written once, before kReported
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_FAILURE_H_
