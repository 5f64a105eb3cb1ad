// Walks over the pages of a level, for background work on pages. A walk holds nothing between two calls.
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {

uint8_t BwTree::root_level() {
  const ReclamationDomain::Guard guard(domain_);
  return pages_.Load(root_)->level;
}

void BwTree::VisitPages(uint8_t level, Walk* walk, PageVisitor* visitor, const PageBits* only) {
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
  const size_t end = walk->high.empty() ? terms.count() : terms.LowerBound(walk->high);
  for (size_t i = end; i > 0; --i) {
    const PageId child = terms.child(i - 1);
    if (only != nullptr && !only->Contains(child)) continue;
    PageWord word = pages_.LoadWord(child);
    if (word.head() != nullptr && IsRemoved(word.head())) {
      FinishMerge(child, word.head());
      // If the merge was undone, the page is as before, or evicted by now. Else the visitor finds its records in its
      // left neighbour.
      word = pages_.LoadWord(child);
      if (word.head() != nullptr && IsRemoved(word.head())) continue;
    }
    // A page ends where its right neighbour begins; the last one ends where the parent does.
    const bool last = i == terms.count();
    const std::string_view high = last ? parent.head()->fence->high_key() : terms.key(i);
    const bool bounded = !last || parent.head()->fence->bounded();
    visitor->Visit(VisitedPage{child, word, parent.id, parent.head(), high, bounded});
  }
  const std::string_view low = parent.head()->base->low();
  DEUT_DCHECK(walk->high.empty() || low < walk->high);  // each call moves the walk
  walk->high.assign(low);
  walk->complete = low.empty();
}

}  // namespace deut::dc
