#include "tc/txn/active_transactions.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/sync/raise_to.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// The word at which a thread starts to look for a free slot. Each thread has its own, so that threads do not meet in one word of the bitmap, nor,
// while there are few threads, on one cache line of it.
uint32_t OwnWord(uint32_t words) {
  constexpr uint32_t kWordsPerLine = 8;
  static std::atomic<uint32_t> next{0};
  thread_local const uint32_t place = next.fetch_add(1, std::memory_order_relaxed);
  const uint64_t word = uint64_t{place} * kWordsPerLine;
  return static_cast<uint32_t>((word + word / words % kWordsPerLine) % words);
}

}  // namespace

ActiveTransactions::ActiveTransactions(Options options, Runtime& runtime)
    : options_(std::move(options)),
      runtime_(runtime),
      counter_(options_.first_timestamp.value),
      // The values that a round would find now: a snapshot may begin before the first round, and everything that the DC holds is below them.
      proposed_(options_.first_timestamp.value),
      low_water_(options_.first_timestamp.value),
      words_(std::max<uint32_t>(1, (options_.max_transactions + 63) / 64)),
      claimed_(std::make_unique<std::atomic<uint64_t>[]>(words_)),
      slots_(std::make_unique<Slot[]>(size_t{words_} * 64)) {
  DEUT_CHECK(options_.first_timestamp.value > 0);
}

ActiveTransactions::~ActiveTransactions() = default;

Result<SlotId> ActiveTransactions::Claim() {
  const uint32_t start = OwnWord(words_);
  for (uint32_t i = 0; i < words_; ++i) {
    const uint32_t w = (start + i) % words_;
    uint64_t bits = claimed_[w].load(std::memory_order_relaxed);
    while (~bits != 0) {
      const int bit = std::countr_one(bits);
      DEUT_POINT("active.claim.before_cas");
      if (!DEUT_CAS_FAILS("active.claim.cas") &&
          claimed_[w].compare_exchange_weak(bits, bits | (uint64_t{1} << bit), std::memory_order_seq_cst)) {
        const SlotId id{w * 64 + static_cast<uint32_t>(bit)};
        // The last owner cleared both before it released the bit.
        DEUT_DCHECK(slots_[id.index].bound.load(std::memory_order_relaxed) == 0);
        DEUT_DCHECK(slots_[id.index].first_lsn.load(std::memory_order_relaxed) == UINT64_MAX);
        return id;
      }
      bits = claimed_[w].load(std::memory_order_relaxed);
    }
  }
  return DEUT_ERROR(kResourceExhausted, words_ * 64, " transactions are open, which is the limit (--max_transactions)")
      .WithRetryAfter(10);
}

void ActiveTransactions::ReleaseBit(SlotId slot) {
  const uint64_t bit = uint64_t{1} << (slot.index % 64);
  [[maybe_unused]] const uint64_t before = claimed_[slot.index / 64].fetch_and(~bit, std::memory_order_seq_cst);
  DEUT_DCHECK((before & bit) != 0);
}

Result<ActiveTransactions::Begun> ActiveTransactions::Begin(Deadline deadline, bool writes) {
  DEUT_ASSIGN_OR_RETURN(const SlotId id, Claim());
  Slot& slot = slots_[id.index];
  // A writer's flag is published before the draw, so it need not check `latest_passing_snapshot_`: a snapshot that misses the slot is at or below the
  // counter of then.
  const uint64_t role = writes ? kWriter : 0;
  uint64_t timestamp;
  if (DEUT_OMITTED("L1.publish_first")) {
    timestamp = counter_.fetch_add(1, std::memory_order_seq_cst);
    DEUT_POINT("active.begin.after_draw");
    slot.bound.store(timestamp | role, std::memory_order_release);
  } else {
    const uint64_t bound = counter_.load(std::memory_order_seq_cst);
    DEUT_POINT("active.begin.before_publish");
    slot.bound.store(bound | kDrawing | role, std::memory_order_seq_cst);
    DEUT_POINT("active.begin.after_publish");
    if (DEUT_OMITTED("L1.draw_once")) {
      timestamp = counter_.load(std::memory_order_seq_cst);
      counter_.store(timestamp + 1, std::memory_order_seq_cst);
    } else {
      timestamp = counter_.fetch_add(1, std::memory_order_seq_cst);
    }
    DEUT_POINT("active.begin.after_draw");
    DEUT_DCHECK(bound <= timestamp);
    // Released only: until other threads see the timestamp they see the lower bound, which keeps more versions than necessary.
    slot.bound.store(timestamp | role, std::memory_order_release);
  }
  DEUT_DCHECK((timestamp & kBoundFlags) == 0);
  DEUT_DCHECK(LowWaterRespects(id));
  // D3. A timestamp that was drawn and then refused is never used, which is harmless.
  if (options_.ensure_reserved) {
    if (Status reserved = options_.ensure_reserved(Timestamp{timestamp}, deadline); !reserved.ok()) {
      End(id);
      return reserved;
    }
  }
  return Begun{id, Timestamp{timestamp}};
}

