#include "tc/mvcc/collector.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// Entries of the read cache that one round examines: less than a millisecond of work.
constexpr size_t kEvictedPerRound = 2048;
// Buckets of the record table that one round sweeps when some floors are very old: one or two milliseconds of work.
constexpr size_t kSweptPerRound = 256 << 10;
// Approximate number of spilled versions that one round merges: a round takes at most a few milliseconds.
constexpr size_t kMergedPerRound = 32 << 10;

}  // namespace

Collector::Collector(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records)
    : options_(std::move(options)),
      runtime_(runtime),
      records_(records),
      entries_(domain, records, options_.max_deferred_entries),
      unlinker_({.low_water = options_.low_water, .released = options_.released, .read_cache = options_.read_cache},
                domain, records, commits_, entries_),
      value_evictor_(options_.value_evictor, domain),
      folder_({.low_water = options_.low_water,
               .released = options_.released,
               .readers = options_.readers,
               .runs = options_.runs,
               .fold_after = options_.fold_after,
               .fold_at_least = options_.fold_at_least},
              runtime, domain, records,
              {.commits = commits_, .entries = entries_, .unlinker = unlinker_, .value_evictor = value_evictor_}),
      spiller_(options_.spiller, runtime, domain) {}

Collector::~Collector() { Stop(); }

void Collector::Start() {
  thread_ = runtime_.StartThread("tc-collector", [this] { Run(); });
}

void Collector::Stop() {
  if (!thread_) return;
  stop_.store(true, std::memory_order_seq_cst);
  WakeUp();
  thread_->Join();
  thread_.reset();
  RunTasks();
  DrainFinished();
  unlinker_.CollectAborted();
  std::vector<FinishedTransaction> rest = std::exchange(applied_, {});
  for (FinishedTransaction next; commits_.PopThrough(kEveryPosition, &next);) rest.push_back(std::move(next));
  unlinker_.Collect(std::move(rest));
  unlinker_.SweepPostings(true);
  folder_.DropAppliedAndMergeRuns(kEveryPosition);
  if (spiller_.runs() != nullptr) spiller_.runs()->Drop();
  entries_.TakeArrivals();
  entries_.RetryAll(kMaxTimestamp);
  DEUT_CHECK(commits_.waiting() == 0);  // each transaction that was handed over has left
  DEUT_DCHECK(commits_.folded_bytes() == 0);
  // From here on the caller of RunBetweenRounds runs its task itself: either this last RunTasks sees the task, or the caller sees `stopped_`.
  stopped_.store(true, std::memory_order_seq_cst);
  RunTasks();
}

void Collector::WakeUp() {
  work_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) runtime_.WakeAll(work_);
}

