#include "dc/bwtree/inner_view.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
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

void CollectTerms(const Node* head, BasePage::Content* terms) {
  const BasePage& base = *head->base;
  const Fence& fence = *head->fence;
  absl::InlinedVector<const IndexTermDelta*, 16> added;
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const auto* term = static_cast<const IndexTermDelta*>(node);
    // After a split of this page, terms at or above the fence belong to the right half.
    if (!fence.bounded() || term->separator() < fence.high_key()) added.push_back(term);
  }
  std::sort(added.begin(), added.end(),
            [](const IndexTermDelta* a, const IndexTermDelta* b) { return a->separator() < b->separator(); });
  // Several threads may post the same term. The compare-and-swap lets one of them through, and the others find it.
  const auto same = [](const IndexTermDelta* a, const IndexTermDelta* b) { return a->separator() == b->separator(); };
  DEUT_DCHECK(std::adjacent_find(added.begin(), added.end(), same) == added.end());
  size_t at = 0;
  for (const IndexTermDelta* term : added) {
    const size_t place = base.LowerBound(term->separator());
    DEUT_DCHECK(place == base.count() || base.key(place) != term->separator());
    terms->AddRun(base, at, place);
    at = place;
    PageEntry entry;
    entry.data = term->separator().data();
    entry.key_bytes = term->key_bytes;
    entry.child = term->child;
    terms->Add(entry);
  }
  terms->AddRun(base, at, fence.bounded() ? base.LowerBound(fence.high_key()) : base.count());
}

}  // namespace deut::dc