bool ActiveTransactions::LowWaterRespects(SlotId id) const {
  return low_water_.load(std::memory_order_seq_cst) <=
         (slots_[id.index].bound.load(std::memory_order_relaxed) & ~kBoundFlags);
}

bool ActiveTransactions::BecomeWriter(SlotId id, Timestamp timestamp) {
  Slot& slot = slots_[id.index];
  DEUT_DCHECK((slot.bound.load(std::memory_order_relaxed) & ~kBoundFlags) == timestamp.value);
  if (DEUT_OMITTED("L2.flag_first")) {
    const bool passed = latest_passing_snapshot_.load(std::memory_order_seq_cst) > timestamp.value;
    DEUT_POINT("active.writer.looked");
    slot.bound.store(timestamp.value | kWriter, std::memory_order_seq_cst);
    return !passed;
  }
  // The flag first, then the look: TryPassingSnapshot raises `latest_passing_snapshot_` before it reads the slots, so one of the two sees the other.
  slot.bound.store(timestamp.value | kWriter, std::memory_order_seq_cst);
  DEUT_POINT("active.writer.flagged");
  return latest_passing_snapshot_.load(std::memory_order_seq_cst) <= timestamp.value || DEUT_OMITTED("L2.writer_looks");
}

std::optional<Timestamp> ActiveTransactions::DrawUnused(Deadline deadline) {
  const Result<Begun> begun = Begin(deadline);
  if (!begun.ok()) return std::nullopt;
  End(begun->slot);
  return begun->timestamp;
}

void ActiveTransactions::End(SlotId id) {
  Slot& slot = slots_[id.index];
  DEUT_DCHECK(LowWaterRespects(id));
  // Only the slot's owner stores it, so the load needs no order.
  if (slot.first_lsn.load(std::memory_order_relaxed) != UINT64_MAX) {
    slot.first_lsn.store(UINT64_MAX, std::memory_order_seq_cst);
  }
  // A thread that sees the slot cleared sees what was done before: the final status, the reserved commit. Nothing is read afterwards.
  slot.bound.store(0, std::memory_order_release);
  ReleaseBit(id);
}

void ActiveTransactions::PublishFirstRecord(SlotId id) {
  if (DEUT_OMITTED("S2.publish_first_record")) return;
  slots_[id.index].first_lsn.store(options_.log_tail ? options_.log_tail().value : 0, std::memory_order_seq_cst);
}

Lsn ActiveTransactions::OldestFirstRecord() const {
  uint64_t oldest = options_.log_tail ? options_.log_tail().value : 0;
  for (uint32_t w = 0; w < words_; ++w) {
    for (uint64_t bits = claimed_[w].load(std::memory_order_seq_cst); bits != 0; bits &= bits - 1) {
      oldest = std::min(oldest, slots_[w * 64 + std::countr_zero(bits)].first_lsn.load(std::memory_order_seq_cst));
    }
  }
  return Lsn{oldest};
}

template <typename Visit>
void ActiveTransactions::ForEachBound(Visit&& visit) const {
  for (uint32_t w = 0; w < words_; ++w) {
    // The claim precedes the slot's publication, so a slot that L1 must see is in the bitmap by then.
    for (uint64_t bits = claimed_[w].load(std::memory_order_seq_cst); bits != 0; bits &= bits - 1) {
      const uint64_t bound = slots_[w * 64 + std::countr_zero(bits)].bound.load(std::memory_order_seq_cst);
      if (bound != 0) visit(bound & ~kBoundFlags, bound & kBoundFlags);
    }
  }
}

uint64_t ActiveTransactions::OldestBound(uint64_t limit) const {
  uint64_t oldest = limit;
  ForEachBound([&](uint64_t bound, uint64_t) { oldest = std::min(oldest, bound); });
  return oldest;
}

