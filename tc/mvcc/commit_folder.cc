#include "tc/mvcc/commit_folder.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/collect_ahead.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

// Fewer than Options::fold_at_least commits are folded when the first of them has waited for kFewCommitsFoldFactor times
// Options::fold_after.
constexpr int kFewCommitsFoldFactor = 64;
// Commits that only the DC's delay holds back are folded when the first of them has waited for kDcDelayFoldFactor times
// fold_after: most are applied before that. From then on commits are folded as they come, until no folded one is left,
// so that the number of postings does not grow with the DC's delay.
constexpr int kDcDelayFoldFactor = 5;
// Approximate number of run entries that one round merges: a round takes at most a few milliseconds.
constexpr size_t kMergedPerRound = 32 << 10;

}  // namespace

CommitFolder::CommitFolder(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records,
                           const Parts& parts)
    : options_(std::move(options)), runtime_(runtime), domain_(domain), records_(records), parts_(parts) {}

// S1: the DC may not have the commit while an earlier transaction is open.
bool CommitFolder::HeldBack(Timestamp commit) const { return options_.low_water() <= commit; }

bool CommitFolder::ShouldFold() {
  if (!options_.runs) return false;
  const CommitQueue& unfolded = parts_.commits.unfolded();
  // S9: only a folded commit can be paged out.
  if (!unfolded.empty() && parts_.value_evictor.pressed()) return true;
  const bool many = unfolded.size() >= options_.fold_at_least;
  // Folded commits must leave before these, and either cannot leave yet, or the DC has been behind for long.
  const std::deque<FoldedCommit>& folded = parts_.commits.folded();
  if (folded.empty()) lagging_ = false;
  if (many && !folded.empty() && (lagging_ || HeldBack(folded.back().timestamp()))) return true;
  const Duration waited = runtime_.Now() - sample_time_;
  if (waited < options_.fold_after) return false;
  if (!unfolded.empty() && unfolded.front().commit <= sample_lsn_) {
    if (waited >= (many ? kDcDelayFoldFactor : kFewCommitsFoldFactor) * options_.fold_after) return lagging_ = true;
    return many && HeldBack(unfolded.front().record->timestamp());
  }
  sample_time_ = runtime_.Now();
  sample_lsn_ = parts_.commits.last_taken();
  return false;
}

void CommitFolder::Fold() {
  const CommitQueue& unfolded = parts_.commits.unfolded();
  if (!options_.runs || unfolded.empty()) return;
  absl::flat_hash_map<TableId, std::vector<CommittedRun::Update>> updates;
  const Timestamp low_water = options_.low_water();
  Position last;
  std::optional<SteppedGuard> guard(std::in_place, domain_);
  for (size_t i = 0; i < unfolded.size(); ++i) {
    CollectAhead(i, unfolded.size(), records_, [&](size_t n) { return unfolded[n].record; });
    DEUT_DCHECK(i == 0 || unfolded[i - 1].commit < unfolded[i].commit);
    const TransactionRecord* const record = unfolded[i].record;
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
  for (size_t i = 0; i < unfolded.size(); ++i) {
    TransactionRecord* const record = unfolded[i].record;
    // `released` before the folded bytes rise: a thread that reads both in between sees too few pinned bytes. Twice as
    // many could refuse a writer or abort a reader without need.
    if (record->pinned_bytes != 0 && options_.released) options_.released(record->pinned_bytes);
    FoldedCommit commit = FoldRecord(*record, low_water, *guard);
    entries.insert(entries.end(), commit.entries().begin(), commit.entries().end());
    parts_.commits.AddFolded(std::move(commit));
    parts_.unlinker.ReleaseRecord(*record);
  }
  if (DEUT_OMITTED("S8.publish_first")) publish();
  parts_.commits.EndFold();
  sample_time_ = runtime_.Now();
  sample_lsn_ = parts_.commits.last_taken();
  CollectEarly(std::move(entries), *guard);
  guard.reset();
  parts_.unlinker.SweepPostings(false);
}

FoldedCommit CommitFolder::FoldRecord(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard) {
  std::vector<RecordEntry*> entries;
  uint64_t bytes = 0;
  record.ForEachWrite([&](const WriteItem& item) {
    guard.Step();
    DEUT_POINT("collector.fold_update");
    RecordEntry* const entry = item.version != nullptr ? item.entry : records_.Find(item.hash, item.table, item.key);
    if (item.version != nullptr) {
      DEUT_DCHECK(entry == records_.Find(item.hash, item.table, item.key));  // the version keeps the entry in the table
      DEUT_DCHECK(!item.version->applied);  // folded commits are counted as unapplied ones
      entries.push_back(entry);
      bytes += PinnedBy(*entry, *item.version);
      parts_.value_evictor.Add(record.commit_lsn(), entry, item.version->value_bytes);
    } else if (entry != nullptr) {
      RemoveDeadAndApplied(*entry, domain_);  // the version was withdrawn, or none was installed
      if (entry->word.Load().head == nullptr) parts_.entries.Remove(entry, low_water);
    }
  });
  FoldedCommit commit(LastPosition(record), record.timestamp(), entries);
  parts_.commits.AddFoldedBytes(bytes + commit.bytes());
  return commit;
}

void CommitFolder::CollectEarly(std::vector<RecordEntry*> entries, SteppedGuard& guard) {
  // Each chain once, however many of its versions were folded: versions that stay (not folded yet) would be walked once
  // per update.
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
  // A folded transaction's newest version of a key is counted until it is found applied or leaves its chain.
  parts_.commits.SubtractFoldedBytes(all.bytes);
}

void CommitFolder::DropAppliedAndMergeRuns(Position applied) {
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

}  // namespace deut::tc
