// ActiveTransactions: the timestamp counter, the slots of open transactions and snapshots, and low-water (rules L1, L2, S2, D3).
//
// Words. `counter_`: the next timestamp. A slot's `bound`: 0 = free, else a lower bound of its transaction's timestamp, then the
//   timestamp, and whether it writes. For a snapshot it is the timestamp it reads below. `proposed_`, `low_water_`, `ahead_`: only rise.
// L1 begin:      slot.bound = counter; ts = counter++; slot.bound = ts.           (publish, then draw)
//    round:      c = counter; L = min(c, all slots).                              (counter first, then slots)
//    In the total order either the round sees the slot, or the slot was published after the round had read the counter, and then
//    ts >= c >= L. A slot is cleared only when the status is final and, if committed, the commit LSN is reserved.
//    The first store and the draw are sequentially consistent. The timestamp's store, and the clearing one, only release: seen late, they show
//    the bound that was there before, which is not above it.
// D3: L is never above what is durably reserved, though the counter may be (draws that were refused): a snapshot that reads below L, or a DC
//    that consolidates below it, must not meet a transaction of a later life below L.
// L2 round, by one thread at a time (`round_` is a try-flag: who finds it taken uses the current value, nobody waits):
//                proposed = max(itself, L); look at the slots again; only if none is below L: low_water = max(itself, L).
//                (Transactions and snapshots share one array of slots; looking at all of them again is more than L2 asks.)
//    snapshot:   x = proposed; slot = x; repeat until proposed is still x; r = x.
//    Either the round's second look sees the snapshot's slot, or the snapshot's second load sees the round's proposal and tries again.
// L2, ahead (snapshot_begin.cc). A snapshot that must contain a timestamp m waits until every transaction that may still write is above m. A
//   transaction that has only read, and has been open for `pass_readers_after`, is not waited for: the snapshot passes it, and it loses if it
//   writes after that.
//     snapshot, holding `round_`:  r = the first member of S6's A above m; ahead = max(itself, r); look at the slots; slot = r.
//                                  It gives up, for now, where a slot below r writes, has yet to draw, or has not been open for that long.
//     first write:                 slot.bound |= writes; then lose if ahead is above the own timestamp. Nothing is posted before.
//   All sequentially consistent: either the snapshot's look sees that the transaction writes, or the transaction sees the snapshot. *Else:* the
//   snapshot reads without a version below r that is committed afterwards. A transaction that begins after the look draws r or above it, as r is
//   at or below the counter. No round is under way meanwhile, so low-water stays at or below r, and no version that r reads leaves early: r is
//   in A, and the slot is there before the next A is made. What is shipped depends on low-water alone, which waits for readers as ever (S1).
//   Why the timestamp m + 1 and not the counter: it passes the fewest transactions. Why it waits at all: transactions that read first and then write
//   are mostly through within milliseconds, and would lose for nothing. One that loses declares its keys when it is tried again (R11): then it
//   writes from its begin on, and no snapshot passes it.
// S6, early: RoundForReaders is a round that also answers who reads, A = {proposed, low-water, bounds of slots} and all from the smaller one of the
//    counter, read first, and the lower bounds of slots that have yet to store their timestamp. The slots are looked at after the proposal is
//    published: a snapshot that is not seen there looks at `proposed` afterwards. From then on what a round proposes is rounded up to a member of A,
//    so that a snapshot reads where versions were kept. (No timestamp of a transaction is passed by that: it is a member, or not before the
//    counter. But a lower bound that was read long ago may be neither: where "all" begins never falls, so that an answer that has seen one keeps
//    within the answers before. What was taken out for one of these stays unread for ever.)
// S2: `first_lsn` of a slot is a lower bound of the LSN of the transaction's first log record, published (the log's tail) before its
//    first reservation; OldestFirstRecord reads the tail first, then the slots.
// Slots are claimed by compare-and-swap on a bitmap. Limit: `max_transactions`; beyond it RESOURCE_EXHAUSTED.
// Thread-safety: all methods from any thread.
#ifndef TC_TXN_ACTIVE_TRANSACTIONS_H_
#define TC_TXN_ACTIVE_TRANSACTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/txn/readers.h"

namespace deut::tc {

// Index of a claimed slot.
struct SlotId {
  uint32_t index = UINT32_MAX;
};

class ActiveTransactions final : public LowWaterSource, public ActiveFloorSource {
 public:
  struct Options {
    uint32_t max_transactions = 4096;  // rounded up to a multiple of 64
    Timestamp first_timestamp{1};      // D3: above every timestamp reserved before
    // D3: OK once a durable reservation covers the timestamp; nearly always at once.
    std::function<Status(Timestamp timestamp, Deadline deadline)> ensure_reserved;
    // D3: all timestamps below it are durably reserved. Empty: all are.
    std::function<Timestamp()> reserved_below;
    // L2, ahead: snapshots pass a transaction that has been open for this long and has not written. Measured (pass_readers_bench.cc): a
    // transaction that reads for longer before its first write loses to 97 to 100 % of the snapshots that wait for it, one that reads for less
    // loses to none; a snapshot waits for readers for at most twice this time. So it is above ten round trips of 1 ms with work between them,
    // and below a pause that a client notices. It is no flag because either side is bounded without one: a transaction that has lost declares
    // its keys when it is tried again (R11), and no snapshot passes it then.
    Duration pass_readers_after = milliseconds(20);
    // S2: the log's tail.
    std::function<Lsn()> log_tail;
  };

  ActiveTransactions(Options options, Runtime& runtime);
  ~ActiveTransactions() override;

  // The most that can be open.
  uint32_t capacity() const { return words_ * 64; }

