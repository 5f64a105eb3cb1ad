// PageView: a page as a search has found it. LeafHint and Lookup: what a caller of BwTree keeps of a search until it
// uses the page.
// Thread-safety: values; one thread uses them at a time. Ownership: none; valid inside the reclamation guard in which
// the page was found.
#ifndef DC_BWTREE_PAGE_VIEW_H_
#define DC_BWTREE_PAGE_VIEW_H_

#include "dc/bwtree/base_page.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/node.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

// A page, the word that was read for it, and the inner page that led to it. There is no parent if the page was
// reached from its left neighbour.
struct PageView {
  PageId id;
  PageWord word;
  PageId parent = kNoPage;
  const Node* parent_head = nullptr;

  // Null: the page is on storage.
  const Node* head() const { return word.head(); }
  // Its records are in memory.
  bool loaded() const { return head() != nullptr && !head()->base->stub(); }
};

// The leaf to which an update of a key belongs, as of some moment. A caller with several updates finds all their
// leaves before it makes the first update (BwTree::FindLeaves). The cache lines that they touch are then prefetched
// together.
class LeafHint {
 public:
  LeafHint() = default;  // not known
  // For a page that cannot be read: it accepts blind updates up to the size that one part of an image can hold.
  static LeafHint Unreadable() {
    LeafHint hint;
    hint.unreadable_ = true;
    return hint;
  }

 private:
  friend class BwTree;
  explicit LeafHint(const PageView& page) : page_(page) {}
  PageView page_{kNoPage, PageWord()};
  bool unreadable_ = false;
};

// A point read that is done in steps (BwTree::BeginRead).
class Lookup {
 public:
  Lookup() : Lookup(Target({}, Side::kAt), PageView{kNoPage, PageWord()}) {}

 private:
  friend class BwTree;
  Lookup(const Target& target, const PageView& page) : target_(target), page_(page) {}
  Target target_;
  PageView page_;
  int step_ = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_VIEW_H_
