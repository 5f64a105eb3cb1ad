#include "dc/bwtree/named_page.h"

#include "common/base/concat.h"

namespace deut::dc {

NamedPage NamedRoot(PageId root) {
  NamedPage named;
  named.id = root;
  named.level = NamedPage::kAnyLevel;
  return named;
}

NamedPage NamedChild(const BasePage& page, size_t i) {
  const bool last = i + 1 == page.count();
  NamedPage named;
  named.id = page.child(i);
  named.level = static_cast<uint8_t>(page.level - 1);
  named.low = page.key(i);
  named.high = last ? page.fence->high_key() : page.key(i + 1);
  named.bounded = !last || page.fence->bounded();
  return named;
}

const char* DescribeMismatch(const BasePage& page, const NamedPage& named) {
  if (named.level != NamedPage::kAnyLevel && page.level != named.level)
    return "it is of another level than its parent says";
  if (page.low() != named.low || page.fence->bounded() != named.bounded || page.fence->high_key() != named.high) {
    return "its bounds are not those that its parent says";
  }
  return nullptr;
}

std::string DescribeWrongSibling(PageId sibling, PageId next) {
  return Concat("it names page ", sibling.value, " as its right sibling, but page ", next.value, " follows it");
}

}  // namespace deut::dc
