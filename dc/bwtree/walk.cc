// Walks over the pages of a level, for those who look after pages in the background. Nothing is held between two calls.
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {

uint8_t BwTree::root_level() {
  const ReclamationDomain::Guard guard(domain_);
  return pages_.Load(root_)->level;
}

// A page whose term is not posted yet is no parent's, and may have an image by now; who visits all pages must not pass it by (rule X6). It cannot be
// swapped out (evict.cc), so side links lead there.
void BwTree::VisitUnposted(PageId left, bool bounded, std::string_view high, PageVisitor* visitor) {
  absl::InlinedVector<VisitedPage, 4> unposted;
  for (const Node* head = pages_.Load(left); head != nullptr && !DEUT_OMITTED("X6.visit_unposted");) {
    if (IsRemoved(head)) break;  // its left neighbour leads on from here
    const Fence& fence = *head->fence;
    if (!fence.bounded() || (bounded && fence.high_key() >= high)) break;
    if (fence.sibling == kUnknownPage) break;  // swapped out and changed again: the term is there by now
    const PageWord word = pages_.LoadWord(fence.sibling);
    head = word.head();
    if (head == nullptr) break;  // the term is there by now
    if (IsRemoved(head)) {
      // It had a term, and is, or is about to be, its left neighbour's.
      FinishMerge(fence.sibling, head);
      unposted.clear();
      head = pages_.Load(left);
      continue;
    }
    unposted.push_back({fence.sibling, word, kNoPage, nullptr, head->fence->high_key(), head->fence->bounded()});
  }
  while (!unposted.empty()) {
    visitor->Visit(unposted.back());
    unposted.pop_back();
  }
}

void BwTree::VisitPages(uint8_t level, Walk* walk, PageVisitor* visitor) {
  const ReclamationDomain::Guard guard(domain_);
  const PageWord root = pages_.LoadWord(root_);
  if (root.head()->level <= level) {
    walk->complete = true;
    if (root.head()->level == level) visitor->Visit(VisitedPage{root_, root, kNoPage, nullptr, {}, false});
    return;
  }
  const PageView parent = Descend(static_cast<uint8_t>(level + 1), Target(walk->high, Side::kBelow));
  const Owned<BasePage> terms = BuildConsolidated(parent.head());
  // Children at or above the walk's bound were visited before.
  size_t end = walk->high.empty() ? terms->count() : terms->LowerBound(walk->high);
  bool bounded = terms->fence->bounded();
  std::string_view high = terms->fence->high_key();
  if (end != terms->count()) {
    bounded = true;
    high = terms->key(end);
  }
  for (; end > 0; --end) {
    const PageId child = terms->child(end - 1);
    VisitUnposted(child, bounded, high, visitor);
    PageWord word = pages_.LoadWord(child);
    if (word.head() != nullptr && IsRemoved(word.head())) {
      FinishMerge(child, word.head());
      // As it was, if the merge was undone, or swapped out by now; else its records are found with its left neighbour.
      word = pages_.LoadWord(child);
      if (word.head() != nullptr && IsRemoved(word.head())) continue;
    }
    visitor->Visit(VisitedPage{child, word, parent.id, parent.head(), high, bounded});
    bounded = true;
    high = terms->key(end - 1);
  }
  walk->high.assign(terms->low());
  walk->complete = terms->low().empty();
}

}  // namespace deut::dc
