// LogFailure: the redo log's first failure, reported once. From then on nothing more becomes durable (fail-stop,
// never a retry).
// States: none -> reported, in one step: a compare-and-swap of the pointer to the status. The status of the loser is
// dropped. So failed() is true when Report returns, for winner and loser. The loser has a failed write too, and must
// not go on to call it durable.
// Thread-safety: all methods from any thread. Ownership: owns the status that won.
#ifndef TC_REDO_LOG_LOG_FAILURE_H_
#define TC_REDO_LOG_LOG_FAILURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"

namespace deut::tc {

class LogFailure {
 public:
  explicit LogFailure(std::function<void(const Status&)> callback) : callback_(std::move(callback)) {}
  ~LogFailure() { delete first_.load(std::memory_order_seq_cst); }
  LogFailure(const LogFailure&) = delete;
  LogFailure& operator=(const LogFailure&) = delete;

  // `status` is an error. The callback runs on the thread of the first report.
  void Report(const Status& status) {
    DEUT_CHECK(!status.ok());
    auto mine = std::make_unique<const Status>(status);
    const Status* none = nullptr;
    if (!first_.compare_exchange_strong(none, mine.get(), std::memory_order_seq_cst)) return;
    callback_(*mine.release());
  }

  bool failed() const { return first_.load(std::memory_order_seq_cst) != nullptr; }
  // OK until a failure is reported.
  Status status() const {
    const Status* const first = first_.load(std::memory_order_seq_cst);
    return first == nullptr ? Status::Ok() : *first;
  }

 private:
  const std::function<void(const Status&)> callback_;
  std::atomic<const Status*> first_{nullptr};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_FAILURE_H_
