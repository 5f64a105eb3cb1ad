#include "tc/mvcc/collector.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/collect_ahead.h"
#include "tc/mvcc/stepped_guard.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

// Deferred entries that one round retries after low-water moved: kMinRetried plus 1/kRetriedDivisor of the list.
constexpr size_t kMinRetried = 1024;
constexpr size_t kRetriedDivisor = 16;
// Fewer than Options::fold_at_least commits are folded when the first of them has waited for kFewCommitsFoldFactor times Options::fold_after.
constexpr int kFewCommitsFoldFactor = 64;
// Commits that only the DC's delay holds back are folded when the first of them has waited for kDcDelayFoldFactor times fold_after: most are applied
// before that. From then on commits are folded as they come, until folded_ is empty, so that the number of postings does not grow with the DC's
// delay.
constexpr int kDcDelayFoldFactor = 5;
// Entries of the read cache that one round examines: less than a millisecond of work.
constexpr size_t kEvictedPerRound = 2048;
// Buckets of the record table that one round sweeps when some floors are very old: one or two milliseconds of work.
constexpr size_t kSweptPerRound = 256 << 10;
// Approximate number of run entries that one round merges: a round takes at most a few milliseconds.
constexpr size_t kMergedPerRound = 32 << 10;

// At or behind every commit.
constexpr Position kEverything{Lsn{UINT64_MAX}, UINT32_MAX};

// Position of the transaction's last logged update.
Position LastPosition(const TransactionRecord& record) {
  uint32_t last = 0;
  record.ForEachWrite([&](const WriteItem& item) {
    if (item.version != nullptr) last = std::max(last, item.version->sequence);
  });
  return Position{record.commit_lsn(), last};
}

}  // namespace

Collector::Collector(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records)
    : options_(std::move(options)),
      runtime_(runtime),
      domain_(domain),
      records_(records),
      value_evictor_(options_.value_evictor, domain),
      spiller_(options_.spiller, runtime, domain),
      dead_postings_(domain) {}

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
  CollectAborted();
  std::vector<Applied> rest = std::exchange(applied_, {});
  for (Applied next; PopApplied(kEverything, &next);) rest.push_back(std::move(next));
  Collect(std::move(rest));
  dead_postings_.Sweep(true);
  DropAppliedAndMergeRuns(kEverything);
  if (spiller_.runs() != nullptr) spiller_.runs()->Drop();
  {
    DrainDeferred();
    ReclamationDomain::Guard guard(domain_);
    RetryOldest(deferred_.size(), kMaxTimestamp);
  }
  // From here on the caller of RunBetweenRounds runs its task itself: either this last RunTasks sees the task, or the caller sees `stopped_`.
  stopped_.store(true, std::memory_order_seq_cst);
  RunTasks();
}

void Collector::WakeUp() {
  work_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) runtime_.WakeAll(work_);
}

