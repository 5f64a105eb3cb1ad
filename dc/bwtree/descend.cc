// Finding a page. HOT PATH: no allocation, no lock, no system call (unless an unfinished split or merge is met and helped).
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {
namespace {

// Only leaves are evicted (evict.cc).
uint8_t LevelOf(PageWord word) { return word.head() == nullptr ? 0 : word.head()->level; }

}  // namespace

BwTree::PageView BwTree::Descend(uint8_t level, const Target& target) {
  PageView page{root_, pages_.LoadWord(root_)};
  for (;;) {
    const Node* const head = page.head();
    if (head != nullptr && IsRemoved(head)) [[unlikely]] {
      FinishMerge(page.id, head);
      page = PageView{root_, pages_.LoadWord(root_)};
      continue;
    }
    if (head != nullptr && LiesLeft(*head, target) && DEUT_STEP("bwtree.step_right")) {
      // A parent that had the term would have led the thread further right: the split to the right of this page may
      // be unfinished.
      const Fence& fence = *head->fence;
      if (fence.sibling == kUnknownPage) return page;  // a stub: the caller loads it
      DEUT_POINT("bwtree.descend.step_right");
      // The status is ignored: an update that needs the page will get the same error.
      (void)PostIndexTerm(static_cast<uint8_t>(head->level + 1), fence.high_key(), fence.sibling, PostRetry::kOnce);
      page = PageView{fence.sibling, pages_.LoadWord(fence.sibling)};
      continue;
    }
    if (head == nullptr || head->level == level) return page;
    DEUT_CHECK(head->level > level);
    const PageId child = FindChild(head, target);
    DEUT_POINT("bwtree.descend.before_child");
    page = PageView{child, pages_.LoadWord(child), page.id, head};
    DEUT_DCHECK(LevelOf(page.word) + 1 == head->level);
    BasePage::Prefetch(page.head());  // of a delta, only the first line is needed
  }
}

BwTree::PageView BwTree::DescendToUpdate(const Target& target) {
  const PageView page = Descend(/*level=*/0, target);
  pages_.MarkUpdated(page.id);
  return page;
}

BwTree::PageView BwTree::DescendToUse(const Target& target) {
  const PageView page = Descend(/*level=*/0, target);
  pages_.MarkUsed(page.id);
  return page;
}

BwTree::PageView BwTree::FindLeaf(const Target& target) {
  PageView page{root_, pages_.LoadWord(root_)};
  for (;;) {
    const Node* const head = page.head();
    // A caller without a hint descends by itself, which handles every unusual case.
    if (head == nullptr || head->is_leaf() || IsRemoved(head) || LiesLeft(*head, target)) {
      return PageView{kNoPage, PageWord()};
    }
    const PageId child = FindChild(head, target);
    page = PageView{child, pages_.LoadWord(child), page.id, head};
    if (head->level == 1) {
      pages_.MarkUsed(child);
      return page;
    }
    BasePage::Prefetch(page.head());
  }
}

// The searches advance side by side. Each step of one search needs the lines that its previous step prefetched; by
// then the other searches have prefetched theirs.
void BwTree::FindLeaves(std::span<const std::string_view> keys, LeafHint* hints) {
  DEUT_DCHECK(keys.size() <= kMaxLeavesPerCall);
  std::array<PageView, kMaxLeavesPerCall> pages;
  std::array<PageId, kMaxLeavesPerCall> children;
  pages.fill(PageView{root_, pages_.LoadWord(root_)});
  uint32_t open = (uint32_t{1} << keys.size()) - 1;
  const auto for_each = [&open](auto&& step) {
    for (uint32_t rest = open; rest != 0; rest &= rest - 1) step(static_cast<size_t>(std::countr_zero(rest)));
  };
  while (open != 0) {
    for_each([&](size_t i) {
      const Node* const head = pages[i].head();
      // A caller without a hint descends by itself, which handles every unusual case.
      if (head == nullptr || head->is_leaf() || IsRemoved(head) || LiesLeft(*head, Target(keys[i], Side::kAt))) {
        pages[i] = PageView{kNoPage, PageWord()};
        open &= ~(uint32_t{1} << i);
        return;
      }
      head->base->PrefetchKeyPrefixes(keys[i]);
    });
    for_each([&](size_t i) { pages[i].head()->base->PrefetchEntry(keys[i]); });
    for_each([&](size_t i) {
      children[i] = FindChild(pages[i].head(), Target(keys[i], Side::kAt));
      pages_.Prefetch(children[i]);
    });
    for_each([&](size_t i) {
      const Node* const parent = pages[i].head();
      pages[i] = PageView{children[i], pages_.LoadWord(children[i]), pages[i].id, parent};
      if (parent->level != 1) return BasePage::Prefetch(pages[i].head());
      pages_.MarkUpdated(children[i]);
      __builtin_prefetch(pages[i].head(), /*to write=*/0);
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(pages[i].head()) + 64));
      open &= ~(uint32_t{1} << i);
    });
  }
  for (size_t i = 0; i < keys.size(); ++i) hints[i] = LeafHint(pages[i]);
}

void BwTree::PrefetchRoom(const LeafHint& hint) const {
  if (hint.page_.id == kNoPage) return;
  const Node* const head = pages_.LoadWord(hint.page_.id).head();
  if (head == nullptr || !IsRecord(head)) return;
  const auto* const host = static_cast<const RecordDelta*>(head);
  if (host->room == 0) return;
  const char* const room = reinterpret_cast<const char*>(host) + host->bytes();
  for (size_t line = 0; line < 3; ++line) __builtin_prefetch(room + line * 64, /*to write=*/1);
}

}  // namespace deut::dc
