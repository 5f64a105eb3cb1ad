// PageVisitor: receives the pages that a walk over a tree finds, for background work on pages (walk.cc). Ownership:
// views into nodes, valid inside the walk's guard.
#ifndef DC_BWTREE_PAGE_VISITOR_H_
#define DC_BWTREE_PAGE_VISITOR_H_

#include <string_view>

#include "dc/bwtree/node.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

// A page as a walk finds it. It is valid as long as the walk's guard.
struct VisitedPage {
  PageId id;
  PageWord word;
  // The parent, and the page's upper bound as the parent states it.
  PageId parent;
  const Node* parent_head = nullptr;
  std::string_view high;
  bool bounded = false;
};

class PageVisitor {
 public:
  virtual ~PageVisitor() = default;
  // Called inside a guard.
  virtual void Visit(const VisitedPage& page) = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_VISITOR_H_
