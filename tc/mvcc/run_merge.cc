#include "tc/mvcc/run_merge.h"

#include <algorithm>

#include "common/base/check.h"

namespace deut::tc {

size_t RunMerge::CommonPrefix(const std::vector<std::shared_ptr<const CommittedRun>>& runs) {
  if (runs.empty()) return 0;
  std::string_view common = runs.front()->prefix();
  for (const auto& run : runs) {
    const std::string_view other = run->prefix();
    const auto differ = std::mismatch(common.begin(), common.end(), other.begin(), other.end());
    common = common.substr(0, static_cast<size_t>(differ.first - common.begin()));
  }
  return common.size();
}

RunMerge::RunMerge(const std::vector<std::shared_ptr<const CommittedRun>>& runs, size_t prefix_bytes,
                   const Bounds& bounds)
    : bounds_(bounds), prefix_bytes_(prefix_bytes) {
  if (runs.empty()) return;
  DEUT_DCHECK(prefix_bytes <= CommonPrefix(runs));
  const std::string_view near = bounds.ascending ? bounds.low : bounds.high;
  const std::string_view far = bounds.ascending ? bounds.high : bounds.low;
  far_order_ = far.substr(0, prefix_bytes).compare(runs.front()->prefix().substr(0, prefix_bytes));
  far_head_ = CommittedRun::HeadOf(far, prefix_bytes);
  const bool from_end = !bounds.ascending && near.empty();
  for (const auto& run : runs) cursors_.push_back({.run = run.get(), .at = from_end ? 0 : run->BlockOf(near)});
  for (Cursor& cursor : cursors_) {
    cursor.at = from_end ? cursor.run->size() : cursor.run->LowerBoundIn(cursor.at, near);
    cursor.run->PrefetchEntry(cursor.at - (bounds.ascending || cursor.at == 0 ? 0 : 1));
  }
  for (const Cursor& cursor : cursors_)
    cursor.run->PrefetchKey(cursor.at - (bounds.ascending || cursor.at == 0 ? 0 : 1));
  const auto done =
      std::remove_if(cursors_.begin(), cursors_.end(), [this](Cursor& cursor) { return !Settle(&cursor); });
  cursors_.erase(done, cursors_.end());
}

bool RunMerge::Inside(const Cursor& cursor) const {
  if (bounds_.ascending) {
    if (bounds_.high.empty() || far_order_ > 0) return true;
    if (far_order_ < 0) return false;
    return cursor.head != far_head_ ? cursor.head < far_head_ : cursor.key < bounds_.high;
  }
  if (far_order_ != 0) return far_order_ < 0;
  return cursor.head != far_head_ ? cursor.head > far_head_ : cursor.key >= bounds_.low;
}

bool RunMerge::Settle(Cursor* cursor) const {
  const CommittedRun& run = *cursor->run;
  const auto counts = [&](size_t i) {
    return run.first_timestamp(i) < bounds_.reader && run.last_commit(i) >= bounds_.applied;
  };
  for (;;) {
    if (bounds_.ascending ? cursor->at == run.size() : cursor->at == 0) return false;
    const size_t i = bounds_.ascending ? cursor->at : cursor->at - 1;
    cursor->key = run.key(i);
    cursor->head = CommittedRun::HeadOf(cursor->key, prefix_bytes_);
    if (!Inside(*cursor)) return false;
    if (counts(i)) return true;
    bounds_.ascending ? ++cursor->at : --cursor->at;
  }
}

bool RunMerge::Next() {
  if (cursors_.empty()) return false;
  const Cursor* first = cursors_.data();
  for (const Cursor& cursor : cursors_) {
    if (Before(cursor, *first)) first = &cursor;
  }
  DEUT_DCHECK(key_.data() == nullptr || (bounds_.ascending ? key_ < first->key : first->key < key_));
  key_ = first->key;
  const uint64_t head = first->head;
  removed_ = false;
  for (size_t n = cursors_.size(); n-- > 0;) {
    Cursor& cursor = cursors_[n];
    if (cursor.head != head || cursor.key != key_) continue;
    const size_t i = bounds_.ascending ? cursor.at++ : --cursor.at;
    removed_ = removed_ || cursor.run->removed(i);
    if (Settle(&cursor)) continue;
    cursor = cursors_.back();
    cursors_.pop_back();
  }
  return true;
}

}  // namespace deut::tc
