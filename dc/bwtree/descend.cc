// Finding a page. HOT PATH: no allocation, no lock, no system call (unless an unfinished split or merge is met and helped).
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {

BwTree::PageView BwTree::Descend(uint8_t level, const Target& target) {
  PageView page{root_, pages_.LoadWord(root_)};
  for (;;) {
    const Node* const head = page.head();
    if (head != nullptr && IsRemoved(head)) [[unlikely]] {
      FinishMerge(page.id, head);
      page = PageView{root_, pages_.LoadWord(root_)};
      continue;
    }
    if (head != nullptr && LiesLeft(*head, target) && !DEUT_OMITTED("bwtree.step_right")) {
      // A parent that had the term would have led us further right: the split to the right of this page may be unfinished.
      const Fence& fence = *head->fence;
      if (fence.sibling == kUnknownPage) return page;  // a stub: to be loaded
      DEUT_POINT("bwtree.descend.step_right");
      // A status is of no concern here: whoever's update needs the page will get it.
      (void)PostIndexTerm(static_cast<uint8_t>(head->level + 1), fence.high_key(), fence.sibling, Insistence::kOnce);
      page = PageView{fence.sibling, pages_.LoadWord(fence.sibling)};
      continue;
    }
    if (head == nullptr || head->level == level) {
      if (level == 0) pages_.Touch(page.id);
      return page;
    }
    DEUT_CHECK(head->level > level);
    const PageId child = FindChild(head, target);
    DEUT_POINT("bwtree.descend.before_child");
    page = PageView{child, pages_.LoadWord(child), page.id, head};
    BasePage::Prefetch(page.head());  // if it is not a base page the first line alone is wanted
  }
}

BwTree::PageView BwTree::FindLeaf(const Target& target) {
  PageView page{root_, pages_.LoadWord(root_)};
  for (;;) {
    const Node* const head = page.head();
    // Whatever is out of the ordinary is left to who descends by itself.
    if (head == nullptr || head->is_leaf() || IsRemoved(head) || LiesLeft(*head, target)) {
      return PageView{kNoPage, PageWord()};
    }
    const PageId child = FindChild(head, target);
    page = PageView{child, pages_.LoadWord(child), page.id, head};
    if (head->level == 1) {
      pages_.Touch(child);
      return page;
    }
    BasePage::Prefetch(page.head());
  }
}

BwTree::Place BwTree::FindPlace(std::string_view key) {
  const PageView page = FindLeaf(Target(key, Side::kAt));
  if (page.id != kNoPage) __builtin_prefetch(page.head(), /*to write=*/0);
  return Place(page);
}

}  // namespace deut::dc
