#include "tc/mvcc/spiller.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/newest_versions.h"
#include "tc/mvcc/record_version.h"

namespace deut::tc {
namespace {

// Chains handled under one guard: the versions that they release are freed soon.
constexpr size_t kBatch = 256;

}  // namespace

bool Spiller::pressed() const { return excess() && !options_.runs->full() && runtime_.Now() >= retry_at_; }

uint64_t Spiller::SpillEarliest(UnappliedCommits* commits, EntryRemover* entries,
                                absl::FunctionRef<Timestamp()> low_water_now) {
  if (!pressed()) return 0;
  size_t updates = 0;
  std::vector<FoldedCommit> taken = TakePrefix(commits, &updates);
  const size_t count = taken.size();
  uint64_t freed = 0;
  if (updates >= options_.at_least) {
    const Timestamp low_water = low_water_now();
    freed = Spill(&taken, [&](RecordEntry* entry) { entries->RemoveSpilled(entry, low_water); });
    commits->SubtractFoldedBytes(freed);
    commits->CountGone(count - taken.size());
  }
  commits->ReturnFolded(std::move(taken));
  return freed;
}

std::vector<FoldedCommit> Spiller::TakePrefix(UnappliedCommits* commits, size_t* updates) {
  // Only a prefix of all commits may be spilled: it ends before commits that may still arrive, and before those that are
  // not folded.
  const Lsn complete_below = DEUT_OMITTED("S9.spill_prefix") ? kEveryPosition.commit : commits->complete_below();
  Lsn end = std::min(complete_below, options_.durable());
  if (!commits->unfolded().empty()) end = std::min(end, commits->unfolded().front().commit);
  const Lsn spilled = options_.runs->through();
  std::vector<FoldedCommit> taken;
  while (!commits->folded().empty() && commits->folded().front().last().commit < end && *updates < kPerRound) {
    taken.push_back(commits->PopFolded());
    if (taken.back().last().commit > spilled) *updates += taken.back().entries().size();
  }
  return taken;
}

void Spiller::AddSpillable(Chain* chain, Lsn through, std::vector<SpilledVersion>* versions) {
  NewestOfTransaction newest;
  for (RecordVersion* v = chain->entry->word.Load().head; v != nullptr; v = v->older.load(std::memory_order_seq_cst)) {
    DEUT_POINT("collector.chain_step");
    if (!IsCommitted(*v)) continue;
    if (chain->from == nullptr && v->transaction->commit_lsn() > through) continue;
    DEUT_DCHECK(v->transaction->commit_lsn() <= through);  // per key, commit order is timestamp order
    DEUT_CHECK(v->transaction->collected());  // else a write set still points to it, and the prefix misses its commit
    if (chain->from == nullptr) chain->from = v;
    const bool replaced = !newest(*v);  // by its own transaction
    if (replaced || v->applied || v->spilled) continue;
    versions->push_back({.table = chain->entry->table,
                         .key = chain->entry->key(),
                         .timestamp = v->transaction->timestamp(),
                         .sequence = v->sequence,
                         .tombstone = v->tombstone,
                         .value_bytes = v->value_bytes,
                         .commit = v->transaction->commit_lsn(),
                         .place = v->place});
  }
}

Result<SpilledRuns::RunPointer> Spiller::Write(std::vector<SpilledVersion> versions,
                                               const std::vector<FoldedCommit>& commits) {
  if (versions.empty()) return SpilledRuns::RunPointer();
  std::ranges::sort(versions, [](const SpilledVersion& a, const SpilledVersion& b) { return SpillOrder(a, b) < 0; });
  DEUT_ASSIGN_OR_RETURN(SpilledRun::Builder builder, options_.runs->NewRun(versions.size()));
  for (const SpilledVersion& version : versions) DEUT_RETURN_IF_ERROR(builder.Add(version));
  versions_.fetch_add(versions.size(), std::memory_order_relaxed);
  return builder.Finish({.first = commits.front().timestamp(),
                         .first_commit = commits.front().last().commit,
                         .last = commits.back().last()});
}

bool Spiller::Unlink(const Chain& chain) {
  RecordEntry& entry = *chain.entry;
  HeadWord::Value seen = entry.word.Load();
  while (seen.head == chain.from && !seen.dead()) {
    const Timestamp gone = chain.from->transaction->timestamp();
    HeadWord::Value after = seen.WithHead(nullptr);
    if (seen.last_read() < gone && DEUT_STEP("S9.cut_raises")) after = after.WithLastRead(gone);
    DEUT_POINT("spill.before_cas");
    if (DEUT_CAS_FAILS("spill.cas")) {
      seen = entry.word.Load();
      continue;
    }
    if (entry.word.CompareExchange(seen, after)) return true;
  }
  RecordVersion* above = seen.head;
  while (above != nullptr) {
    RecordVersion* const older = above->older.load(std::memory_order_seq_cst);
    if (older == chain.from) break;
    above = older;
  }
  if (above == nullptr || !IsCommitted(*above)) return false;
  above->older.store(nullptr, std::memory_order_seq_cst);
  return true;
}

uint64_t Spiller::Cut(Chain* chain) {
  RecordEntry& entry = *chain->entry;
  for (RecordVersion* v = chain->from; v != nullptr; v = v->older.load(std::memory_order_seq_cst)) v->spilled = true;
  chain->cut = Unlink(*chain);
  if (!chain->cut) return 0;
  uint64_t bytes = 0;
  NewestOfTransaction newest;
  for (RecordVersion* v = chain->from; v != nullptr;) {
    RecordVersion* const older = v->older.load(std::memory_order_seq_cst);
    if (newest(*v)) bytes += CountedBytes(entry, *v);
    RecordVersion::Retire(v, domain_);
    v = older;
  }
  return bytes;
}

uint64_t Spiller::Spill(std::vector<FoldedCommit>* commits, absl::FunctionRef<void(RecordEntry*)> remove) {
  DEUT_DCHECK(std::ranges::is_sorted(*commits, {}, &FoldedCommit::last));
  const Lsn through = commits->back().last().commit;
  DEUT_CHECK(through >= options_.runs->through());  // the prefix that was spilled before continues
  std::vector<Chain> chains;
  for (const FoldedCommit& commit : *commits) {
    for (RecordEntry* const entry : commit.entries()) chains.push_back({.entry = entry, .from = nullptr});
  }
  std::ranges::sort(chains, std::less<>(), &Chain::entry);
  const auto same = std::ranges::unique(chains, {}, &Chain::entry);
  chains.erase(same.begin(), same.end());
  std::vector<SpilledVersion> versions;
  const auto for_each_chain = [&](auto&& visit) {
    for (size_t i = 0; i < chains.size();) {
      ReclamationDomain::Guard guard(domain_);
      for (const size_t end = std::min(i + kBatch, chains.size()); i < end; ++i) visit(&chains[i]);
    }
  };
  for_each_chain([&](Chain* chain) { AddSpillable(chain, through, &versions); });
  Result<SpilledRuns::RunPointer> run = Write(std::move(versions), *commits);
  if (!run.ok()) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    retry_at_ = runtime_.Now() + options_.again_after;
    return 0;
  }
  // Published before the cuts: a reader that no longer finds a version in its chain must find it in a run.
  if (DEUT_STEP("S9.publish_before_cut")) options_.runs->Publish(*run);
  DEUT_POINT("spill.published");
  uint64_t bytes = 0;
  for_each_chain([&](Chain* chain) {
    if (chain->from == nullptr) return;
    bytes += Cut(chain);
    DEUT_POINT("spill.cut");
    if (chain->entry->word.Load().head == nullptr) remove(chain->entry);
  });
  if (DEUT_OMITTED("S9.publish_before_cut")) options_.runs->Publish(*run);
  // A commit stays in the list for those of its entries whose chains were not cut.
  const auto stays = [&](const RecordEntry* entry) {
    const auto it = std::ranges::lower_bound(chains, entry, std::less<>(), &Chain::entry);
    return it->from != nullptr && !it->cut;
  };
  std::vector<FoldedCommit> rest;
  for (const FoldedCommit& commit : *commits) {
    bytes += commit.bytes();
    std::vector<RecordEntry*> kept;
    std::ranges::copy_if(commit.entries(), std::back_inserter(kept), stays);
    if (kept.empty()) continue;
    bytes -= rest.emplace_back(commit.last(), commit.timestamp(), kept).bytes();
  }
  *commits = std::move(rest);
  return bytes;
}

}  // namespace deut::tc
