#include "dc/bwtree/inner_view.h"

#include <algorithm>

#include "common/base/check.h"

namespace deut::dc {

PageId FindChild(const Node* head, std::string_view key, Side side) {
  const BasePage& base = *head->base;
  const IndexTermDelta* best = nullptr;
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const auto* term = static_cast<const IndexTermDelta*>(node);
    const std::string_view separator = term->separator();
    const bool left = side == Side::kAt ? separator <= key : (key.empty() || separator < key);
    if (left && (best == nullptr || separator > best->separator())) best = term;
  }
  DEUT_DCHECK(base.count() != 0);
  size_t i;
  if (side == Side::kAt) {
    i = base.UpperBound(key) - 1;
  } else {
    i = (key.empty() ? base.count() : base.LowerBound(key)) - 1;
  }
  return best != nullptr && (i == 0 || best->separator() > base.key(i)) ? best->child : base.child(i);
}

bool HasTerm(const Node* head, std::string_view separator) {
  const BasePage& base = *head->base;
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind == NodeKind::kIndexTerm && static_cast<const IndexTermDelta*>(node)->separator() == separator)
      return true;
  }
  if (base.key(0) == separator) return true;
  const size_t i = base.LowerBound(separator);
  return i != base.count() && i != 0 && base.key(i) == separator;
}

std::vector<PageEntry> CollectTerms(const Node* head) {
  const BasePage& base = *head->base;
  const Fence& fence = *head->fence;
  std::vector<PageEntry> terms;
  for (const Node* node = head; node != &base; node = node->next) {
    if (node->kind != NodeKind::kIndexTerm) continue;
    const auto* delta = static_cast<const IndexTermDelta*>(node);
    if (fence.bounded() && delta->separator() >= fence.high_key()) continue;
    PageEntry term;
    term.data = delta->separator().data();
    term.key_bytes = delta->key_bytes;
    term.child = delta->child;
    terms.push_back(term);
  }
  const auto by_key = [](const PageEntry& a, const PageEntry& b) { return a.key() < b.key(); };
  std::sort(terms.begin(), terms.end(), by_key);

  std::vector<PageEntry> merged;
  merged.reserve(base.count() + terms.size());
  const size_t end = fence.bounded() ? base.LowerBound(fence.high_key()) : base.count();
  auto next = terms.begin();
  for (size_t i = 0; i < end; ++i) {
    PageEntry entry;
    const std::string_view key = base.key(i);
    entry.data = key.data();
    entry.key_bytes = static_cast<uint16_t>(key.size());
    entry.child = base.child(i);
    for (; next != terms.end() && by_key(*next, entry); ++next) merged.push_back(*next);
    merged.push_back(entry);
  }
  merged.insert(merged.end(), next, terms.end());
  return merged;
}

}  // namespace deut::dc
