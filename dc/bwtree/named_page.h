// NamedPage: a page as its parent names it, and what that says of its image. For recovery and for offline checks, where all pages are
// images: what an inner page says of a child is exactly what the child's image says (checkpointer.h, step 5).
// Thread-safety: pure functions. Ownership: a NamedPage owns its bounds.
#ifndef DC_BWTREE_NAMED_PAGE_H_
#define DC_BWTREE_NAMED_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "dc/bwtree/base_page.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

struct NamedPage {
  static constexpr uint8_t kAnyLevel = UINT8_MAX;  // of the root
  PageId id;
  uint8_t level = 0;
  std::string low;
  std::string high;  // if bounded
  bool bounded = false;
};

// The root of a tree: all keys are its own.
NamedPage NamedRoot(PageId root);
// REQUIRES: an inner page, i < page.count().
NamedPage NamedChild(const BasePage& page, size_t i);

// What about the page is not as it is named, as a clause for a message; null if it is.
const char* Contradiction(const BasePage& page, const NamedPage& named);

}  // namespace deut::dc

#endif  // DC_BWTREE_NAMED_PAGE_H_