uint64_t ActiveTransactions::FirstInTheWay() const {
  uint64_t first = UINT64_MAX;
  ForEachBound([&](uint64_t bound, uint64_t flags) {
    if ((flags & kSnapshot) != 0) return;
    // A slot that is still drawing shows only a lower bound, which does not tell how long its transaction has been open.
    if (flags != 0 || bound >= long_open_below_) first = std::min(first, bound);
  });
  return first;
}

Timestamp ActiveTransactions::AdvanceNow() {
  if (round_.exchange(1, std::memory_order_seq_cst) != 0) return low_water();
  Round();
  round_.store(0, std::memory_order_seq_cst);
  return low_water();
}

Timestamp ActiveTransactions::RefreshedLowWater(Timestamp caller, uint64_t every) {
  uint64_t last = last_round_caller_.load(std::memory_order_relaxed);
  if (caller.value < last + every && last != 0) return low_water();
  if (!last_round_caller_.compare_exchange_strong(last, caller.value, std::memory_order_relaxed)) return low_water();
  return AdvanceNow();
}

std::optional<Readers> ActiveTransactions::RoundForReaders() {
  if (round_.exchange(1, std::memory_order_seq_cst) != 0) return std::nullopt;
  uint64_t from = Round();
  DEUT_POINT("active.round.for_readers");
  std::vector<uint64_t> points = {proposed_.load(std::memory_order_seq_cst),
                                  low_water_.load(std::memory_order_seq_cst)};
  ForEachBound([&](uint64_t bound, uint64_t flags) {
    if ((flags & kDrawing) != 0 && DEUT_STEP("S6.choosing")) {
      from = std::min(from, bound);
    } else if (DEUT_STEP("S6.registered")) {
      points.push_back(bound);
    }
  });
  // A lower bound that was read long ago may be below the last result's `from`, although its timestamp is not. So `from` never falls.
  if (DEUT_STEP("S6.from_rises")) from = std::max(from, readers_.from().value);
  Readers readers(std::move(points), Timestamp{from});
  readers_ = readers;
  round_.store(0, std::memory_order_seq_cst);
  return readers;
}

uint64_t ActiveTransactions::Round() {
  uint64_t low, counter;
  if (DEUT_OMITTED("L1.counter_first")) {
    low = OldestBound(UINT64_MAX);
    DEUT_POINT("active.round.between");
    counter = counter_.load(std::memory_order_seq_cst);
    low = std::min(low, counter);
  } else {
    // L1: the counter before the slots. A slot that is published after this load draws a timestamp that is not below the counter read here.
    counter = counter_.load(std::memory_order_seq_cst);
    DEUT_POINT("active.round.between");
    low = OldestBound(counter);
  }
  DEUT_POINT("active.round.scanned");
  if (low != oldest_.load(std::memory_order_relaxed)) {
    oldest_.store(low, std::memory_order_relaxed);
    oldest_since_.store(runtime_.Now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  if (DEUT_STEP("S6.round_up")) low = readers_.RoundUp(low);
  if (options_.reserved_below && low > options_.reserved_below().value) {
    // D3. The reserved bound may be no member of A: then this round proposes nothing new.
    low = options_.reserved_below().value;
    if (readers_.RoundUp(low) != low && DEUT_STEP("S6.round_up")) low = low_water_.load(std::memory_order_seq_cst);
  }
  // Everything that advances passes here: low-water <= proposed <= counter, whatever this round has rounded up.
  DEUT_CHECK(low <= counter);
  RaiseTo(proposed_, low);
  DEUT_POINT("active.round.proposed");
  // L2: the second look at the slots finds a snapshot that began from an older proposal meanwhile; then low-water stays.
  if (DEUT_OMITTED("L2.two_steps") || OldestBound(low) >= low) RaiseTo(low_water_, low);
  DEUT_CHECK(low_water_.load(std::memory_order_seq_cst) <= proposed_.load(std::memory_order_seq_cst));
  return counter;
}

ActiveTransactions::Oldest ActiveTransactions::held_back_by() const {
  return {Timestamp{oldest_.load(std::memory_order_relaxed)},
          MonotonicTime(Duration(oldest_since_.load(std::memory_order_relaxed)))};
}

uint32_t ActiveTransactions::open_transactions() const {
  uint32_t open = 0;
  for (uint32_t w = 0; w < words_; ++w) {
    open += static_cast<uint32_t>(std::popcount(claimed_[w].load(std::memory_order_seq_cst)));
  }
  return open;
}

Timestamp ActiveTransactions::oldest() const {
  return Timestamp{OldestBound(counter_.load(std::memory_order_seq_cst))};
}

}  // namespace deut::tc