void Collector::Finish(TransactionRecord* record) {
  DEUT_DCHECK(record->status() == TransactionStatus::kCommitted || record->status() == TransactionStatus::kAborted);
  commits_.CountArrival();
  TransactionRecord* head = finished_.load(std::memory_order_relaxed);
  do {
    record->next_finished = head;
    DEUT_POINT("collector.finish.before_cas");
  } while (!finished_.compare_exchange_weak(head, record, std::memory_order_seq_cst));
  // While the thread has work it checks the stack every period. Only the deep sleep (2) needs a wake-up.
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::Defer(RecordEntry* entry) {
  entries_.Defer(entry);
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::MakeRoom() {
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::Run() {
  for (;;) {
    const uint32_t seen = work_.load(std::memory_order_seq_cst);
    Round();
    if (stop_.load(std::memory_order_seq_cst)) return;
    const bool waiting = !commits_.empty() || !applied_.empty() || !entries_.empty() || more_to_do_ ||
                         (spiller_.runs() != nullptr && !spiller_.runs()->empty());
    // Light sleep (1), with a time-out, while there is something to check again soon; else deep sleep (2) until a wake-up.
    sleeping_.store(waiting ? 1 : 2, std::memory_order_seq_cst);
    const bool arrived = !waiting && (finished_.load(std::memory_order_seq_cst) != nullptr || entries_.has_arrivals());
    if (!arrived && !stop_.load(std::memory_order_seq_cst)) {
      runtime_.Wait(work_, seen, waiting ? runtime_.Now() + options_.period : kNoDeadline);
    }
    sleeping_.store(0, std::memory_order_seq_cst);
  }
}

void Collector::Round() {
  // Commits that the previous round found applied have now been kept for one round (S5).
  unlinker_.Collect(std::exchange(applied_, {}));
  DEUT_CHECK(unlinker_.last_collected() <= unlinker_.own_collected_through());
  // Below the spill threshold small values are not meant to leave memory, so such a round is no evidence that nothing can
  // leave.
  const bool pressed = value_evictor_.pressed() && (spiller_.runs() == nullptr || spiller_.excess());
  uint64_t freed = spiller_.SpillEarliest(&commits_, &entries_, [this] {
    const Timestamp low_water = options_.low_water();
    records_.FreeFloorsBelow(low_water);  // so that more floors can hold the last_read of a spilled key
    return low_water;
  });
  // Read before DrainFinished: a transaction whose first record is before this LSN, and which has cleared its slot, is
  // taken over below.
  const Lsn finished_below = spiller_.runs() == nullptr ? Lsn{0} : options_.spiller.oldest_first_record();
  // The applied position first, the finished transactions second. A commit at or below the position was below low-water,
  // so every earlier writer of its keys had cleared its slot, hence was handed over. In the other order an earlier commit
  // could arrive after a later commit of the same key was collected, and the version it points to would be gone.
  Position applied = options_.applied();
  DrainFinished();
  commits_.set_complete_below(finished_below);
  DEUT_POINT("collector.taken");
  if (DEUT_OMITTED("S6.applied_first")) applied = options_.applied();
  unlinker_.CollectAborted();
  unlinker_.RaiseCollectedThrough(applied);
  // Spilled runs that are applied as a whole are dropped before anything behind them is collected, too.
  if (spiller_.runs() != nullptr)
    spiller_.runs()->DropAppliedAndMerge(applied, kMergedPerRound, [this] { return ReaderPredicate(); });
  for (FinishedTransaction next; commits_.PopThrough(DEUT_OMITTED("S6.applied") ? kEveryPosition : applied, &next);) {
    applied_.push_back(std::move(next));
  }
  round_applied_ = applied;
  if (folder_.ShouldFold()) folder_.Fold();
  // A key of a spilled commit no longer needs the in-memory runs: a reader that misses it there finds it in the spilled
  // runs.
  const Lsn spilled = spiller_.runs() == nullptr ? Lsn{0} : spiller_.runs()->through();
  folder_.DropAppliedAndMergeRuns(std::max(applied, Position{spilled, UINT32_MAX}));
  // The value evictor comes last: applied and unread versions leave as a whole, so paging them out first would be wasted
  // work.
  if (options_.value_evictor.excess) {
    const uint64_t paged = value_evictor_.Run(std::max(unlinker_.last_collected(), spilled));
    commits_.SubtractFoldedBytes(paged);
    freed += paged;
  }
  CountRoundsWithoutProgress(pressed, freed);
  // In a run that is partly applied the first waiting commit is not known. When the DC is idle, its timestamp is above
  // that of the reader that the DC waits for, as for commits in memory.
  commits_.PublishFirst(spiller_.runs() == nullptr ? Timestamp{0}
                                                   : spiller_.runs()->first(unlinker_.own_collected_through()));
  entries_.TakeArrivals();
  DEUT_POINT("collector.deferred_taken");
  if (!entries_.empty()) {
    const Timestamp low_water = options_.low_water();
    records_.FreeFloorsBelow(low_water);
    entries_.Retry(low_water);
  }
  more_to_do_ = records_.SweepFloors(kSweptPerRound);
  if (NoneUnfolded()) unlinker_.SweepPostings(true);
  if (EvictCopies()) more_to_do_ = true;
  RunTasks();
  if (options_.free_tables) {
    Access access(*this);
    if (options_.free_tables(access)) more_to_do_ = true;
  }
}

SpillMerge::AnyReader Collector::ReaderPredicate() {
  std::optional<Readers> readers = options_.readers ? options_.readers() : std::nullopt;
  if (!readers) return nullptr;  // another round is in flight: assume that any version may be read
  return [readers = *std::move(readers)](Timestamp after, Timestamp to) { return readers.AnyIn(after, to); };
}

void Collector::DrainFinished() {
  TransactionRecord* record = finished_.exchange(nullptr, std::memory_order_seq_cst);
  while (record != nullptr) {
    TransactionRecord* const next = record->next_finished;
    if (FinishedTransaction::Committed(*record)) {
      commits_.Add(record);
    } else {
      unlinker_.AddAborted(record);
    }
    record = next;
  }
  commits_.Settle();
}

void Collector::CountRoundsWithoutProgress(bool pressed, uint64_t freed) {
  // If the last commits are not durable yet, memory may be freed in a moment: such a round is no evidence.
  const bool soon = options_.value_evictor.durable && commits_.last_taken() >= options_.value_evictor.durable();
  if (pressed && freed == 0 && soon) return;
  const uint32_t before = rounds_without_progress_.load(std::memory_order_relaxed);
  rounds_without_progress_.store(pressed && freed == 0 ? std::min(before + 1, kMaxRoundsWithoutProgress) : 0,
                                 std::memory_order_relaxed);
}

bool Collector::EvictCopies() {
  if (options_.read_cache == nullptr) return false;
  std::optional<Timestamp> low_water;
  return options_.read_cache->Evict(kEvictedPerRound, [&](RecordEntry* entry) {
    if (!low_water) low_water = options_.low_water();
    entries_.Remove(entry, *low_water);
  });
}

}  // namespace deut::tc
