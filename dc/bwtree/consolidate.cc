// Consolidation: a chain becomes one base page, because it is long, or because its memory is in the way. Rule X1 is
// kept here: this is the only place where a page drops tombstones and raises `flat`.
#include "dc/bwtree/consolidate.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

// The cost of a consolidation for a reader, in cache misses.
constexpr size_t kConsolidationWork = 64;

// Returns the new `flat` when the tombstones below `consolidation` are dropped, the latest of which is `dropped`.
Timestamp RaisedFlat(Timestamp flat, Timestamp dropped, Timestamp consolidation) {
  if (DEUT_OMITTED("X1.raise_flat")) return flat;
  if (DEUT_OMITTED("X1.flat_is_max_dropped") && dropped > Timestamp(0)) return std::max(flat, consolidation);
  return std::max(flat, dropped);
}

size_t NextTombstone(const BasePage& page, size_t begin, size_t end) {
  while (begin < end && !page.tombstone(begin)) ++begin;
  return begin;
}

// Copies to the new page where the image has it, as the chain's newest node knows it.
void InheritStored(const Node* head, BasePage* page) {
  if (const StoredState* state = StoredStateOf(head); state != nullptr) {
    page->SetStored(state->serial, state->in.load(std::memory_order_acquire));
  }
}

// The tombstones that a leaf drops.
struct Dropped {
  size_t count = 0;
  Timestamp newest;
  StoredIn stored_in = StoredIn::kBasePart;  // the image has all of them in such a part
};

// Adds the chain's content to `content`. The entries keep what they say of the image, or less.
Dropped Collect(const Node* head, Timestamp consolidation, BasePage::Content* content) {
  Dropped dropped;
  if (!head->is_leaf()) {
    InnerTerms(head).AppendTo(content);
    return dropped;
  }
  const BasePage& old = *head->base;
  LeafMerge merge(head, {}, {});
  const StoredIn at_most = DEUT_STEP("flush.marks_stay") ? merge.base_stored_in() : StoredIn::kBasePart;
  for (;;) {
    size_t begin;
    size_t end;
    merge.NextRun(&begin, &end);
    if (old.tombstones() != 0) end = std::min(end, NextTombstone(old, begin, end));
    content->AddRun(old, begin, end, at_most);
    merge.SkipRun(end - begin);
    PageEntry entry;
    if (!merge.Next(&entry)) return dropped;
    if (entry.tombstone && entry.version.timestamp < consolidation) {
      ++dropped.count;
      dropped.newest = std::max(dropped.newest, entry.version.timestamp);
      dropped.stored_in = std::max(dropped.stored_in, entry.stored_in);
    } else {
      content->Add(entry);
    }
  }
}

BasePage::Bounds BoundsOf(const Node* head) {
  const Fence& fence = DEUT_OMITTED("bwtree.consolidate_fence") ? *head->base->fence : *head->fence;
  return {head->base->low(), fence.high_key(), fence.sibling};
}

}  // namespace

Owned<BasePage> BuildConsolidated(const Node* head, Timestamp consolidation) {
  DEUT_CHECK(!IsStub(head));
  BasePage::Content content;
  const Dropped dropped = Collect(head, consolidation, &content);
  // A flush that ends here has marked the chain's nodes, and what was collected claims less.
  DEUT_POINT("bwtree.consolidate.collected");
  const Timestamp flat = RaisedFlat(head->base->flat(), dropped.newest, consolidation);
  Owned<BasePage> page = BasePage::Build(head->level, BoundsOf(head), flat, content);
  page->SetRestructured(IsRestructured(head));
  // If many tombstones were dropped, the page counts as dirty although its image is equivalent, and is written as a
  // whole. Else the image would keep the deleted records for ever.
  if (dropped.count > page->count() / 2) return page;
  InheritStored(head, page.get());
  page->SetRemovals(std::max(RemovalsOf(head), dropped.stored_in));
  return page;
}

Owned<BasePage> BuildMerged(const Node* left, const Node* right, Timestamp consolidation) {
  DEUT_CHECK(!IsStub(left) && !IsStub(right) && left->level == right->level);
  // Every step that moves a fence puts it where the right neighbour begins (N4).
  DEUT_CHECK(left->fence->high_key() == right->base->low());
  BasePage::Content content;
  const Dropped of_left = Collect(left, consolidation, &content);
  const Dropped of_right = Collect(right, consolidation, &content);
  Timestamp flat = RaisedFlat(left->base->flat(), of_left.newest, consolidation);
  if (DEUT_STEP("X1.merge_takes_larger_flat")) {
    flat = std::max(flat, RaisedFlat(right->base->flat(), of_right.newest, consolidation));
  }
  const BasePage::Bounds bounds{left->base->low(), right->fence->high_key(), right->fence->sibling};
  Owned<BasePage> page = BasePage::Build(left->level, bounds, flat, content);
  page->SetRestructured(true);
  return page;
}

