#include "tc/mvcc/unlinker.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/collect_ahead.h"
#include "tc/mvcc/newest_versions.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {

Unlinker::Unlinker(Options options, ReclamationDomain& domain, RecordTable& records, UnappliedCommits& commits,
                   EntryRemover& entries)
    : options_(std::move(options)),
      domain_(domain),
      records_(records),
      commits_(commits),
      entries_(entries),
      dead_postings_(domain) {}

void Unlinker::RaiseCollectedThrough(Position applied) {
  if (applied.commit.value > collected_through_.load(std::memory_order_relaxed)) {
    collected_through_.store(applied.commit.value,
                             std::memory_order_seq_cst);  // before anything is collected because of it
  }
}

void Unlinker::CollectAborted() {
  std::vector<FinishedTransaction> gone;
  for (TransactionRecord* const record : std::exchange(aborted_, {})) gone.push_back({.record = record, .folded = {}});
  Collect(std::move(gone));
}

void Unlinker::Collect(std::vector<FinishedTransaction> gone) {
  if (gone.empty()) return;
  uint64_t bytes = 0;
  const Timestamp low_water = options_.low_water();
  std::vector<FoldedUpdate> folded;
  std::optional<SteppedGuard> guard(std::in_place, domain_);
  for (size_t i = 0; i < gone.size(); ++i) {
    guard->Step();
    CollectAhead(i, gone.size(), records_, [&](size_t n) { return gone[n].record; });
    const FinishedTransaction& finished = gone[i];
    TransactionRecord* const record = finished.record;
    if (finished.committed()) {
      const Lsn commit = finished.commit();
      DEUT_CHECK(commit > last_collected_);  // else its versions may have been retired already
      last_collected_ = commit;
    }
    if (record == nullptr) {
      commits_.SubtractFoldedBytes(finished.folded.bytes());
      for (RecordEntry* const entry : finished.folded.entries()) folded.push_back({entry, finished.folded.timestamp()});
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
  commits_.CountGone(gone.size());
}

void Unlinker::CollectFolded(std::vector<FoldedUpdate>* updates, Timestamp low_water, SteppedGuard& guard) {
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
    RecordVersion* const version = NewestThrough(*entry, latest);
    if (version == nullptr) continue;  // unlinked because no reader could read it (S6, early)
    // This version and those below it are no longer pinned.
    bytes += CountedBytesFrom(*entry, version);
    CollectOrRefresh(*entry, version);
    if (entry->word.Load().head == nullptr) entries_.Remove(entry, low_water);
  }
  commits_.SubtractFoldedBytes(bytes);
  updates->clear();
}

void Unlinker::CollectItems(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard) {
  const bool committed = record.status() == TransactionStatus::kCommitted;
  const auto collect = [&](const WriteItem& item) {
    guard.Step();
    DEUT_POINT("collector.collect_update");
    // A committed version keeps its entry (R5). An aborted version may have left, and its entry with it.
    const bool there = committed && item.version != nullptr;
    DEUT_DCHECK(!there || item.version->transaction == &record);
    DEUT_DCHECK(!there || !item.entry->word.Load().dead());
    RecordEntry* const entry = there ? item.entry : records_.Find(item.hash, item.table, item.key);
    if (entry == nullptr) return;
    if (there) {
      CollectOrRefresh(*entry, item.version);
    } else {
      RemoveDeadAndApplied(*entry, domain_);
    }
    if (entry->word.Load().head == nullptr) entries_.Remove(entry, low_water);
  };
  ForEachWriteAhead(record, records_, collect);
}

void Unlinker::CollectOrRefresh(RecordEntry& entry, RecordVersion* version) {
  if (options_.read_cache != nullptr && options_.read_cache->Refresh(entry, *version)) return;
  CollectApplied(entry, version, domain_);
}

void Unlinker::ReleaseRecord(TransactionRecord& record) {
  DEUT_DCHECK(!record.collected());  // else its references to ranges would be counted twice
  ReclamationDomain::Guard guard(domain_);
  record.set_collected();
  for (Range* range : record.posted) dead_postings_.Count(range);
  record.posted = {};
  DEUT_POINT("collector.marked");
  record.ForgetWriteSet(domain_);
  record.DropReference(domain_);
}

}  // namespace deut::tc
