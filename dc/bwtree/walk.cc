// Walks over the pages of a level, for those who look after pages in the background. Nothing is held between two calls.
#include <string>

#include "dc/bwtree/bwtree.h"

namespace deut::dc {

uint8_t BwTree::root_level() {
  const ReclamationDomain::Guard guard(domain_);
  return pages_.Load(root_)->level;
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