  struct Begun {
    SlotId slot;
    Timestamp timestamp;
  };
  // L1. `writes`: as BecomeWriter, which is not needed then.
  Result<Begun> Begin(Deadline deadline, bool writes = false);
  // L2. Waits until the snapshot contains `min_timestamp`, without a slot meanwhile. INVALID_ARGUMENT for one that was never drawn.
  Result<Begun> BeginSnapshot(Timestamp min_timestamp, Deadline deadline);
  // L2, ahead; owner of the slot, before the transaction posts, publishes or installs anything. False: a snapshot contains its timestamp
  // already, and it must end without a write.
  [[nodiscard]] bool BecomeWriter(SlotId slot, Timestamp timestamp);
  // The latest snapshot that has passed a transaction. A metric.
  Timestamp ahead() const { return Timestamp{ahead_.load(std::memory_order_seq_cst)}; }
  void End(SlotId slot);
  // A timestamp that no transaction has. None: no slot is free, or no reservation covers it (D3).
  std::optional<Timestamp> DrawUnused(Deadline deadline);

  // S2; owner of the slot, before its first reservation in the log.
  void PublishFirstRecord(SlotId slot);
  Lsn OldestFirstRecord() const override;

  Timestamp low_water() const override { return Timestamp{low_water_.load(std::memory_order_seq_cst)}; }
  Timestamp AdvanceNow() override;
  // Low-water as it is, after a round if the last one that was run here began for a timestamp which is `every` or more below the caller's. So a
  // transaction that is open for long costs one round for that many timestamps.
  Timestamp LowWaterFor(Timestamp caller, uint64_t every);
  // A round, and who reads. What an answer says holds also for those who read later: the readers of each answer lie within those of the answers
  // before, so one may be used for long (S6). Nothing if another round is under way.
  std::optional<Readers> RoundForReaders();

  uint32_t open_transactions() const;
  Timestamp next_timestamp() const { return Timestamp{counter_.load(std::memory_order_seq_cst)}; }
  // The oldest open transaction or snapshot; the counter if none is open. A metric.
  Timestamp oldest() const;
  // What keeps low-water back: its timestamp, and since when rounds have found it to be the oldest one.
  struct Oldest {
    Timestamp timestamp;
    MonotonicTime since;
  };
  Oldest held_back_by() const;
  Timestamp proposed() const { return Timestamp{proposed_.load(std::memory_order_seq_cst)}; }

 private:
  // In a slot's bound: it is a lower bound of a timestamp that is being drawn; its transaction writes, or has declared that it will; a snapshot's.
  static constexpr uint64_t kChoosing = uint64_t{1} << 63;
  static constexpr uint64_t kWriter = uint64_t{1} << 62;
  static constexpr uint64_t kSnapshot = uint64_t{1} << 61;
  static constexpr uint64_t kBoundFlags = kChoosing | kWriter | kSnapshot;

  struct alignas(64) Slot {
    std::atomic<uint64_t> bound{0};
    std::atomic<uint64_t> first_lsn{UINT64_MAX};
  };

  // Claims a slot. Its bound is still 0.
  Result<SlotId> Claim();
  void ReleaseBit(SlotId slot);
  // min(`limit`, bounds of all claimed slots).
  uint64_t OldestBound(uint64_t limit) const;
  // Calls `visit(bound, flags)` for every slot in use.
  template <typename Visit>
  void ForEachBound(Visit&& visit) const;
  // A snapshot of what is proposed now, if that contains the timestamp.
  Result<std::optional<Begun>> TrySnapshot(Timestamp min_timestamp);
  // L2, ahead; nothing if another round is under way, or a transaction is in the way: then `*in_the_way` is the lower bound of the first one.
  Result<std::optional<Begun>> TryAhead(Timestamp min_timestamp, uint64_t* in_the_way);
  Result<Begun> WaitForSnapshot(Timestamp min_timestamp, Deadline deadline);
  // The first slot that holds neither a snapshot nor a transaction that has only read for long. REQUIRES: the caller has set `round_`.
  uint64_t FirstInTheWay() const;
  // Whether there is none below it.
  bool MayPass(uint64_t snapshot) const { return FirstInTheWay() >= snapshot; }
  void NoteAges();
  // A round, by whoever has set `round_`. Answers the counter, read first.
  uint64_t Round();

  Options options_;
  Runtime& runtime_;
  alignas(64) std::atomic<uint64_t> counter_;
  alignas(64) std::atomic<uint64_t> proposed_;
  std::atomic<uint64_t> low_water_;
  std::atomic<uint32_t> round_{0};
  std::atomic<uint64_t> advanced_for_{0};  // the caller's timestamp of the last round of LowWaterFor
  // One of the threads that wait for a snapshot runs the rounds; the others wait on `advanced_`, which is bumped when they may go on: when
  // `proposed_` has risen, or `passable_`: from where on something is in the way of a snapshot that passes transactions, as the one with the lead has
  // found it.
  std::atomic<uint32_t> polling_{0};
  std::atomic<uint64_t> passable_{0};
  std::atomic<uint32_t> advanced_{0};
  // Used by the thread that has set `round_`. What began below `long_open_below_` has been open for pass_readers_after.
  uint64_t long_open_below_ = 0;
  uint64_t noted_counter_ = 0;
  MonotonicTime noted_at_{};
  Readers readers_;  // as last answered; used by the thread that has set `round_`
  std::atomic<uint64_t> oldest_{0};
  std::atomic<int64_t> oldest_since_{0};
  alignas(64) std::atomic<uint64_t> ahead_{0};  // seldom changes; each writer looks at it
  const uint32_t words_;
  std::unique_ptr<std::atomic<uint64_t>[]> claimed_;  // bitmap of claimed slots
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace deut::tc

#endif  // TC_TXN_ACTIVE_TRANSACTIONS_H_
