#include "tc/record_manager/pinned.h"

#include <string_view>

#include "common/base/concat.h"

namespace deut::tc {
namespace {

// The flag that sets the version budget.
std::string_view NameOfBudget(const Engine& engine) {
  return engine.version_limit == nullptr ? "--version_budget" : "a part of --memory; --version_budget sets another";
}

}  // namespace

Status OverBudget(const Engine& engine) {
  const ActiveTransactions::Oldest oldest = engine.active.held_back_by();
  const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(engine.runtime.Now() - oldest.since);
  return DEUT_ERROR(kResourceExhausted, "updates that the data component has not applied yet take ",
                    PinnedBytes(engine), " bytes of a budget of ", engine.version_budget(), " (", NameOfBudget(engine),
                    "), and large transactions hold another ", engine.bulk->held(),
                    " bytes. Nothing that was committed after transaction ", oldest.timestamp.value,
                    " can be applied while that is open; it has been the oldest one for ", held.count(),
                    " ms. The data component has applied everything to log position ", engine.dc.applied().commit.value,
                    " of ", engine.log.tail().value)
      .WithRetryAfter(100);
}

Status NoSpaceAtDc() {
  return DEUT_ERROR(
             kResourceExhausted,
             "the data component is short of disk space, or of memory for pages (its --memory or --dc_memory): puts "
             "are refused, deletes and reads go on")
      .WithRetryAfter(1000);
}

Status OverTransactionLimit(const Engine& engine, uint64_t written_bytes, uint64_t more_bytes) {
  return DEUT_ERROR(kInvalidArgument, "the transaction has written ", written_bytes, " bytes; with ", more_bytes,
                    " more it would have more than a transaction may write, ", engine.max_transaction_bytes,
                    " (--max_transaction_bytes; without it, a quarter of --memory)");
}

Status AbortedOverBudget(const Engine& engine, Timestamp reader) {
  const ActiveTransactions::Oldest oldest = engine.active.held_back_by();
  const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(engine.runtime.Now() - oldest.since);
  return Status::Aborted(
      AbortInfo{.reason = AbortReason::kOverBudget},
      Concat("transaction ", reader.value,
             " was aborted so that others can write (--over_budget=abort_reader): nothing ",
             "that was committed after it could be applied while it was open; that takes ", PinnedBytes(engine),
             " bytes of a budget of ", engine.version_budget(), " (", NameOfBudget(engine), ")",
             oldest.timestamp == reader ? Concat(", and it has been the oldest one for ", held.count(), " ms") : ""));
}

}  // namespace deut::tc
