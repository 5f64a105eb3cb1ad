// The part of ActiveTransactions that begins snapshots (L2) and waits until they contain a timestamp (active_transactions.h).
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/sync/raise_to.h"
#include "common/testing/test_points.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {
namespace {

// Pause between the rounds of the thread that leads while snapshots wait.
constexpr Duration kBetweenRounds = microseconds(200);
// Another waiting thread retries after this time, if nothing was in its way and another thread's round made its try fail.
constexpr Duration kBetweenTries = milliseconds(1);

}  // namespace

Result<ActiveTransactions::Begun> ActiveTransactions::BeginSnapshot(Timestamp min_timestamp, Deadline deadline) {
  if (min_timestamp >= next_timestamp()) {
    return DEUT_ERROR(kInvalidArgument, "no transaction has had timestamp ", min_timestamp.value,
                      " yet: a snapshot that contains it would wait for ever");
  }
  DEUT_ASSIGN_OR_RETURN(std::optional<Begun> begun, TrySnapshot(min_timestamp));
  if (begun) return *begun;
  return WaitForSnapshot(min_timestamp, deadline);
}

Result<std::optional<ActiveTransactions::Begun>> ActiveTransactions::TrySnapshot(Timestamp min_timestamp) {
  uint64_t x = proposed_.load(std::memory_order_seq_cst);
  if (x <= min_timestamp.value) return std::optional<Begun>();
  DEUT_ASSIGN_OR_RETURN(const SlotId id, Claim());
  Slot& slot = slots_[id.index];
  for (;;) {
    DEUT_POINT("active.snapshot.before_publish");
    slot.bound.store(x | kSnapshot, std::memory_order_seq_cst);
    DEUT_POINT("active.snapshot.after_publish");
    if (DEUT_OMITTED("L2.look_again")) break;
    const uint64_t again = proposed_.load(std::memory_order_seq_cst);
    if (again == x) break;
    x = again;
  }
  DEUT_DCHECK(x <= counter_.load(std::memory_order_seq_cst));
  DEUT_DCHECK(LowWaterRespects(id));
  return std::optional<Begun>({id, Timestamp{x}});
}

void ActiveTransactions::SampleCounterForAges() {
  const MonotonicTime now = runtime_.Now();
  if (sampled_counter_ != 0 && now - sampled_at_ < options_.pass_readers_after) return;
  // Transactions that had begun when the counter was noted have been open since then, hence for at least pass_readers_after.
  long_open_below_ = sampled_counter_;
  sampled_counter_ = counter_.load(std::memory_order_seq_cst);
  sampled_at_ = now;
}

Result<std::optional<ActiveTransactions::Begun>> ActiveTransactions::TryPassingSnapshot(Timestamp min_timestamp,
                                                                                        uint64_t* in_the_way) {
  if (round_.exchange(1, std::memory_order_seq_cst) != 0) return std::optional<Begun>();
  struct Release {
    ~Release() { round.store(0, std::memory_order_seq_cst); }
    std::atomic<uint32_t>& round;
  } const release{round_};
  Round();
  if (proposed_.load(std::memory_order_seq_cst) > min_timestamp.value) return std::optional<Begun>();
  SampleCounterForAges();
  *in_the_way = FirstInTheWay();
  // S6: a member of A, so that no version it reads has been unlinked early.
  uint64_t r = min_timestamp.value + 1;
  if (DEUT_STEP("L2.ahead_rounds_up")) r = readers_.RoundUp(r);
  if (r > counter_.load(std::memory_order_seq_cst)) return std::optional<Begun>();
  if (options_.reserved_below && r > options_.reserved_below().value) return std::optional<Begun>();  // D3
  // Checked before `latest_passing_snapshot_` is raised, so that no transaction loses to a snapshot that does not begin.
  if (*in_the_way < r) return std::optional<Begun>();
  DEUT_ASSIGN_OR_RETURN(const SlotId id, Claim());
  DEUT_POINT("active.snapshot.may_pass");
  // Raised before the slots are checked again. A writer sets its flag before it loads `latest_passing_snapshot_` (BecomeWriter), so one of the two
  // sees the other.
  RaiseTo(latest_passing_snapshot_, r);
  DEUT_POINT("active.snapshot.ahead_published");
  if (!MayPass(r) && DEUT_STEP("L2.look_after_ahead")) {
    ReleaseBit(id);
    return std::optional<Begun>();
  }
  slots_[id.index].bound.store(r | kSnapshot, std::memory_order_seq_cst);
  DEUT_DCHECK(LowWaterRespects(id));
  return std::optional<Begun>({id, Timestamp{r}});
}

Result<ActiveTransactions::Begun> ActiveTransactions::WaitForSnapshot(Timestamp min_timestamp, Deadline deadline) {
  bool leads = false;
  const auto news = [&] {
    wake_word_.fetch_add(1, std::memory_order_seq_cst);
    runtime_.WakeAll(wake_word_);
  };
  const auto leave = [&] {
    // Wakes the other waiting threads, one of which takes the lead.
    if (!leads) return;
    has_leader_.store(0, std::memory_order_seq_cst);
    news();
  };
  uint64_t told = 0;
  // L2: the leader may wait for its whole deadline for a timestamp that an open writer is below, while nothing blocks snapshots that want less. So it
  // publishes `passable_below_`, below which the others begin by themselves.
  const auto may_pass = [&] {
    return leads ||
           (min_timestamp.value < passable_below_.load(std::memory_order_seq_cst) && DEUT_STEP("L2.others_pass"));
  };
  for (;;) {
    const uint32_t seen = wake_word_.load(std::memory_order_seq_cst);
    if (!leads) leads = has_leader_.exchange(1, std::memory_order_seq_cst) == 0;
    Result<std::optional<Begun>> begun = std::optional<Begun>();
    uint64_t in_the_way = passable_below_.load(std::memory_order_seq_cst);
    if (may_pass()) begun = TryPassingSnapshot(min_timestamp, &in_the_way);
    if (begun.ok() && !*begun) begun = TrySnapshot(min_timestamp);
    if (!begun.ok() || *begun) {
      leave();
      if (!begun.ok()) return begun.status();
      return **begun;
    }
    const MonotonicTime now = runtime_.Now();
    if (now >= deadline) {
      leave();
      return DEUT_ERROR(kDeadlineExceeded, "no snapshot contains timestamp ", min_timestamp.value,
                        " yet: the oldest open transaction is ", oldest().value);
    }
    if (leads) {
      const bool more_pass = passable_below_.exchange(in_the_way, std::memory_order_seq_cst) < in_the_way;
      if (std::exchange(told, proposed().value) != proposed().value || more_pass) news();
      DEUT_POINT("active.snapshot.leads");
      runtime_.SleepUntil(std::min<MonotonicTime>(deadline, now + kBetweenRounds));
    } else {
      runtime_.Wait(wake_word_, seen, may_pass() ? std::min<Deadline>(deadline, now + kBetweenTries) : deadline);
    }
  }
}

}  // namespace deut::tc
