#include "tc/mvcc/unapplied_commits.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "tc/mvcc/record_version.h"

namespace deut::tc {

Position LastPosition(const TransactionRecord& record) {
  uint32_t last = 0;
  record.ForEachWrite([&](const WriteItem& item) {
    if (item.version != nullptr) last = std::max(last, item.version->sequence);
  });
  return Position{record.commit_lsn(), last};
}

void UnappliedCommits::Add(TransactionRecord* record) {
  DEUT_DCHECK(FinishedTransaction::Committed(*record));
  unfolded_.Add(record->commit_lsn(), record);
  last_taken_ = std::max(last_taken_, record->commit_lsn());
}

bool UnappliedCommits::PopThrough(Position through, FinishedTransaction* next) {
  // Takes from the queue whose first commit is earlier.
  if (!folded_.empty() && (unfolded_.empty() || folded_.front().last().commit < unfolded_.front().commit)) {
    if (folded_.front().last() > through) return false;
    next->record = nullptr;
    next->folded = std::move(folded_.front());
    folded_.pop_front();
    PublishFoldedCount();
    return true;
  }
  if (unfolded_.empty()) return false;
  // Most commits lie before the one that `through` points into. For them the walk to the last update is not needed.
  const CommitQueue::Item& first = unfolded_.front();
  if (first.commit >= through.commit && LastPosition(*first.record) > through) return false;
  next->record = unfolded_.Pop();
  return true;
}

void UnappliedCommits::CountGone(size_t count) {
  const uint64_t waiting = waiting_.fetch_sub(count, std::memory_order_relaxed);
  DEUT_CHECK(waiting >= count);  // CountArrival came before each was taken over
  gone_.fetch_add(count, std::memory_order_relaxed);
}

void UnappliedCommits::AddFolded(FoldedCommit commit) {
  // Nearly always the last in commit order.
  const bool last = folded_.empty() || folded_.back().last() < commit.last();
  const auto at = last ? folded_.end() : std::ranges::upper_bound(folded_, commit.last(), {}, &FoldedCommit::last);
  DEUT_CHECK(at == folded_.begin() || std::prev(at)->last().commit != commit.last().commit);  // folded once
  folded_.insert(at, std::move(commit));
}

void UnappliedCommits::EndFold() {
  DEUT_CHECK(folded_.size() >= unfolded_.size());
  unfolded_.Clear();
  PublishFoldedCount();
}

FoldedCommit UnappliedCommits::PopFolded() {
  DEUT_CHECK(!folded_.empty());
  FoldedCommit first = std::move(folded_.front());
  folded_.pop_front();
  return first;
}

void UnappliedCommits::ReturnFolded(std::vector<FoldedCommit> rest) {
  for (; !rest.empty(); rest.pop_back()) AddFolded(std::move(rest.back()));
  PublishFoldedCount();
}

void UnappliedCommits::SubtractFoldedBytes(uint64_t bytes) {
  [[maybe_unused]] const uint64_t before = folded_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  DEUT_DCHECK(before >= bytes);
}

void UnappliedCommits::PublishFirst(Timestamp spilled) {
  Timestamp first;
  Lsn commit{UINT64_MAX};
  if (!folded_.empty()) {
    first = folded_.front().timestamp();
    commit = folded_.front().last().commit;
  }
  if (!unfolded_.empty() && unfolded_.front().commit < commit) first = unfolded_.front().record->timestamp();
  if (spilled != Timestamp{0}) first = spilled;
  first_.store(first.value, std::memory_order_relaxed);
}

}  // namespace deut::tc
