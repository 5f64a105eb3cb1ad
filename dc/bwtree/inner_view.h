// What an inner page's chain means: a sorted map from separators to children. A child holds the keys from its separator up to
// the next one. Terms are only ever added, and a separator belongs to one child for ever, so the order of deltas does not matter.
// Thread-safety: reads immutable nodes. Ownership: views into the chain; they live as long as the caller's reclamation guard.
#ifndef DC_BWTREE_INNER_VIEW_H_
#define DC_BWTREE_INNER_VIEW_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// Which page of a level a descent is after.
enum class Side : uint8_t {
  kAt,     // the page that covers `key`
  kBelow,  // the page that covers what lies just below `key`; an empty key is above every key
};

// True if the page that ends at `fence` lies wholly left of the wanted page.
inline bool LiesLeft(const Fence& fence, std::string_view key, Side side) {
  if (!fence.bounded()) return false;
  if (side == Side::kAt) return key >= fence.high_key();
  return key.empty() || fence.high_key() < key;
}

// The child on the way to the wanted page. REQUIRES: the chain is an inner page's that does not lie left of it.
PageId FindChild(const Node* head, std::string_view key, Side side);

// True if the page has a term with this separator. REQUIRES: the page covers the separator.
bool HasTerm(const Node* head, std::string_view separator);

// All terms of the page below its fence, ascending, as entries for a new base page.
std::vector<PageEntry> CollectTerms(const Node* head);

}  // namespace deut::dc

#endif  // DC_BWTREE_INNER_VIEW_H_
