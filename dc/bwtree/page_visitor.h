// What walks over the pages of a tree find, for those who look after pages in the background (walk.cc).
#ifndef DC_BWTREE_PAGE_VISITOR_H_
#define DC_BWTREE_PAGE_VISITOR_H_

#include <string_view>

#include "dc/bwtree/node.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

// A page as a walk finds it. Lives as long as the walk's guard.
struct VisitedPage {
  PageId id;
  PageWord word;
  // The parent and what it says of the page's upper bound.
  PageId parent;
  const Node* parent_head = nullptr;
  std::string_view high;
  bool bounded = false;
};

class PageVisitor {
 public:
  virtual ~PageVisitor() = default;
  // Inside a guard.
  virtual void Visit(const VisitedPage& page) = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_VISITOR_H_
