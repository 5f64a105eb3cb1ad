// Walks over the pages of a level, for background work on pages. A walk holds nothing between two calls.
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {

uint8_t BwTree::root_level() {
  const ReclamationDomain::Guard guard(domain_);
  return pages_.Load(root_)->level;
}

// Visits the pages from `left`, whose head is `head`, up to `high`, whose terms the parent did not have when it was
// read. They are children of no page, but may have images, so a visitor of all pages must not miss them (rule X6).
// While they have no terms they cannot be evicted (evict.cc), so side links lead to them. False: a page on the way
// was evicted. So its terms have been posted since the parent was read.
bool BwTree::VisitUnposted(PageId left, const Node* head, bool bounded, std::string_view high, PageVisitor* visitor) {
  absl::InlinedVector<VisitedPage, 4> unposted;
  while (DEUT_STEP("X6.visit_unposted")) {
    if (head == nullptr) return false;
    if (IsRemoved(head)) break;  // the left neighbour continues from here
    const Fence& fence = *head->fence;
    if (!fence.bounded() || (bounded && fence.high_key() >= high)) break;
    if (fence.sibling == kUnknownPage) return false;  // a stub: evicted, and updated since
    const PageWord word = pages_.LoadWord(fence.sibling);
    head = word.head();
    if (head == nullptr) return false;
    if (IsRemoved(head)) {
      // The page was merged away. Its key range belongs, or is about to belong, to its left neighbour.
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
  return true;
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
  const InnerTerms terms(parent.head());
  // Children at or above the walk's bound were visited before.
  size_t end = walk->high.empty() ? terms.count() : terms.LowerBound(walk->high);
  bool bounded = parent.head()->fence->bounded();
  std::string_view high = parent.head()->fence->high_key();
  if (end != terms.count()) {
    bounded = true;
    high = terms.key(end);
  }
  for (; end > 0; --end) {
    const PageId child = terms.child(end - 1);
    DEUT_POINT("bwtree.walk.before_unposted");
    PageWord word = pages_.LoadWord(child);
    // A page on storage has all its terms in the current parent. If that is not the parent that was read, the rest is
    // left to the next call.
    const bool all = VisitUnposted(child, word.head(), bounded, high, visitor);
    if (!all && pages_.Load(parent.id) != parent.head() && DEUT_STEP("X6.walk_again")) {
      walk->high.assign(high);
      return;
    }
    if (word.head() != nullptr && IsRemoved(word.head())) {
      FinishMerge(child, word.head());
      // If the merge was undone, the page is as before, or evicted by now. Else the visitor finds its records in its
      // left neighbour.
      word = pages_.LoadWord(child);
      if (word.head() != nullptr && IsRemoved(word.head())) continue;
    }
    visitor->Visit(VisitedPage{child, word, parent.id, parent.head(), high, bounded});
    bounded = true;
    high = terms.key(end - 1);
  }
  const std::string_view low = parent.head()->base->low();
  DEUT_DCHECK(walk->high.empty() || low < walk->high);  // each call moves the walk
  walk->high.assign(low);
  walk->complete = low.empty();
}

}  // namespace deut::dc
