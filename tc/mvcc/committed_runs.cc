#include "tc/mvcc/committed_runs.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace deut::tc {
namespace {

// Two neighbours are merged if the larger one has at most kTier times the entries of the smaller. This keeps runs few, and merges each key seldom.
constexpr size_t kTier = 4;
// Merges of at most this many entries do not wait for a larger merge in progress.
constexpr size_t kSmallMerge = 4096;

}  // namespace

void CommittedRuns::Add(std::vector<CommittedRun::Update> updates, Position last, ReclamationDomain& domain) {
  std::sort(updates.begin(), updates.end(),
            [](const CommittedRun::Update& a, const CommittedRun::Update& b) { return a.key < b.key; });
  // A run has at most kMaxKeyBytes of keys: the rest go into another run.
  std::vector<RunPointer> runs = list().runs;
  Timestamp latest = this->latest();
  for (size_t i = 0; i < updates.size();) {
    CommittedRun::Builder builder;
    for (size_t bytes = 0; i < updates.size() && bytes < CommittedRun::kMaxKeyBytes; ++i) {
      const CommittedRun::Update& update = updates[i];
      builder.Append(update.key, update.timestamp, update.commit, update.removal);
      bytes += update.key.size();
      latest = std::max(latest, update.timestamp);
    }
    runs.push_back(builder.Finish(last));
  }
  latest_.store(latest.value, std::memory_order_seq_cst);  // before the runs are published
  DEUT_POINT("runs.before_publish");
  Publish(std::move(runs), domain);
}

void CommittedRuns::Publish(std::vector<RunPointer> runs, ReclamationDomain& domain) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunPointer& a, const RunPointer& b) { return a->size() > b->size(); });
  size_t entries = 0, bytes = 0;
  for (const RunPointer& run : runs) {
    entries += run->size();
    bytes += run->bytes();
  }
  runs_.store(runs.size(), std::memory_order_relaxed);
  entries_.store(entries, std::memory_order_relaxed);
  bytes_.store(bytes, std::memory_order_relaxed);
  auto next = std::make_unique<List>();
  next->prefix_bytes = RunMerge::CommonPrefix(runs);
  next->runs = std::move(runs);
  const ReclamationDomain::Guard guard(domain);
  // Runs that only the old list holds are freed with it, so it is retired with their size.
  const List* const old = list_.exchange(next.release(), std::memory_order_seq_cst);
  size_t freed = sizeof(List);
  for (const RunPointer& run : old->runs) {
    if (std::find(list().runs.begin(), list().runs.end(), run) == list().runs.end()) freed += run->bytes();
  }
  domain.RetireObject(const_cast<List*>(old), freed);
}

size_t CommittedRuns::DropAppliedAndMerge(Position applied, size_t entries, ReclamationDomain& domain) {
  std::vector<RunPointer> runs = list().runs;
  if (runs.empty()) return entries;
  const auto gone = [&](const RunPointer& run) { return run->last() <= applied || DEUT_OMITTED("S8.run_applied"); };
  if (std::erase_if(runs, gone) != 0) {
    if (merge_ != nullptr && (gone(merge_->a) || gone(merge_->b))) merge_.reset();
    Publish(std::move(runs), domain);
  }
  while (entries > 0) {
    if (merge_ == nullptr) {
      const size_t smaller = FindMerge(SIZE_MAX);
      if (smaller == 0) return entries;
      BeginMerge(smaller);
    } else if (const size_t smaller = FindMerge(kSmallMerge); smaller != 0) {
      // The small merge is done first, and as a whole.
      std::unique_ptr<Merge> large = std::exchange(merge_, nullptr);
      BeginMerge(smaller);
      size_t all = SIZE_MAX;
      AdvanceMerge(applied, &all, domain);
      merge_ = std::move(large);
    }
    AdvanceMerge(applied, &entries, domain);
  }
  return 0;
}

size_t CommittedRuns::FindMerge(size_t most_entries) const {
  const std::vector<RunPointer>& runs = list().runs;
  const auto busy = [this](const RunPointer& run) {
    return merge_ != nullptr && (run == merge_->a || run == merge_->b);
  };
  for (size_t i = runs.size(); i-- > 1;) {
    const CommittedRun& larger = *runs[i - 1];
    const CommittedRun& smaller = *runs[i];
    if (larger.size() > kTier * smaller.size()) continue;
    if (larger.size() + smaller.size() > most_entries) return 0;
    if (larger.key_bytes() + smaller.key_bytes() > CommittedRun::kMaxKeyBytes) continue;
    if (busy(runs[i - 1]) || busy(runs[i])) continue;
    return i;
  }
  return 0;
}

void CommittedRuns::BeginMerge(size_t smaller) {
  const std::vector<RunPointer>& runs = list().runs;
  DEUT_CHECK(smaller > 0 && smaller < runs.size());
  merge_ = std::make_unique<Merge>();
  merge_->a = runs[smaller - 1];
  merge_->b = runs[smaller];
  merge_->merged.Reserve(merge_->a->size() + merge_->b->size(), merge_->a->key_bytes() + merge_->b->key_bytes());
}

bool CommittedRuns::AdvanceMerge(Position applied, size_t* entries, ReclamationDomain& domain) {
  Merge& m = *merge_;
  const auto take = [&](const CommittedRun& run, size_t i) {
    // Commits before the one that `applied` points into are applied as a whole.
    if (run.last_commit(i) < applied.commit || DEUT_OMITTED("S8.merge_keeps")) return;
    m.merged.Append(run.key(i), run.first_timestamp(i), run.last_commit(i), run.removed(i));
  };
  for (; *entries > 0 && (m.next_a < m.a->size() || m.next_b < m.b->size()); --*entries) {
    if (m.next_b == m.b->size() || (m.next_a < m.a->size() && m.a->key(m.next_a) <= m.b->key(m.next_b))) {
      take(*m.a, m.next_a++);
    } else {
      take(*m.b, m.next_b++);
    }
  }
  if (m.next_a < m.a->size() || m.next_b < m.b->size()) return false;
  std::vector<RunPointer> runs = list().runs;
  const size_t merged = std::erase_if(runs, [&](const RunPointer& run) { return run == m.a || run == m.b; });
  DEUT_CHECK(merged == 2);  // they stay in the list until the merge is finished or given up
  if (!m.merged.empty()) runs.push_back(m.merged.Finish(std::max(m.a->last(), m.b->last())));
  merge_.reset();
  DEUT_POINT("runs.before_publish");
  Publish(std::move(runs), domain);
  return true;
}

}  // namespace deut::tc
