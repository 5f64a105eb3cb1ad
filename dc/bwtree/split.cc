// Splits: of leaves, inner pages and the root. The steps and their races: bwtree.h.
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {
namespace {

// An inner page with fewer entries is not split.
constexpr uint32_t kMinInnerEntries = 4;

// Returns the first entry of the right half. The halves are equal in bytes, except that the last page of a level
// keeps most of its entries: if keys arrive in order, no further key comes for the left half. REQUIRES: at least two
// entries.
size_t CutOf(const BasePage& page) {
  const size_t count = page.count();
  DEUT_DCHECK(count >= 2);
  const size_t total = page.run_bytes(0, count);
  const size_t wanted = page.fence->bounded() ? total / 2 : total - total / 8;
  size_t low = 1;
  size_t high = count - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (page.run_bytes(0, middle) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns a key above every key left of `cut` and not above the one at `cut`. In a leaf it is the shortest such key,
// since it goes into all levels above. The result is a view into the page.
std::string_view SeparatorAt(const BasePage& page, size_t cut) {
  const std::string_view right = page.key(cut);
  if (!page.is_leaf()) return right;
  const std::string_view left = page.key(cut - 1);
  size_t common = 0;
  while (common < left.size() && left[common] == right[common]) ++common;
  const std::string_view separator = right.substr(0, common + 1);
  DEUT_DCHECK(left < separator);
  return separator;
}

Owned<BasePage> BuildHalf(const BasePage& page, size_t begin, size_t end, const BasePage::Bounds& bounds) {
  BasePage::Content content;
  content.AddRun(page, begin, end);
  const bool forget = DEUT_OMITTED("X1.split_copies_flat") && begin != 0;
  return BasePage::Build(page.level, bounds, forget ? Timestamp() : page.flat(), content);
}

}  // namespace

class BwTree::UnpublishedPage {
 public:
  UnpublishedPage(BwTree& tree, Owned<BasePage> page)
      : tree_(tree), page_(std::move(page)), id_(tree.pages_.Allocate(page_.get())) {
    // The page is written in any case before a page that names it. But a checkpoint that visits new neighbours from
    // right to left need not follow chains of pages that wait for one another.
    if (id_ != kNoPage) tree_.pages_.MarkDirty(id_);
  }
  ~UnpublishedPage() {
    if (page_ != nullptr && id_ != kNoPage) tree_.pages_.Free(id_, tree_.domain_);
  }
  UnpublishedPage(const UnpublishedPage&) = delete;
  UnpublishedPage& operator=(const UnpublishedPage&) = delete;

  PageId id() const { return id_; }
  const BasePage& page() const { return *page_; }
  // Called once other threads can find the page.
  void Published() { tree_.CountPublished(page_.release()->block_bytes()); }

 private:
  BwTree& tree_;
  Owned<BasePage> page_;
  const PageId id_;
};

bool BwTree::IsLarge(const BasePage& page) const {
  if (page.is_leaf()) return page.bytes() > options_.leaf_page_bytes && page.count() > 1;
  return page.bytes() > options_.inner_page_bytes && page.count() >= kMinInnerEntries;
}

Status BwTree::NoPageId() const {
  return DEUT_ERROR(kResourceExhausted, "Bw-tree: no page id for a split, all ", pages_.capacity(), " are in use");
}

Status BwTree::SplitIfLarge(PageId id, const BasePage* page) {
  if (!IsLarge(*page) || !MayRestructure()) return Status::Ok();
  if (id == root_) {
    bool won = false;
    return SplitRoot(page, *page, &won);
  }
  const size_t cut = CutOf(*page);
  const std::string_view separator = SeparatorAt(*page, cut);
  const Fence& fence = *page->fence;
  UnpublishedPage right(*this, BuildHalf(*page, cut, page->count(), {separator, fence.high_key(), fence.sibling}));
  if (right.id() == kNoPage) return NoPageId();
  // The right half is complete and has its id before the compare-and-swap publishes it: no thread ever sees it
  // incomplete.
  Owned<SplitDelta> delta = SplitDelta::New(page, separator, right.id());
  DEUT_POINT("bwtree.split.before_cas");
  const Node* const expected = DEUT_OMITTED("bwtree.split_seen_head") ? pages_.Load(id) : page;
  if (DEUT_CAS_FAILS("bwtree.split.cas") || !Change(id, PageWord::Memory(expected), delta.get())) return Status::Ok();
  DEUT_IN_FLIGHT("dc.split");
  if (page->is_leaf()) {
    CountRecords(right.id(), right.page().live_records());
    CountRecords(id, page->live_records() - right.page().live_records());
  }
  right.Published();
  CountPublished(delta.release()->block_bytes());
  splits_.fetch_add(1, std::memory_order_relaxed);
  DEUT_POINT("bwtree.split.before_post");
  // A term below the fence leads to the right page for keys that stayed in the left one.
  const std::string_view posted = DEUT_OMITTED("bwtree.term_is_fence") ? page->key(cut - 1) : separator;
  return PostIndexTerm(static_cast<uint8_t>(page->level + 1), posted, right.id(), PostRetry::kUntilPosted);
}

Status BwTree::ReplaceAndSplitIfLarge(PageId id, const Node* expected, Owned<BasePage> page, bool* won) {
  DEUT_POINT("bwtree.update.before_forced_cas");
  if (!IsLarge(*page) || !MayRestructure()) {
    *won = !DEUT_CAS_FAILS("bwtree.forced_consolidate.cas") && ReplaceByBase(id, expected, std::move(page));
    return Status::Ok();
  }
  if (id == root_) return SplitRoot(expected, *page, won);
  const size_t cut = CutOf(*page);
  const std::string_view separator = SeparatorAt(*page, cut);
  const Fence& fence = *page->fence;
  UnpublishedPage right(*this, BuildHalf(*page, cut, page->count(), {separator, fence.high_key(), fence.sibling}));
  if (right.id() == kNoPage) return NoPageId();
  Owned<BasePage> left = BuildHalf(*page, 0, cut, {page->low(), separator, right.id()});
  left->SetRestructured(true);
  if (DEUT_CAS_FAILS("bwtree.forced_split.cas") || !Change(id, PageWord::Memory(expected), left.get()))
    return Status::Ok();
  DEUT_IN_FLIGHT("dc.split");
  *won = true;
  if (page->is_leaf()) {
    CountRecords(right.id(), right.page().live_records());
    CountRecords(id, left->live_records());
  }
  Retire(expected);
  right.Published();
  CountPublished(left.release()->block_bytes());
  splits_.fetch_add(1, std::memory_order_relaxed);
  DEUT_POINT("bwtree.forced_split.before_post");
  return PostIndexTerm(static_cast<uint8_t>(page->level + 1), separator, right.id(), PostRetry::kUntilPosted);
}

Status BwTree::SplitRoot(const Node* expected, const BasePage& page, bool* won) {
  DEUT_IN_FLIGHT("dc.root_change");
  DEUT_CHECK(!page.fence->bounded());  // the halves and the new root get no upper bound either
  const size_t cut = CutOf(page);
  const std::string_view separator = SeparatorAt(page, cut);
  UnpublishedPage right(*this, BuildHalf(page, cut, page.count(), {separator, {}, kNoPage}));
  if (right.id() == kNoPage) return NoPageId();
  UnpublishedPage left(*this, BuildHalf(page, 0, cut, {page.low(), separator, right.id()}));
  if (left.id() == kNoPage) return NoPageId();

  BasePage::Content children;
  PageEntry child;
  child.child = left.id();
  children.Add(child);
  child.data = separator.data();
  child.key_bytes = static_cast<uint16_t>(separator.size());
  child.child = right.id();
  children.Add(child);
  Owned<BasePage> root =
      BasePage::Build(static_cast<uint8_t>(page.level + 1), BasePage::Bounds{}, Timestamp(), children);
  DEUT_POINT("bwtree.split_root.before_cas");
  if (DEUT_CAS_FAILS("bwtree.split_root.cas") || !Change(root_, PageWord::Memory(expected), root.get()))
    return Status::Ok();
  *won = true;
  if (page.is_leaf()) {
    CountRecords(root_, 0);
    CountRecords(right.id(), right.page().live_records());
    CountRecords(left.id(), left.page().live_records());
  }
  Retire(expected);
  right.Published();
  left.Published();
  CountPublished(root.release()->block_bytes());
  splits_.fetch_add(1, std::memory_order_relaxed);
  return Status::Ok();
}

Status BwTree::PostIndexTerm(uint8_t level, std::string_view separator, PageId child, PostRetry retry) {
  Owned<IndexTermDelta> term;
  do {
    const PageView parent = Descend(level, Target(separator, Side::kAt));
    if (HasTerm(parent.head(), separator)) return Status::Ok();
    // The child was merged away meanwhile. Either the parent lost the term before it was read, or this thread loses
    // below (merge.cc).
    const Node* const head = pages_.Load(child);
    if (head != nullptr && IsRemoved(head) && DEUT_STEP("merge.term_stays_away")) return Status::Ok();
    if (term == nullptr) term = IndexTermDelta::New(separator, child);
    term->LinkTo(parent.head());
    DEUT_POINT("bwtree.post.before_cas");
    if (!DEUT_CAS_FAILS("bwtree.post.cas") && Change(parent.id, parent.word, term.get())) {
      const IndexTermDelta* const installed = term.release();
      CountPublished(installed->block_bytes());
      if (retry == PostRetry::kOnce) helped_splits_.fetch_add(1, std::memory_order_relaxed);
      return NeedsConsolidation(installed) ? Consolidate(parent.id, installed) : Status::Ok();
    }
  } while (retry == PostRetry::kUntilPosted);
  return Status::Ok();
}

}  // namespace deut::dc