Owned<BasePage> BuildWithoutTerm(const Node* head, std::string_view separator) {
  const Owned<BasePage> all = BuildConsolidated(head, Timestamp());
  BasePage::Content content;
  const size_t at = all->LowerBound(separator);
  content.AddRun(*all, 0, at);
  const bool there = !separator.empty() && at != 0 && at != all->count() && all->key(at) == separator;
  content.AddRun(*all, there ? at + 1 : at, all->count());
  Owned<BasePage> page = BasePage::Build(head->level, BoundsOf(head), all->flat(), content);
  page->SetRestructured(true);
  return page;
}

bool BwTree::NeedsConsolidation(const Node* head) const {
  if (!head->is_leaf()) return head->chain_length >= options_.inner_chain_length;
  if (head->chain_length < options_.leaf_chain_length && head->delta_bytes < options_.leaf_page_bytes) return false;
  // Checked last, because the base is not in the cache. A stub would have to be loaded; the page evictor writes its
  // deltas instead.
  return !IsStub(head);
}

bool BwTree::MustConsolidate(const Node* head) const {
  return head->chain_length >= kForcedLimitFactor * options_.leaf_chain_length ||
         head->delta_bytes > kForcedLimitFactor * options_.leaf_page_bytes ||
         (head->base_bytes > kForcedLimitFactor * options_.leaf_page_bytes && head->base->count() > 1);
}

Owned<BasePage> BwTree::BuildConsolidated(const Node* head) const {
  // Every update of this page below C was in its chain before C was set. If the compare-and-swap that follows finds
  // `head` still in place, the new page contains all of them.
  return dc::BuildConsolidated(head, Timestamp(consolidation_timestamp_.load(std::memory_order_acquire)));
}

bool BwTree::ReplaceByBase(PageId id, const Node* expected, Owned<BasePage> page) {
  DEUT_DCHECK(page->level == expected->level);
  DEUT_DCHECK(page->low() == expected->base->low());  // N4
  // Rule X1: a flat timestamp that falls would let updates through that it has declared to be duplicates.
  DEUT_DCHECK(page->flat() >= expected->base->flat());
  // A consolidation that has dropped many tombstones makes a clean page dirty; so do the steps of a merge.
  if (!Change(id, PageWord::Memory(expected), page.get())) return false;
  const BasePage* const installed = page.release();
  CountPublished(installed->block_bytes());
  consolidations_.fetch_add(1, std::memory_order_relaxed);
  if (installed->is_leaf()) CountRecords(id, installed->live_records());
  if (id != root_) CountIfSmall(expected->base_bytes, *installed);
  Retire(expected);
  return true;
}

Status BwTree::Consolidate(PageId id, const Node* head) {
  Owned<BasePage> page = BuildConsolidated(head);
  const BasePage* const installed = page.get();
  DEUT_POINT("bwtree.consolidate.before_cas");
  if (DEUT_CAS_FAILS("bwtree.consolidate.cas") || !ReplaceByBase(id, head, std::move(page))) {
    lost_consolidations_.fetch_add(1, std::memory_order_relaxed);
    return Status::Ok();
  }
  return SplitIfLarge(id, installed);
}

bool BwTree::Move(const VisitedPage& page) {
  DEUT_DCHECK(domain_.guard_held());
  const Node* const head = page.word.head();
  if (head == nullptr || IsStub(head) || IsRemoved(head)) return false;
  Owned<BasePage> moved = BuildConsolidated(head);
  const BasePage* const installed = moved.get();
  DEUT_POINT("bwtree.move.before_cas");
  if (DEUT_CAS_FAILS("bwtree.move.cas") || !ReplaceByBase(page.id, head, std::move(moved))) return false;
  // The status is ignored: an update that needs more pages will get the same error.
  (void)SplitIfLarge(page.id, installed);
  return true;
}

void BwTree::ConsolidateForReaders(const PageView& page, size_t work) {
  DEUT_DCHECK(!IsStub(page.head()));
  static thread_local size_t spent = 0;
  spent += work;
  if (spent < kConsolidationWork) return;
  spent = 0;
  // The status is ignored: an update that needs more pages will get the same error.
  (void)Consolidate(page.id, page.head());
}

void BwTree::DropTombstones(const PageView& page, size_t dead, Timestamp newest, size_t live) {
  if (dead <= live || newest.value >= consolidation_timestamp_.load(std::memory_order_acquire)) return;
  // The status is ignored: the page only shrinks.
  (void)Consolidate(page.id, page.head());
}

}  // namespace deut::dc
