// Consolidation of a chain into one base page.
#ifndef DC_BWTREE_CONSOLIDATE_H_
#define DC_BWTREE_CONSOLIDATE_H_

#include <string_view>

#include "common/base/ids.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// What the chain says, as one page; without tombstones below `consolidation`, for which `flat` is raised (rule X1). What the chain's newest
// node says of the image, the page says.
// REQUIRES: no stub, a guard. Every update of the page below `consolidation` is in the chain: because the bound was loaded before the
//   chain's head was, or because the page replaces `head` by compare-and-swap.
Owned<BasePage> BuildConsolidated(const Node* head, Timestamp consolidation);

// The same of two neighbours as one page, which no image says yet. Its flat timestamp is the larger one.
// REQUIRES besides: every update of either page at or below that is in its chain (rule X1).
Owned<BasePage> BuildMerged(const Node* left, const Node* right, Timestamp consolidation);

// An inner page without the term that has this separator, if it has it; no image says so yet.
Owned<BasePage> BuildWithoutTerm(const Node* head, std::string_view separator);

}  // namespace deut::dc

#endif  // DC_BWTREE_CONSOLIDATE_H_
