#include "dc/bwtree/leaf_view.h"

#include <algorithm>

#include "common/base/check.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

// Up to this number, sorting in place is faster than a sort with extra memory.
constexpr size_t kFewDeltas = 128;

}  // namespace

PageEntry LeafMerge::EntryOf(const Placed& placed) {
  const RecordDelta& delta = *placed.delta;
  PageEntry entry;
  entry.data = delta.data();
  entry.key_bytes = delta.key_bytes;
  entry.tombstone = delta.tombstone();
  entry.value_bytes = delta.value_bytes;
  entry.version = delta.version();
  entry.stored_in = placed.in;
  return entry;
}

PageEntry LeafMerge::BaseEntry(size_t i) const {
  PageEntry entry = base_->record(i);
  entry.stored_in = std::min(entry.stored_in, base_in_);
  return entry;
}

bool AppendRecord(const Node* head, std::string_view key, RecordBatch* answer) {
  const BasePage& base = *head->base;
  const RecordDelta* best = nullptr;
  if (head != &base) {
    BasePage::Prefetch(&base);
    PrefetchChain(head);
    const uint16_t tag = KeyTag(key);
    for (const Node* node = head; node != &base; node = node->next) {
      if (node->key_tag != tag || !IsRecord(node)) continue;
      const auto* delta = static_cast<const RecordDelta*>(node);
      if (delta->key() != key || IsDuplicate(delta->version(), base.flat())) continue;
      if (best == nullptr || Supersedes(delta->version(), best->version())) best = delta;
    }
  }
  const size_t i = base.Find(key);
  if (i != base.count() && (best == nullptr || Supersedes(base.record(i).version, best->version()))) {
    if (base.tombstone(i)) return false;
    answer->AppendRun(base.run(i, i + 1), 1, base.newest());
    return true;
  }
  if (best == nullptr || best->tombstone()) return false;
  answer->Append(best->key(), best->value(), best->version());
  return true;
}

LeafMerge::LeafMerge(const Node* head, std::string_view low, std::string_view high) : base_(head->base) {
  // Only below a split delta does the base have entries at or above the fence.
  if (head->fence != base_->fence && (high.empty() || head->fence->high_key() < high)) high = head->fence->high_key();
  if (head != base_) PrefetchChain(head);
  base_begin_ = low.empty() ? 0 : base_->LowerBound(low);
  base_end_ = high.empty() ? base_->count() : base_->LowerBound(high);
  // A scan enters a page only while the page reaches beyond the scan's own position.
  DEUT_DCHECK(base_begin_ <= base_end_);
  if (head != base_) {
    Collect(head, low, high);
    KeepWinners();
  }
  base_in_ = std::min(base_in_, StoredInOf(base_));
}

void LeafMerge::Collect(const Node* head, std::string_view low, std::string_view high) {
  for (const Node* node = head; node != base_; node = node->next) {
    if (!IsRecord(node)) {
      // A mark speaks of the nodes below it, so the newest ones come first.
      base_in_ = std::min(base_in_, StoredInOf(node));
      continue;
    }
    const auto* delta = static_cast<const RecordDelta*>(node);
    const std::string_view key = delta->key();
    if (key < low || (!high.empty() && key >= high) || IsDuplicate(delta->version(), base_->flat())) continue;
    const size_t place = base_->LowerBound(key);
    const bool equal = place != base_->count() && base_->key(place) == key;
    deltas_.push_back(Placed{delta, static_cast<uint32_t>(place), equal, base_in_});
  }
}

void LeafMerge::KeepWinners() {
  // The sort is stable, so that the deltas of one key stay newest first.
  const auto before = [](const Placed& a, const Placed& b) {
    if (a.place != b.place) return a.place < b.place;
    if (a.equal != b.equal) return b.equal;  // a key before an entry precedes the entry's own key
    return !a.equal && a.delta->key() < b.delta->key();
  };
  const auto same_key = [](const Placed& a, const Placed& b) {
    return a.place == b.place && a.equal == b.equal && (a.equal || a.delta->key() == b.delta->key());
  };
  // Chains are short, so an insertion sort is fast. Only pages that could not be read for a while have very long
  // chains.
  const bool is_short = deltas_.size() <= kFewDeltas;
  if (!is_short) std::stable_sort(deltas_.begin(), deltas_.end(), before);
  for (size_t i = 1; is_short && i < deltas_.size(); ++i) {
    const Placed moved = deltas_[i];
    size_t to = i;
    for (; to > 0 && before(moved, deltas_[to - 1]); --to) deltas_[to] = deltas_[to - 1];
    deltas_[to] = moved;
  }
  for (const Placed& placed : deltas_) {
    if (last_ > 0 && same_key(deltas_[last_ - 1], placed)) {
      if (Supersedes(placed.delta->version(), deltas_[last_ - 1].delta->version())) deltas_[last_ - 1] = placed;
    } else {
      deltas_[last_++] = placed;
    }
  }
  // Next and Previous merge these with the base, and return each key once.
  const auto out_of_order = [&](const Placed& a, const Placed& b) { return !before(a, b); };
  DEUT_DCHECK(std::adjacent_find(deltas_.begin(), deltas_.begin() + last_, out_of_order) == deltas_.begin() + last_);
}

PageEntry LeafMerge::Winner(const Placed& placed) const {
  PageEntry entry = EntryOf(placed);
  if (placed.equal) {
    const PageEntry old = BaseEntry(placed.place);
    if (Supersedes(old.version, entry.version)) return old;
    // An update that was sent again: the image may have it already.
    if (old.version == entry.version) entry.stored_in = std::min(entry.stored_in, old.stored_in);
  }
  return entry;
}

bool LeafMerge::Next(PageEntry* entry) {
  if (first_ < last_ && deltas_[first_].place <= base_begin_) {
    const Placed& placed = deltas_[first_++];
    *entry = Winner(placed);
    if (placed.equal) ++base_begin_;
    return true;
  }
  if (base_begin_ >= base_end_) return false;
  *entry = BaseEntry(base_begin_++);
  return true;
}

bool LeafMerge::Previous(PageEntry* entry) {
  if (first_ < last_) {
    const Placed& placed = deltas_[last_ - 1];
    // A delta with the key of entry p is returned with that entry. A delta before entry p is returned when only
    // entries below p are left.
    if (placed.equal ? placed.place + 1 == base_end_ : placed.place == base_end_) {
      *entry = Winner(placed);
      --last_;
      if (placed.equal) --base_end_;
      return true;
    }
  }
  if (base_end_ <= base_begin_) return false;
  *entry = BaseEntry(--base_end_);
  return true;
}

}  // namespace deut::dc
