// The meaning of an inner page's chain: a sorted map from separators to children. A child holds the keys from its
// separator up to the next one. Deltas only add terms, and never a term whose separator already exists, so their
// order does not matter. (A merge removes a term by a new base page.)
// Thread-safety: reads immutable nodes. Ownership: views into the chain; they live as long as the caller's
// reclamation guard.
#ifndef DC_BWTREE_INNER_VIEW_H_
#define DC_BWTREE_INNER_VIEW_H_

#include <cstdint>
#include <string_view>

#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// The page of a level that a descent looks for.
enum class Side : uint8_t {
  kAt,     // the page that covers `key`
  kBelow,  // the page that covers the keys just below `key`; an empty key is above every key
};

// The goal of a descent: a page of a level, named by a key.
struct Target {
  Target(std::string_view target_key, Side target_side)
      : key(target_key), key_prefix(KeyPrefix64(target_key)), side(target_side) {}

  std::string_view key;
  uint64_t key_prefix;
  Side side;
};

// Returns true if the page lies wholly left of the wanted one.
inline bool LiesLeft(const Node& page, const Target& target) {
  const bool endless = target.side == Side::kBelow && target.key.empty();
  if (target.key_prefix != page.high_key_prefix && !endless) [[likely]]
    return target.key_prefix > page.high_key_prefix;
  const Fence& fence = *page.fence;
  if (!fence.bounded()) return false;
  if (target.side == Side::kAt) return target.key >= fence.high_key();
  return endless || fence.high_key() < target.key;
}

// Returns the child on the way to the wanted page. REQUIRES: the chain belongs to an inner page that does not lie
// left of that page.
PageId FindChild(const Node* head, const Target& target);

// The bounds of the child that covers `key`, as the page states them. If the page does not cover the key, the bounds do
// not contain it.
struct ChildBounds {
  std::string_view low;
  std::string_view high;
  bool bounded = false;  // false: there is no upper bound
};
ChildBounds BoundsOfChild(const Node* head, std::string_view key);

// Returns true if the page has a term with this separator. REQUIRES: the page covers the separator.
bool HasTerm(const Node* head, std::string_view separator);

// Returns the child of the page's term with this separator; kNoPage: there is no such term. *first: it is the page's
// first term, which states where the page begins. REQUIRES: the page covers the separator.
PageId ChildAt(const Node* head, std::string_view separator, bool* first);

// Collects all terms of the page below its fence, for a new base page.
void CollectTerms(const Node* head, BasePage::Content* terms);

}  // namespace deut::dc

#endif  // DC_BWTREE_INNER_VIEW_H_
