// NamedPage: a page as its parent describes it. Recovery and offline checks use it. There all pages are images, and
// an inner page describes a child exactly as the child's image describes itself, and each page names the page that
// follows it on its level (checkpointer.h, step 5).
// Thread-safety: pure functions. Ownership: a NamedPage owns its bounds.
#ifndef DC_BWTREE_NAMED_PAGE_H_
#define DC_BWTREE_NAMED_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dc/bwtree/base_page.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

struct NamedPage {
  static constexpr uint8_t kAnyLevel = UINT8_MAX;  // level of a root, which no parent states
  PageId id;
  uint8_t level = 0;
  std::string low;
  std::string high;  // valid if `bounded`
  bool bounded = false;
};

// The pages that an inner page names. If they are leaves, recovery needs only their ids.
struct NamedPages {
  std::vector<NamedPage> inner;
  std::vector<PageId> leaves;
};

// Describes the root of a tree, which covers all keys.
NamedPage NamedRoot(PageId root);
// Describes the i-th child of an inner page. REQUIRES: an inner page, i < page.count().
NamedPage NamedChild(const BasePage& page, size_t i);

// Returns how the page differs from its description, as a clause for a message; null if it does not.
const char* DescribeMismatch(const BasePage& page, const NamedPage& named);
// Returns the fault of a page as a clause for a message: it names `sibling` as its right sibling, but `next` follows it
// on its level.
std::string DescribeWrongSibling(PageId sibling, PageId next);

}  // namespace deut::dc

#endif  // DC_BWTREE_NAMED_PAGE_H_