void Collector::Finish(TransactionRecord* record) {
  uncollected_.fetch_add(1, std::memory_order_relaxed);
  TransactionRecord* head = finished_.load(std::memory_order_relaxed);
  do {
    record->next_finished = head;
    DEUT_POINT("collector.finish.before_cas");
  } while (!finished_.compare_exchange_weak(head, record, std::memory_order_seq_cst));
  // While the thread has work it checks the stack every period. Only the deep sleep (2) needs a wake-up.
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::Defer(RecordEntry* entry) {
  auto* const arriving = new Arriving{.entry = entry, .next = arriving_.load(std::memory_order_relaxed)};
  arriving_count_.fetch_add(1, std::memory_order_relaxed);
  while (!arriving_.compare_exchange_weak(arriving->next, arriving, std::memory_order_seq_cst)) {
  }
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::DrainDeferred() {
  Arriving* arriving = arriving_.exchange(nullptr, std::memory_order_seq_cst);
  if (arriving == nullptr) return;
  size_t taken = 0;
  for (; arriving != nullptr; ++taken) {
    deferred_.push_back(arriving->entry);
    delete std::exchange(arriving, arriving->next);
  }
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
  arriving_count_.fetch_sub(taken, std::memory_order_relaxed);
}

void Collector::MakeRoom() {
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::Run() {
  for (;;) {
    const uint32_t seen = work_.load(std::memory_order_seq_cst);
    Round();
    if (stop_.load(std::memory_order_seq_cst)) return;
    const bool waiting = !committed_.empty() || !applied_.empty() || !folded_.empty() || !deferred_.empty() ||
                         more_to_evict_ || more_to_free_ || more_to_sweep_ ||
                         (spiller_.runs() != nullptr && !spiller_.runs()->empty());
    // Light sleep (1), with a time-out, while there is something to check again soon; else deep sleep (2) until a wake-up.
    sleeping_.store(waiting ? 1 : 2, std::memory_order_seq_cst);
    const bool arrived = !waiting && (finished_.load(std::memory_order_seq_cst) != nullptr ||
                                      arriving_.load(std::memory_order_seq_cst) != nullptr);
    if (!arrived && !stop_.load(std::memory_order_seq_cst)) {
      runtime_.Wait(work_, seen, waiting ? runtime_.Now() + options_.period : kNoDeadline);
    }
    sleeping_.store(0, std::memory_order_seq_cst);
  }
}

void Collector::Round() {
  // Commits that the previous round found applied have now been kept for one round (S5).
  Collect(std::exchange(applied_, {}));
  // Below the spill threshold small values are not meant to leave memory, so such a round is no evidence that nothing can leave.
  const bool pressed = value_evictor_.pressed() && (spiller_.runs() == nullptr || spiller_.excess());
  uint64_t freed = Spill();
  // Read before DrainFinished: a transaction whose first record is before this LSN, and which has cleared its slot, is taken over below.
  const Lsn finished_below = spiller_.runs() == nullptr ? Lsn{0} : options_.spiller.oldest_first_record();
  // The applied position first, the finished transactions second. A commit at or below the position was below low-water, so every earlier writer
  // of its keys had cleared its slot, hence was handed over. In the other order an earlier commit could arrive after a later commit of the same
  // key was collected, and the version it points to would be gone.
  Position applied = options_.applied();
  DrainFinished();
  finished_below_ = finished_below;
  DEUT_POINT("collector.taken");
  if (DEUT_OMITTED("S6.applied_first")) applied = options_.applied();
  CollectAborted();
  if (applied.commit.value > collected_through_.load(std::memory_order_relaxed)) {
    collected_through_.store(applied.commit.value,
                             std::memory_order_seq_cst);  // before anything is collected because of it
  }
  // Spilled runs that are applied as a whole are dropped before anything behind them is collected, too.
  if (spiller_.runs() != nullptr)
    spiller_.runs()->DropAppliedAndMerge(applied, kMergedPerRound, [this] { return ReaderPredicate(); });
  for (Applied next; PopApplied(DEUT_OMITTED("S6.applied") ? kEverything : applied, &next);) {
    applied_.push_back(std::move(next));
  }
  round_applied_ = applied;
  if (ShouldFold()) Fold();
  // A key of a spilled commit no longer needs the in-memory runs: a reader that misses it there finds it in the spilled runs.
  const Lsn spilled = spiller_.runs() == nullptr ? Lsn{0} : spiller_.runs()->through();
  DropAppliedAndMergeRuns(std::max(applied, Position{spilled, UINT32_MAX}));
  // The value evictor comes last: applied and unread versions leave as a whole, so paging them out first would be wasted work.
  if (options_.value_evictor.excess) {
    const uint64_t paged = value_evictor_.Run(std::max(last_collected_, spilled));
    folded_bytes_.fetch_sub(paged, std::memory_order_relaxed);
    freed += paged;
  }
  CountRoundsWithoutProgress(pressed, freed);
  UpdateFirstWaiting();
  DrainDeferred();
  DEUT_POINT("collector.deferred_taken");
  if (!deferred_.empty()) {
    const Timestamp low_water = options_.low_water();
    records_.FreeFloorsBelow(low_water);
    ReclamationDomain::Guard guard(domain_);
    RetryDeferred(low_water);
  }
  more_to_sweep_ = records_.SweepFloors(kSweptPerRound);
  if (committed_.empty() && applied_.empty()) dead_postings_.Sweep(true);
  EvictCopies();
  RunTasks();
  if (options_.free_tables) {
    Access access(*this);
    more_to_free_ = options_.free_tables(access);
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
    if (record->status() == TransactionStatus::kCommitted && record->commit_lsn().value != 0) {
      committed_.Add(record->commit_lsn(), record);
      last_taken_ = std::max(last_taken_, record->commit_lsn());
    } else {
      aborted_.push_back(record);
    }
    record = next;
  }
  committed_.Settle();
}

void Collector::CollectAborted() {
  std::vector<Applied> gone;
  for (TransactionRecord* const record : std::exchange(aborted_, {})) gone.push_back({.record = record, .folded = {}});
  Collect(std::move(gone));
}

bool Collector::PopApplied(Position through, Applied* next) {
  // Takes from the queue whose first commit is earlier.
  if (!folded_.empty() && (committed_.empty() || folded_.front().last().commit < committed_.front().commit)) {
    if (folded_.front().last() > through) return false;
    next->record = nullptr;
    next->folded = std::move(folded_.front());
    folded_.pop_front();
    folded_count_.store(folded_.size(), std::memory_order_relaxed);
    return true;
  }
  if (committed_.empty()) return false;
  // Most commits lie before the one that `through` points into. For them the walk to the last update is not needed.
  const CommitQueue::Item& first = committed_.front();
  if (first.commit >= through.commit && LastPosition(*first.record) > through) return false;
  next->record = committed_.Pop();
  return true;
}

void Collector::Collect(std::vector<Applied> gone) {
  if (gone.empty()) return;
  uint64_t bytes = 0;
  const Timestamp low_water = options_.low_water();
  std::vector<FoldedUpdate> folded;
  std::optional<SteppedGuard> guard(std::in_place, domain_);
  for (size_t i = 0; i < gone.size(); ++i) {
    guard->Step();
    CollectAhead(i, gone.size(), records_, [&](size_t n) { return gone[n].record; });
    const Applied& applied = gone[i];
    TransactionRecord* const record = applied.record;
    const bool committed =
        record == nullptr || (record->status() == TransactionStatus::kCommitted && record->commit_lsn().value != 0);
    if (committed) {
      const Lsn commit = applied.commit();
      DEUT_CHECK(commit > last_collected_);  // else its versions may have been retired already
      last_collected_ = commit;
    }
    if (record == nullptr) {
      folded_bytes_.fetch_sub(applied.folded.bytes(), std::memory_order_relaxed);
      for (RecordEntry* const entry : applied.folded.entries()) folded.push_back({entry, applied.folded.timestamp()});
      continue;
    }
    CollectFolded(&folded, low_water, *guard);  // keeps commit order: these come before `record`
    bytes += record->pinned_bytes;
    CollectItems(*record, low_water, *guard);
    ReleaseRecord(*record);
  }
  CollectFolded(&folded, low_water, *guard);
  guard.reset();
  if (bytes != 0 && options_.released) options_.released(bytes);
  dead_postings_.Sweep(false);
  uncollected_.fetch_sub(gone.size(), std::memory_order_relaxed);
  collected_.fetch_add(gone.size(), std::memory_order_relaxed);
}

void Collector::CollectFolded(std::vector<FoldedUpdate>* updates, Timestamp low_water, SteppedGuard& guard) {
  if (updates->empty()) return;
  std::ranges::sort(*updates, [](const FoldedUpdate& a, const FoldedUpdate& b) {
    return a.entry != b.entry ? std::less<>()(a.entry, b.entry) : a.timestamp > b.timestamp;
  });
  uint64_t bytes = 0;
  RecordEntry* done = nullptr;
  for (size_t i = 0; i < updates->size(); ++i) {
    const auto& [entry, latest] = (*updates)[i];
    // No step between two updates of one entry: the first may have removed the entry, and the second still prefetches it.
    if (entry != done) guard.Step();
    DEUT_POINT("collector.folded_update");
    if (i + 8 < updates->size()) __builtin_prefetch((*updates)[i + 8].entry);
    if (i + 4 < updates->size()) __builtin_prefetch((*updates)[i + 4].entry->word.Load().head);
    if (entry == std::exchange(done, entry)) continue;
    RecordVersion* version = entry->word.Load().head;
    while (version != nullptr && (version->transaction->timestamp() > latest || version->dead())) {
      DEUT_POINT("collector.chain_step");
      version = version->older.load(std::memory_order_seq_cst);
    }
    if (version == nullptr) continue;  // unlinked because no reader could read it (S6, early)
    // This version and those below it are no longer pinned. Only a transaction's newest version of the key is counted, and only if it was not
    // found applied before.
    const TransactionRecord* above = nullptr;
    for (const RecordVersion* v = version; v != nullptr; v = v->older.load(std::memory_order_seq_cst)) {
      if (v->transaction != above && !v->applied) bytes += PinnedBy(*entry, *v);
      above = v->transaction;
    }
    CollectOrRefresh(*entry, version);
    if (entry->word.Load().head == nullptr) RemoveEntry(entry, low_water);
  }
  folded_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  updates->clear();
}

void Collector::ReleaseRecord(TransactionRecord& record) {
  ReclamationDomain::Guard guard(domain_);
  record.set_collected();
  for (Range* range : record.posted) dead_postings_.Count(range);
  record.posted = {};
  DEUT_POINT("collector.marked");
  record.ForgetWriteSet(domain_);
  record.DropReference(domain_);
}

uint64_t Collector::Spill() {
  if (!spiller_.pressed()) return 0;
  // Only a prefix of all commits may be spilled: it ends before commits that may still arrive, and before those that are not folded.
  const Lsn finished_below = DEUT_OMITTED("S9.spill_prefix") ? kEverything.commit : finished_below_;
  Lsn end = std::min(finished_below, spiller_.durable());
  if (!committed_.empty()) end = std::min(end, committed_.front().commit);
  const Lsn spilled = spiller_.runs()->through();
  std::vector<FoldedCommit> taken;
  size_t updates = 0;  // updates of `taken` that are in no spilled run yet
  while (!folded_.empty() && folded_.front().last().commit < end && updates < Spiller::kPerRound) {
    taken.push_back(std::move(folded_.front()));
    folded_.pop_front();
    if (taken.back().last().commit > spilled) updates += taken.back().entries().size();
  }
  const size_t commits = taken.size();
  uint64_t freed = 0;
  if (updates >= spiller_.at_least()) {
    const Timestamp low_water = options_.low_water();
    records_.FreeFloorsBelow(low_water);
    freed = spiller_.Spill(&taken, [&](RecordEntry* entry) {
      // R6: raise the floor first. If the floor names another key, the entry is deferred, like one that a reader has made: a floor of every key
      // would abort writers of other keys, even of other tables. Spilling uses at most half of the list, so that one spill does not force
      // readers to share floors.
      const Timestamp read = entry->word.Load().last_read();
      const bool may_wait = deferred_.size() < options_.max_deferred_entries / 2 && DEUT_STEP("R6.spill_defers");
      if (!records_.TryRaiseFloor(entry->hash, read) && !may_wait) ShareFloor(entry->hash, read);
      RemoveEntry(entry, low_water);
    });
    folded_bytes_.fetch_sub(freed, std::memory_order_relaxed);
    uncollected_.fetch_sub(commits - taken.size(), std::memory_order_relaxed);
    collected_.fetch_add(commits - taken.size(), std::memory_order_relaxed);
  }
  for (; !taken.empty(); taken.pop_back()) PutFolded(std::move(taken.back()));
  folded_count_.store(folded_.size(), std::memory_order_relaxed);
  return freed;
}

void Collector::CountRoundsWithoutProgress(bool pressed, uint64_t freed) {
  // If the last commits are not durable yet, memory may be freed in a moment: such a round is no evidence.
  const bool soon = options_.value_evictor.durable && last_taken_ >= options_.value_evictor.durable();
  if (pressed && freed == 0 && soon) return;
  const uint32_t before = rounds_without_progress_.load(std::memory_order_relaxed);
  rounds_without_progress_.store(pressed && freed == 0 ? std::min(before + 1, kMaxRoundsWithoutProgress) : 0,
                                 std::memory_order_relaxed);
}

void Collector::UpdateFirstWaiting() {
  Timestamp first;
  Lsn commit{UINT64_MAX};
  if (!folded_.empty()) {
    first = folded_.front().timestamp();
    commit = folded_.front().last().commit;
  }
  if (!committed_.empty() && committed_.front().commit < commit) first = committed_.front().record->timestamp();
  // In a run that is partly applied the first waiting commit is not known. When the DC is idle, its timestamp is above that of the reader that
  // the DC waits for, as for commits in memory.
  const Timestamp spilled = spiller_.runs() == nullptr
                                ? Timestamp{0}
                                : spiller_.runs()->first(Lsn{collected_through_.load(std::memory_order_relaxed)});
  if (spilled != Timestamp{0}) first = spilled;
  first_waiting_.store(first.value, std::memory_order_relaxed);
}

// S1: the DC may not have the commit while an earlier transaction is open.
bool Collector::HeldBack(Timestamp commit) const { return options_.low_water() <= commit; }

bool Collector::ShouldFold() {
  if (!options_.runs) return false;
  // S9: only a folded commit can be paged out.
  if (!committed_.empty() && value_evictor_.pressed()) return true;
  const bool many = committed_.size() >= options_.fold_at_least;
  // Folded commits must leave before these, and either cannot leave yet, or the DC has been behind for long.
  if (folded_.empty()) lagging_ = false;
  if (many && !folded_.empty() && (lagging_ || HeldBack(folded_.back().timestamp()))) return true;
  const Duration waited = runtime_.Now() - fold_sample_time_;
  if (waited < options_.fold_after) return false;
  if (!committed_.empty() && committed_.front().commit <= fold_sample_lsn_) {
    if (waited >= (many ? kDcDelayFoldFactor : kFewCommitsFoldFactor) * options_.fold_after) return lagging_ = true;
    return many && HeldBack(committed_.front().record->timestamp());
  }
  fold_sample_time_ = runtime_.Now();
  fold_sample_lsn_ = last_taken_;
  return false;
}

void Collector::Fold() {
  if (!options_.runs || committed_.empty()) return;
  absl::flat_hash_map<TableId, std::vector<CommittedRun::Update>> updates;
  const Timestamp low_water = options_.low_water();
  Position last;
  std::optional<SteppedGuard> guard(std::in_place, domain_);
  for (size_t i = 0; i < committed_.size(); ++i) {
    CollectAhead(i, committed_.size(), records_, [&](size_t n) { return committed_[n].record; });
    const TransactionRecord* const record = committed_[i].record;
    record->ForEachWrite([&](const WriteItem& item) {
      guard->Step();
      DEUT_POINT("collector.fold.gathered");
      if (item.version == nullptr) return;
      updates[item.table].push_back({.key = item.key,
                                     .timestamp = record->timestamp(),
                                     .commit = record->commit_lsn(),
                                     .removal = item.version->tombstone});
    });
    last = std::max(last, LastPosition(*record));
  }
  const auto publish = [&] {
    for (auto& [table, of_table] : updates) {
      CommittedRuns& runs = options_.runs(table);
      runs.Add(std::move(of_table), last, domain_);
      runs_[table] = &runs;
    }
  };
  guard.reset();  // Add sorts the keys without it
  // S8: published before the records are marked: a scan that skips a marked posting must find its keys in a run.
  if (DEUT_STEP("S8.publish_first")) publish();
  DEUT_POINT("collector.fold.published");
  guard.emplace(domain_);
  std::vector<RecordEntry*> entries;
  for (size_t i = 0; i < committed_.size(); ++i) {
    TransactionRecord* const record = committed_[i].record;
    // `released` before folded_bytes_ rises: a thread that reads both in between sees too few pinned bytes. Twice as many could refuse a writer
    // or abort a reader without need.
    if (record->pinned_bytes != 0 && options_.released) options_.released(record->pinned_bytes);
    FoldedCommit commit = FoldRecord(*record, low_water, *guard);
    entries.insert(entries.end(), commit.entries().begin(), commit.entries().end());
    PutFolded(std::move(commit));
    ReleaseRecord(*record);
  }
  if (DEUT_OMITTED("S8.publish_first")) publish();
  committed_.Clear();
  folded_count_.store(folded_.size(), std::memory_order_relaxed);
  fold_sample_time_ = runtime_.Now();
  fold_sample_lsn_ = last_taken_;
  CollectEarly(std::move(entries), *guard);
  guard.reset();
  dead_postings_.Sweep(false);
}

void Collector::CollectEarly(std::vector<RecordEntry*> entries, SteppedGuard& guard) {
  // Each chain once, however many of its versions were folded: versions that stay (not folded yet) would be walked once per update.
  std::ranges::sort(entries);
  entries.erase(std::ranges::unique(entries).begin(), entries.end());
  const std::optional<Readers> readers = options_.readers ? options_.readers() : std::nullopt;
  if (!readers) return;  // another round is in flight: the next fold tries again
  DEUT_POINT("collector.readers_known");
  Unread all;
  for (size_t i = 0; i < entries.size(); ++i) {
    guard.Step();
    DEUT_POINT("collector.early_entry");
    if (i + 8 < entries.size()) __builtin_prefetch(entries[i + 8]);
    if (i + 4 < entries.size()) __builtin_prefetch(entries[i + 4]->word.Load().head);
    const Unread unread = CollectUnread(*entries[i], *readers, domain_);
    all.versions += unread.versions;
    all.bytes += unread.bytes;
  }
  unread_.fetch_add(all.versions, std::memory_order_relaxed);
  // folded_bytes_ counts a folded transaction's newest version of a key, until that is found applied.
  folded_bytes_.fetch_sub(all.bytes, std::memory_order_relaxed);
}

void Collector::PutFolded(FoldedCommit commit) {
  // Nearly always the last in commit order.
  const bool last = folded_.empty() || folded_.back().last() < commit.last();
  folded_.insert(last ? folded_.end() : std::ranges::upper_bound(folded_, commit.last(), {}, &FoldedCommit::last),
                 std::move(commit));
}

FoldedCommit Collector::FoldRecord(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard) {
  std::vector<RecordEntry*> entries;
  uint64_t bytes = 0;
  record.ForEachWrite([&](const WriteItem& item) {
    guard.Step();
    DEUT_POINT("collector.fold_update");
    RecordEntry* const entry = item.version != nullptr ? item.entry : records_.Find(item.hash, item.table, item.key);
    if (item.version != nullptr) {
      DEUT_DCHECK(entry == records_.Find(item.hash, item.table, item.key));  // the version keeps the entry in the table
      entries.push_back(entry);
      bytes += PinnedBy(*entry, *item.version);
      value_evictor_.Add(record.commit_lsn(), entry, item.version->value_bytes);
    } else if (entry != nullptr) {
      RemoveDeadAndApplied(*entry, domain_);  // the version was withdrawn, or none was installed
      if (entry->word.Load().head == nullptr) RemoveEntry(entry, low_water);
    }
  });
  FoldedCommit commit(LastPosition(record), record.timestamp(), entries);
  folded_bytes_.fetch_add(bytes + commit.bytes(), std::memory_order_relaxed);
  return commit;
}

void Collector::DropAppliedAndMergeRuns(Position applied) {
  if (runs_.empty()) return;
  ReclamationDomain::Guard guard(domain_);
  size_t left = kMergedPerRound;
  uint64_t bytes = 0;
  for (auto it = runs_.begin(); it != runs_.end();) {
    left = it->second->DropAppliedAndMerge(applied, left, domain_);
    bytes += it->second->bytes();
    if (it->second->entries() == 0) {
      runs_.erase(it++);
    } else {
      ++it;
    }
  }
  run_bytes_.store(bytes, std::memory_order_relaxed);
}

void Collector::CollectItems(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard) {
  const bool committed = record.status() == TransactionStatus::kCommitted;
  const auto collect = [&](const WriteItem& item) {
    guard.Step();
    DEUT_POINT("collector.collect_update");
    // A committed version keeps its entry (R5). An aborted version may have left, and its entry with it.
    const bool there = committed && item.version != nullptr;
    RecordEntry* const entry = there ? item.entry : records_.Find(item.hash, item.table, item.key);
    if (entry == nullptr) return;
    if (there) {
      CollectOrRefresh(*entry, item.version);
    } else {
      RemoveDeadAndApplied(*entry, domain_);
    }
    if (entry->word.Load().head == nullptr) RemoveEntry(entry, low_water);
  };
  ForEachWriteAhead(record, records_, collect);
}

void Collector::CollectOrRefresh(RecordEntry& entry, RecordVersion* version) {
  if (options_.read_cache != nullptr && options_.read_cache->Refresh(entry, *version)) return;
  CollectApplied(entry, version, domain_);
}

void Collector::EvictCopies() {
  if (options_.read_cache == nullptr) return;
  std::optional<Timestamp> low_water;
  more_to_evict_ = options_.read_cache->Evict(kEvictedPerRound, [&](RecordEntry* entry) {
    if (!low_water) low_water = options_.low_water();
    RemoveEntry(entry, *low_water);
  });
}

void Collector::RemoveEntry(RecordEntry* entry, Timestamp low_water) {
  if (entry->deferred || records_.Remove(entry, low_water)) return;
  // A writer has installed a version, or a reader has cached a copy, whose eviction will call this again.
  if (const HeadWord::Value word = entry->word.Load(); word.head != nullptr || word.queued()) return;
  entry->deferred = true;
  deferred_.push_back(entry);
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
}

void Collector::ShareFloor(uint64_t hash, Timestamp read) {
  shared_floors_.fetch_add(1, std::memory_order_relaxed);
  records_.RaiseFloor(hash, read);
}

void Collector::RetryDeferred(Timestamp low_water) {
  // Under an old reader the list may be as long as its limit, and no entry can leave. Then each round retries a few, in turn.
  const bool moved = low_water != std::exchange(retried_at_, low_water);
  const size_t turns = moved ? kMinRetried + deferred_.size() / kRetriedDivisor : kMinRetried / 4;
  const size_t over = deferred_.size() - std::min(deferred_.size(), options_.max_deferred_entries);
  RetryOldest(std::min(deferred_.size(), std::max(turns, over)), low_water);
}

void Collector::RetryOldest(size_t count, Timestamp low_water) {
  for (size_t n = count; n > 0; --n) {
    RecordEntry* const entry = deferred_.front();
    deferred_.pop_front();
    entry->deferred = false;
    const HeadWord::Value word = entry->word.Load();
    if (word.head != nullptr || word.queued()) continue;
    if (deferred_.size() >= options_.max_deferred_entries && DEUT_STEP("R6.over_budget") &&
        !records_.TryRaiseFloor(entry->hash, word.last_read())) {
      ShareFloor(entry->hash, word.last_read());  // R6: floor first
    }
    if (records_.Remove(entry, low_water) || entry->word.Load().head != nullptr) continue;
    entry->deferred = true;
    deferred_.push_back(entry);
  }
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
}

}  // namespace deut::tc
