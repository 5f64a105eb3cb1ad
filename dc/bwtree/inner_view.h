// The meaning of an inner page's chain: a sorted map from separators to children. A child holds the keys from its
// separator up to the next one. Deltas only add terms, and never a term whose separator already exists, so their
// order does not matter. (A merge removes a term by a new base page.)
// Thread-safety: reads immutable nodes. Ownership: views into the chain; they live as long as the caller's
// reclamation guard.
#ifndef DC_BWTREE_INNER_VIEW_H_
#define DC_BWTREE_INNER_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
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

// All terms of the page below its fence, in order, read where they lie: nothing is copied. Valid inside the guard in
// which the head was read.
class InnerTerms {
 public:
  // REQUIRES: an inner page that is not removed.
  explicit InnerTerms(const Node* head);

  size_t count() const { return base_end_ + added_.size(); }
  std::string_view key(size_t i) const;
  PageId child(size_t i) const;
  // The first term whose key is >= `key`, or > `key`; count() if there is none. The first term counts as below every
  // key.
  size_t LowerBound(std::string_view key) const;
  size_t UpperBound(std::string_view key) const;
  // Appends the terms, for a new base page.
  void AppendTo(BasePage::Content* content) const;

 private:
  // A term that stands in a delta.
  struct Added {
    const IndexTermDelta* term;
    size_t place;  // its index among all terms
  };
  // Returns the delta that is the i-th term. Null: that is a term of the base, with index *in_base there.
  const IndexTermDelta* AddedAt(size_t i, size_t* in_base) const;

  const BasePage& base_;
  size_t base_end_;  // terms of the base behind it belong to the right neighbour
  absl::InlinedVector<Added, 16> added_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_INNER_VIEW_H_
