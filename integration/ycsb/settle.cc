#include "integration/ycsb/settle.h"

#include <chrono>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "common/base/concat.h"

namespace deut::ycsb {
namespace {

// The work that is left, and counters of the work done.
struct Work {
  uint64_t transactions = 0;
  uint64_t backlog_bytes = 0;
  uint64_t collected = 0;
  uint64_t applied = 0;

  bool Done(const Work& before) const { return collected != before.collected || applied != before.applied; }
};

Work Look(const ServiceStatus& status) {
  Work work;
  for (const CounterValue& counter : status.tc) {
    if (counter.name == "collector.waiting_transactions") work.transactions = counter.value;
    if (counter.name == "collector.collected_transactions") work.collected = counter.value;
    if (counter.name == "ship.backlog_bytes") work.backlog_bytes = counter.value;
    if (counter.name == "ship.applied") work.applied = counter.value;
  }
  return work;
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Status Settle(Client& client, const SettleOptions& options, const std::function<void(std::string_view)>& progress) {
  Runtime& runtime = client.runtime();
  const MonotonicTime begun = runtime.Now();
  MonotonicTime last_progress = begun;
  Work work;
  for (;;) {
    const MonotonicTime asked = runtime.Now();
    Status status = client.DropCaches({.timeout = options.step});
    if (status.ok()) return status;
    const bool unavailable = status == ErrorCode::kUnavailable && options.tolerate_unavailable;
    if (status != ErrorCode::kDeadlineExceeded && !unavailable) return status;

    // A missing answer is no progress, but it does not end the wait either.
    if (const Result<ServiceStatus> answer = client.GetStatus({.timeout = options.step}); answer.ok()) {
      const Work now = Look(*answer);
      if (now.Done(work)) last_progress = runtime.Now();
      work = now;
    }
    if (runtime.Now() - last_progress >= options.stall) {
      return DEUT_ERROR(kDeadlineExceeded, "the store does not settle: for ", Seconds(options.stall), " s nothing of ",
                        work.transactions, " transactions in the transaction component and ", work.backlog_bytes,
                        " bytes on their way to the data component has been finished; is a transaction open, or the "
                        "data component away? Last answer: ",
                        status.ToString());
    }
    if (progress) {
      progress(absl::StrFormat("settling %4.0f s  %d transactions in the TC, %d bytes on their way to the DC",
                               Seconds(runtime.Now() - begun), work.transactions, work.backlog_bytes));
    }
    if (unavailable) runtime.SleepUntil(asked + options.step);
  }
}

}  // namespace deut::ycsb
