// Eviction of pages: the page's word becomes the address of its image. [LLAMA, PVLDB 6(10), 2013, section 3.3]
// Winner and loser: the thread that changes the page first wins. If that is not the evictor, its compare-and-swap
// fails and the page stays.
#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {

bool BwTree::Evict(const VisitedPage& page) {
  DEUT_DCHECK(domain_.guard_held());
  const Node* const head = page.word.head();
  if (head == nullptr || !head->is_leaf() || page.parent == kNoPage) return false;
  if (!IsClean(head) && DEUT_STEP("evict.clean")) return false;
  // A blind update takes the page's bounds from its parent (update.cc), so the parent must have the terms of all the
  // page's splits. It has them if it states the page's own upper bound, and still is the head that was read.
  const Fence& fence = *head->fence;
  const bool same = fence.bounded() == page.bounded && fence.high_key() == page.high;
  if (!same && DEUT_STEP("evict.term_posted")) return false;
  if (pages_.Load(page.parent) != page.parent_head) return false;
  DEUT_IN_FLIGHT("dc.swap_out");
  const PageAddress newest = pages_.Image(page.id).newest();
  // A node is marked as written only after the image was registered. Without an image the content would be lost here.
  DEUT_CHECK(!newest.is_none());
  DEUT_POINT("bwtree.evict.before_cas");
  if (DEUT_CAS_FAILS("bwtree.evict.cas") || !pages_.Replace(page.id, page.word, PageWord::Storage(newest)))
    return false;
  if (!IsStub(head)) NoteSizeOfEvicted(page.id, *head->base);
  // Most of its tombstones can be dropped soon: the merging thread will load the page then.
  if (IsMostlyTombstones(*head->base)) MarkSparse(page.id);
  Retire(head);
  return true;
}

}  // namespace deut::dc
