#include "dc/bwtree/inner_view.h"

#include <algorithm>

#include "common/base/check.h"

namespace deut::dc {

PageId FindChild(const Node* head, const Target& target) {
  const BasePage& base = *head->base;
  const std::string_view key = target.key;
  // The wanted term is the largest separator at or below the key (kAt), or strictly below it (kBelow). It may stand
  // in a delta or in the base; the order of the deltas does not matter.
  const IndexTermDelta* best = nullptr;
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const auto* term = static_cast<const IndexTermDelta*>(node);
    const std::string_view separator = term->separator();
    const bool left = target.side == Side::kAt ? separator <= key : (key.empty() || separator < key);
    if (left && (best == nullptr || separator > best->separator())) best = term;
  }
  DEUT_DCHECK(base.count() != 0);
  size_t i;
  if (target.side == Side::kAt) {
    i = base.UpperBound(key) - 1;
  } else {
    i = (key.empty() ? base.count() : base.LowerBound(key)) - 1;
  }
  return best != nullptr && (i == 0 || best->separator() > base.key(i)) ? best->child : base.child(i);
}

ChildBounds BoundsOfChild(const Node* head, std::string_view key) {
  const BasePage& base = *head->base;
  const size_t above = base.UpperBound(key);
  ChildBounds bounds;
  bounds.low = base.key(above - 1);
  bounds.bounded = head->fence->bounded();
  bounds.high = head->fence->high_key();
  // The child ends at the nearest separator above the key, or at the page's own fence.
  const auto end_at = [&bounds](std::string_view separator) {
    if (!bounds.bounded || separator < bounds.high) bounds.high = separator;
    bounds.bounded = true;
  };
  if (above != base.count()) end_at(base.key(above));
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const std::string_view separator = static_cast<const IndexTermDelta*>(node)->separator();
    if (separator > key) {
      end_at(separator);
    } else {
      bounds.low = std::max(bounds.low, separator);
    }
  }
  return bounds;
}

PageId ChildAt(const Node* head, std::string_view separator, bool* first) {
  const BasePage& base = *head->base;
  *first = base.key(0) == separator;
  if (*first) return base.child(0);
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const auto* term = static_cast<const IndexTermDelta*>(node);
    if (term->separator() == separator) return term->child;
  }
  const size_t i = base.LowerBound(separator);
  return i != base.count() && i != 0 && base.key(i) == separator ? base.child(i) : kNoPage;
}

bool HasTerm(const Node* head, std::string_view separator) {
  bool first = false;
  return ChildAt(head, separator, &first) != kNoPage;
}

InnerTerms::InnerTerms(const Node* head)
    : base_(*head->base),
      base_end_(head->fence->bounded() ? base_.LowerBound(head->fence->high_key()) : base_.count()) {
  const Fence& fence = *head->fence;
  for (const Node* node = head; node != &base_; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const auto* term = static_cast<const IndexTermDelta*>(node);
    // After a split of this page, terms at or above the fence belong to the right half.
    if (!fence.bounded() || term->separator() < fence.high_key()) added_.push_back({term, 0});
  }
  std::sort(added_.begin(), added_.end(),
            [](const Added& a, const Added& b) { return a.term->separator() < b.term->separator(); });
  for (size_t i = 0; i < added_.size(); ++i) {
    const std::string_view separator = added_[i].term->separator();
    const size_t in_base = base_.LowerBound(separator);
    // Several threads may post the same term. The compare-and-swap lets one of them through, and the others find it.
    DEUT_DCHECK(in_base == base_.count() || base_.key(in_base) != separator);
    DEUT_DCHECK(i == 0 || added_[i - 1].term->separator() != separator);
    added_[i].place = in_base + i;
  }
}

const IndexTermDelta* InnerTerms::AddedAt(size_t i, size_t* in_base) const {
  size_t before = 0;
  while (before < added_.size() && added_[before].place < i) ++before;
  *in_base = i - before;
  return before < added_.size() && added_[before].place == i ? added_[before].term : nullptr;
}

std::string_view InnerTerms::key(size_t i) const {
  size_t in_base;
  const IndexTermDelta* const term = AddedAt(i, &in_base);
  return term != nullptr ? term->separator() : base_.key(in_base);
}

PageId InnerTerms::child(size_t i) const {
  size_t in_base;
  const IndexTermDelta* const term = AddedAt(i, &in_base);
  return term != nullptr ? term->child : base_.child(in_base);
}

size_t InnerTerms::LowerBound(std::string_view key) const {
  size_t place = std::min(base_.LowerBound(key), base_end_);
  for (const Added& added : added_) place += added.term->separator() < key ? 1 : 0;
  return place;
}

size_t InnerTerms::UpperBound(std::string_view key) const {
  size_t place = std::min(base_.UpperBound(key), base_end_);
  for (const Added& added : added_) place += added.term->separator() <= key ? 1 : 0;
  return place;
}

void InnerTerms::AppendTo(BasePage::Content* content) const {
  size_t at = 0;
  for (size_t i = 0; i < added_.size(); ++i) {
    const size_t in_base = added_[i].place - i;
    content->AddRun(base_, at, in_base);
    at = in_base;
    const IndexTermDelta& term = *added_[i].term;
    PageEntry entry;
    entry.data = term.separator().data();
    entry.key_bytes = term.key_bytes;
    entry.child = term.child;
    content->Add(entry);
  }
  content->AddRun(base_, at, base_end_);
}

}  // namespace deut::dc
