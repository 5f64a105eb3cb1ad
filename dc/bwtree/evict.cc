// Swapping pages out: the page's word becomes the address of its image. [LLAMA, PVLDB 6(10), 2013, section 3.3]
// Winner and loser: whoever changes the page first. Then the compare-and-swap fails, and the page stays.
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {

bool BwTree::Evict(const VisitedPage& page) {
  const Node* const head = page.word.head();
  if (head == nullptr || !head->is_leaf() || page.parent == kNoPage) return false;
  if (!IsClean(head) && !DEUT_OMITTED("evict.clean")) return false;
  // Blind updates take the page's bounds from its parent (update.cc): so the parent must have the terms of all its splits. It has, if it
  // gives the page the bound that the page has, and is still as it was when it was asked.
  const Fence& fence = *head->fence;
  const bool same = fence.bounded() == page.bounded && fence.high_key() == page.high;
  if (!same && !DEUT_OMITTED("evict.term_posted")) return false;
  if (pages_.Load(page.parent) != page.parent_head) return false;
  DEUT_IN_FLIGHT("dc.swap_out");
  const PageAddress newest = pages_.Image(page.id).newest();
  DEUT_POINT("bwtree.evict.before_cas");
  if (DEUT_CAS_FAILS("bwtree.evict.cas") || !pages_.Replace(page.id, page.word, PageWord::Storage(newest)))
    return false;
  // Most of it can be given up before long: whoever merges pages will load it then.
  if (IsMostlyTombstones(*head->base)) NoteSparse(page.id);
  Retire(head);
  return true;
}

}  // namespace deut::dc
