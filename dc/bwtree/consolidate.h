// Builds base pages from chains: consolidation of one chain, and the pages that a merge needs. Thread-safety: reads
// immutable nodes; the caller holds a guard. Ownership: the caller owns the page that it gets.
#ifndef DC_BWTREE_CONSOLIDATE_H_
#define DC_BWTREE_CONSOLIDATE_H_

#include <string_view>

#include "common/base/ids.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// Returns the chain's content as one page, without the tombstones below `consolidation`, for which `flat` is raised
// (rule X1). The page inherits the state of the image from the chain's newest node.
// REQUIRES: no stub, a guard. Every update of the page below `consolidation` is in the chain. Either the bound was
// loaded before the chain's head, or the page replaces `head` by compare-and-swap.
Owned<BasePage> BuildConsolidated(const Node* head, Timestamp consolidation);

// Returns the content of two neighbours as one page, which no image contains yet. Its flat timestamp is the larger
// one. REQUIRES besides: every update of either page at or below that timestamp is in its chain (rule X1).
Owned<BasePage> BuildMerged(const Node* left, const Node* right, Timestamp consolidation);

// Returns an inner page without the term that has this separator, if there is one. No image contains the result yet.
Owned<BasePage> BuildWithoutTerm(const Node* head, std::string_view separator);

}  // namespace deut::dc

#endif  // DC_BWTREE_CONSOLIDATE_H_
