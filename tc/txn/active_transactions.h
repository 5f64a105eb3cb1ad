// ActiveTransactions: the timestamp counter, the slots of open transactions and snapshots, and low-water (rules L1, L2, S2, D3).
//
// Words. `counter_`: the next timestamp. A slot's `bound`: 0 = free; else first a lower bound of its transaction's timestamp, then the timestamp,
//   with a flag if the transaction writes. A snapshot's bound is the timestamp below which it reads. `proposed_`, `low_water_`,
//   `latest_passing_snapshot_` only rise.
// L1 begin:      slot.bound = counter; ts = counter++; slot.bound = ts.           (publish, then draw)
//    round:      c = counter; L = min(c, all slots).                              (counter first, then slots)
//    In the total order either the round sees the slot, or the slot was published after the round had read the counter, and then
//    ts >= c >= L. A slot is cleared only when the status is final and, if committed, the commit LSN is reserved.
//    The first store and the draw are sequentially consistent. The store of the timestamp, and the clearing store, only release: a thread that sees
//    them late sees the bound from before, which is not above the timestamp.
// D3: L is never above the durably reserved timestamps, though the counter may be (draws that were refused). A snapshot that reads below L, or a DC
//    that consolidates below it, must not meet a transaction below L that a restarted TC begins.
// L2 round, by one thread at a time (`round_` is a try-flag: a thread that finds it taken uses the present value, none waits):
//                proposed = max(itself, L); look at the slots again; only if none is below L: low_water = max(itself, L).
//                (Transactions and snapshots share one array of slots; looking at all of them again is more than L2 asks.)
//    snapshot:   x = proposed; slot = x; repeat until proposed is still x; r = x.
//    Either the round's second look sees the snapshot's slot, or the snapshot's second load sees the round's proposal and tries again.
// L2, ahead (snapshot_begin.cc). A snapshot that must contain a timestamp m waits until every transaction that may still write is above m. It
//   does not wait for a transaction that has been open for `pass_readers_after` and has only read. The snapshot passes it, and that transaction
//   loses if it writes afterwards.
//     snapshot, holding `round_`:  r = the first member of S6's A above m; ahead = max(itself, r); look at the slots; slot = r.
//                                  It gives up, for now, if a slot below r writes, has yet to draw, or has not been open for that long.
//     first write:                 slot.bound |= writes; then lose if ahead is above the own timestamp. Nothing is posted before.
//   All of this is sequentially consistent: either the snapshot's look sees that the transaction writes, or the transaction sees the snapshot.
//   *Else:* the snapshot misses a version below r that is committed afterwards. A transaction that begins after the look draws r or above it, as r
//   is at or below the counter. No other round runs meanwhile, so low-water stays at or below r. No version that r reads leaves early, because r
//   is in A, and the slot is set before the next A is made. Shipping depends on low-water alone, which waits for readers as ever (S1).
//   Why the timestamp m + 1 and not the counter: it passes the fewest transactions. Why it waits at all: transactions that read first and then write
//   mostly end within milliseconds, and would lose for nothing. A loser declares its keys when it is retried (R11): then it is a writer from its
//   begin on, and no snapshot passes it.
// S6, early: RoundForReaders is a round that also returns the readers, A: the points proposed, low-water and the bounds of slots, and everything from
//    a bound on. That bound is the minimum of the counter, read first, and the lower bounds of slots that have yet to store their timestamp. The
//    slots are read after the proposal is published: a snapshot whose slot is not seen there loads `proposed` afterwards. From then on a round
//    rounds its proposal up to a member of A, so that a snapshot reads where versions were kept. (Rounding passes no transaction's timestamp: that
//    is a member, or not below the counter. But a lower bound that was read long ago may be neither. So the bound of "everything" never falls, and
//    an A that has seen such a lower bound stays within the sets before it. A version that was removed because of one A stays unread for ever.)
// S2: `first_lsn` of a slot is a lower bound of the LSN of the transaction's first log record, published (the log's tail) before its
//    first reservation; OldestFirstRecord reads the tail first, then the slots.
// Slots are claimed by compare-and-swap on a bitmap. Limit: `max_transactions`; beyond it RESOURCE_EXHAUSTED.
// Thread-safety: all methods from any thread. Ownership: `runtime` and everything that the options refer to must outlive it.
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
    Timestamp first_timestamp{1};      // D3: above every timestamp that was ever reserved
    // D3: returns OK once a durable reservation covers the timestamp; nearly always at once.
    std::function<Status(Timestamp timestamp, Deadline deadline)> ensure_reserved;
    // D3: all timestamps below the result are durably reserved. Empty: every timestamp is.
    std::function<Timestamp()> reserved_below;
    // L2, ahead: snapshots pass a transaction that has been open for this long and has not written. Measured (pass_readers_bench.cc): a
    // transaction that reads for longer before its first write loses to 97 to 100 % of the snapshots that wait for it. One that reads for less
    // loses to none.
    // A snapshot waits for readers for at most twice this time. So the value is above ten round trips of 1 ms with work between them, and below a
    // pause that a client notices. It is no flag because both sides are bounded without one. A transaction that has lost declares its keys when
    // it is retried (R11), and no snapshot passes it then.
    Duration pass_readers_after = milliseconds(20);
    // S2: returns the log's tail.
    std::function<Lsn()> log_tail;
  };

  ActiveTransactions(Options options, Runtime& runtime);
  ~ActiveTransactions() override;

  // Maximum number of open transactions and snapshots.
  uint32_t capacity() const { return words_ * 64; }

  struct Begun {
    SlotId slot;
    Timestamp timestamp;
  };
  // L1. With `writes` the transaction is a writer from the start and needs no BecomeWriter.
  Result<Begun> Begin(Deadline deadline, bool writes = false);
  // L2. Waits until the snapshot contains `min_timestamp`; holds no slot meanwhile. INVALID_ARGUMENT if that timestamp was never drawn.
  Result<Begun> BeginSnapshot(Timestamp min_timestamp, Deadline deadline);
  // L2, ahead. The slot's owner calls it before the transaction posts, publishes or installs anything. False: a snapshot contains its timestamp
  // already, and the transaction must end without a write.
  [[nodiscard]] bool BecomeWriter(SlotId slot, Timestamp timestamp);
  // A metric: the highest timestamp of a snapshot that has passed a transaction.
  Timestamp latest_passing_snapshot() const {
    return Timestamp{latest_passing_snapshot_.load(std::memory_order_seq_cst)};
  }
  void End(SlotId slot);
  // A timestamp that no transaction has. Nothing: no slot is free, or no reservation covers it (D3).
  std::optional<Timestamp> DrawUnused(Deadline deadline);

  // S2. The slot's owner calls it before its first reservation in the log.
  void PublishFirstRecord(SlotId slot);
  Lsn OldestFirstRecord() const override;

  Timestamp low_water() const override { return Timestamp{low_water_.load(std::memory_order_seq_cst)}; }
  Timestamp AdvanceNow() override;
  // Returns low-water. First runs a round, if the caller's timestamp is at least `every` above that of the caller for which the last round was run
  // here. So a transaction that is open for long costs one round per `every` timestamps.
  Timestamp RefreshedLowWater(Timestamp caller, uint64_t every);
  // Runs a round and returns the readers. The result also holds for later readers: the readers of each result lie within those of the results
  // before, so a result may be used for long (S6). Nothing if another round is in flight.
  std::optional<Readers> RoundForReaders();

  uint32_t open_transactions() const;
  Timestamp next_timestamp() const { return Timestamp{counter_.load(std::memory_order_seq_cst)}; }
  // A metric: timestamp of the oldest open transaction or snapshot; the counter if none is open.
  Timestamp oldest() const;
  // The timestamp that holds low-water back, and since when rounds have found it to be the oldest.
  struct Oldest {
    Timestamp timestamp;
    MonotonicTime since;
  };
  Oldest held_back_by() const;
  Timestamp proposed() const { return Timestamp{proposed_.load(std::memory_order_seq_cst)}; }

 private:
  // Flags in a slot's bound: a lower bound of a timestamp being drawn; the transaction writes, or has declared that it will; a snapshot's.
  static constexpr uint64_t kDrawing = uint64_t{1} << 63;
  static constexpr uint64_t kWriter = uint64_t{1} << 62;
  static constexpr uint64_t kSnapshot = uint64_t{1} << 61;
  static constexpr uint64_t kBoundFlags = kDrawing | kWriter | kSnapshot;

  struct alignas(64) Slot {
    std::atomic<uint64_t> bound{0};
    std::atomic<uint64_t> first_lsn{UINT64_MAX};
  };

  // Claims a slot, and leaves its bound 0.
  Result<SlotId> Claim();
  void ReleaseBit(SlotId slot);
  // L1, L2: true if low-water is at or below the bound of the slot, which the caller owns and has published.
  bool LowWaterRespects(SlotId slot) const;
  // min(`limit`, bounds of all claimed slots).
  uint64_t OldestBound(uint64_t limit) const;
  // Calls `visit(bound, flags)` for every slot in use.
  template <typename Visit>
  void ForEachBound(Visit&& visit) const;
  // Begins a snapshot at the present `proposed_`, if that is above `min_timestamp`.
  Result<std::optional<Begun>> TrySnapshot(Timestamp min_timestamp);
  // L2, ahead. Nothing if another round is in flight, or a transaction is in the way: then `*in_the_way` is the lower bound of the first one.
  Result<std::optional<Begun>> TryPassingSnapshot(Timestamp min_timestamp, uint64_t* in_the_way);
  Result<Begun> WaitForSnapshot(Timestamp min_timestamp, Deadline deadline);
  // The lowest bound of a slot that a snapshot may not pass: neither a snapshot nor a long open transaction that has only read. REQUIRES: the
  // caller has set `round_`.
  uint64_t FirstInTheWay() const;
  // True if no such slot is below `snapshot`.
  bool MayPass(uint64_t snapshot) const { return FirstInTheWay() >= snapshot; }
  void SampleCounterForAges();
  // Runs a round. REQUIRES: the caller has set `round_`. Returns the counter, which it reads first.
  uint64_t Round();

  Options options_;
  Runtime& runtime_;
  alignas(64) std::atomic<uint64_t> counter_;
  alignas(64) std::atomic<uint64_t> proposed_;
  std::atomic<uint64_t> low_water_;
  std::atomic<uint32_t> round_{0};
  std::atomic<uint64_t> last_round_caller_{0};  // its timestamp, when RefreshedLowWater last ran a round
  // One of the threads that wait for a snapshot leads: it runs the rounds. The others wait on `wake_word_`, which is bumped when they may go on,
  // because `proposed_` or `passable_below_` has risen. `passable_below_`: the lowest bound that a snapshot may not pass, as the leader found it
  // last.
  std::atomic<uint32_t> has_leader_{0};
  std::atomic<uint64_t> passable_below_{0};
  std::atomic<uint32_t> wake_word_{0};
  // Used by the thread that has set `round_`. A transaction with a timestamp below `long_open_below_` has been open for at least pass_readers_after.
  uint64_t long_open_below_ = 0;
  uint64_t sampled_counter_ = 0;
  MonotonicTime sampled_at_{};
  Readers readers_;  // the last result of RoundForReaders; used by the thread that has set `round_`
  std::atomic<uint64_t> oldest_{0};
  std::atomic<int64_t> oldest_since_{0};
  alignas(64) std::atomic<uint64_t> latest_passing_snapshot_{0};  // seldom changes; each writer loads it
  const uint32_t words_;
  std::unique_ptr<std::atomic<uint64_t>[]> claimed_;  // bitmap of claimed slots
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace deut::tc

#endif  // TC_TXN_ACTIVE_TRANSACTIONS_H_
