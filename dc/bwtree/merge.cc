// Merging a small page with its left neighbour, under the same parent. One thread at a time begins merges; any thread
// may complete one.
//
// States of the page that is merged away (R; L: its left neighbour, P: their parent), and the steps between them.
// Each step is one compare-and-swap:
//   removed    R's head -> RemoveDelta on it. From here on nothing is put on R. Its records are still there.
//   unlinked   P's head -> base page without R's term. No thread posts the term again. A poster reads R after it has
//              loaded P's head, and posts nothing if R is removed. If it read R before the removal, P has changed and
//              it loses.
//   absorbed   L's head -> base page of both, with R's fence. From here on R's records belong to L.
//   retired    by the thread that began. It makes P dirty again. R's chain, image and id are freed once no guard sees
//              them.
//   undone     from removed, if P was split so that R is the first page of its right half. R's key then states where
//              that half begins, so its term cannot be removed. R's head -> base page with the same content. Only
//              this case is undone, and in this case the term is never removed afterwards. So undone and unlinked
//              exclude each other.
// A thread that meets R removed (descend, walk, flush) takes the remaining steps and starts over: no thread waits for
// the one that began.
// Why L is the right page in `absorbed`: its fence names R. It does so only until L has absorbed R, because no id is
// reused inside a guard.
// Why L is in memory until it has absorbed R: it was when R was removed, and only the merging thread evicts pages,
// which is busy with this merge. A thread that comes late may find L on storage; then the merge is done.
// Rule X1: the new page gets the larger of both flat timestamps. Either that is below the consolidation timestamp, or
// both are equal. So every update at or below it was already applied to its page, and a later update with such a
// timestamp is a duplicate.
// A checkpoint never sees a merge half done: a merge begins only while the SMO gate is open, and ends inside
// the guard in which it began (smo_gate.h). P is written after L (page_flusher.h): to ensure this, P is made
// dirty after L has changed.
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/consolidate.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

// Two pages are merged if their sum is at most limit / kMergeLimitDivisor. That is far enough below the limit that the
// result is not split again at once.
constexpr size_t kMergeLimitDivisor = 2;
// A page that has shrunk to limit / kSmallPageDivisor may be worth a search for a neighbour.
constexpr size_t kSmallPageDivisor = 4;
// A page of a table with compression is assumed to have at most this many times the bytes that it has on storage.
constexpr size_t kAssumedCompression = 8;

// Size of the page's entries. The rest of a page (header, bounds) does not count: a merge does not carry it over.
size_t ContentBytes(const BasePage& page) { return page.run_bytes(0, page.count()); }

// A page that was merged away, kept until no guard sees it.
struct RemovedPage {
  MappingTable& pages;
  SegmentStore* images;
  ReclamationDomain& domain;
  PageId id;
  const Node* head;

  static void Free(void* object) {
    const std::unique_ptr<RemovedPage> page(static_cast<RemovedPage*>(object));
    ImageParts parts;
    DEUT_CHECK(!page->pages.TakeImage(page->id, &parts, page->domain));  // the merging thread holds the claim
    if (page->images != nullptr) {
      for (const PageAddress part : parts.all()) page->images->MarkDead(part);
    }
    FreeChain(const_cast<Node*>(page->head));
    page->pages.ReleaseImage(page->id);  // this frees the id, too
  }
};

}  // namespace

size_t BwTree::PageLimit(uint8_t level) const {
  return level == 0 ? options_.leaf_page_bytes : options_.inner_page_bytes;
}

size_t BwTree::ImageBytes(PageId id) const {
  size_t bytes = 0;
  const ImageParts image = pages_.Image(id);
  for (const PageAddress part : image.all()) bytes += part.length_bound();
  // Addresses do not tell the bytes that packed parts have unpacked. Too low an estimate loads pages in vain, at most
  // once each (NoteSizeOfEvicted). Too high a one only leaves a small page alone until it is loaded.
  return options_.compression == Compression::kNone ? bytes : bytes * kAssumedCompression;
}

void BwTree::CountIfSmall(size_t before, const BasePage& page) {
  const bool small = ContentBytes(page) <= PageLimit(page.level) / kSmallPageDivisor;
  if (page.bytes() >= before || !(small || IsMostlyTombstones(page))) return;
  small_pages_.fetch_add(1, std::memory_order_relaxed);
}

size_t BwTree::SizeOf(PageId id, PageWord word) const {
  const Node* const head = word.head();
  const size_t bytes = head == nullptr ? 0 : head->delta_bytes;
  if ((head == nullptr || IsStub(head)) && pages_.large(id)) return bytes + PageLimit(/*level=*/0);
  return bytes + (head != nullptr && !IsStub(head) ? ContentBytes(*head->base) : ImageBytes(id));
}

// Without the mark, each search for small pages would load the pages of which much was saved by compression, and find
// each time that they are large.
void BwTree::NoteSizeOfEvicted(PageId id, const BasePage& page) {
  if (options_.compression == Compression::kNone) return;
  pages_.NoteLarge(id, ContentBytes(page) > PageLimit(/*level=*/0) / kSmallPageDivisor);
}

void BwTree::MergePages(uint8_t level, Walk* walk, MergeReport* report) {
  const ReclamationDomain::Guard guard(domain_);
  if (pages_.Load(root_)->level <= level) {
    walk->complete = true;
    return;
  }
  const PageView parent = Descend(static_cast<uint8_t>(level + 1), Target(walk->high, Side::kBelow));
  const Owned<BasePage> terms = BuildConsolidated(parent.head());
  // From right to left, so that a page may absorb one neighbour after the other.
  size_t end = walk->high.empty() ? terms->count() : terms->LowerBound(walk->high);
  for (size_t i = end; i > 0; --i) {
    if (level == 0) ConsolidateIfMostlyTombstones(terms->child(i - 1), terms->key(i - 1), report);
    if (i == end) continue;
    if (Merge(terms->child(i - 1), terms->child(i), terms->key(i - 1), terms->key(i), report)) ++report->merged;
  }
  DEUT_DCHECK(walk->high.empty() || terms->low() < walk->high);  // each call moves the walk
  walk->high.assign(terms->low());
  walk->complete = terms->low().empty();
}

void BwTree::ConsolidateIfMostlyTombstones(PageId id, std::string_view key, MergeReport* report) {
  const Node* const head = pages_.Load(id);
  if (head == nullptr || IsStub(head)) {
    if (pages_.sparse(id)) report->to_load.emplace_back(key);
    return;
  }
  const bool sparse = pages_.TestAndClearSparse(id);
  // Deltas on a small page may hold its remaining records, or delete its last ones.
  const bool unsure = head->chain_length != 0 && head->base_bytes <= PageLimit(/*level=*/0) / kMergeLimitDivisor;
  if (IsRemoved(head) || !(sparse || unsure || IsMostlyTombstones(*head->base))) return;
  // The status is ignored: the page only shrinks.
  (void)Consolidate(id, head);
  const Node* const now = pages_.Load(id);
  report->postponed |= now != nullptr && IsMostlyTombstones(*now->base);
}

bool BwTree::Merge(PageId left, PageId right, std::string_view left_key, std::string_view right_key,
                   MergeReport* report) {
  const PageWord left_word = pages_.LoadWord(left);
  const PageWord right_word = pages_.LoadWord(right);
  const Node* const left_head = left_word.head();
  const Node* const head = right_word.head();
  const uint8_t level = head != nullptr ? head->level : 0;
  if (SizeOf(left, left_word) + SizeOf(right, right_word) > PageLimit(level) / kMergeLimitDivisor) return false;
  // Both leaves have to be in memory.
  const bool has_left = left_head != nullptr && !IsStub(left_head);
  const bool has_right = head != nullptr && !IsStub(head);
  if (!has_left) report->to_load.emplace_back(left_key);
  if (!has_right) report->to_load.emplace_back(right_key);
  if (!has_left || !has_right) return false;
  // Set before the checks below, so that each of their refusals is retried later. It stays set after a success: the
  // larger page may be merged again.
  report->postponed = true;
  if (!MayRestructure() || IsRemoved(left_head) || IsRemoved(head)) return false;
  if (left_head->fence->sibling != right) return false;  // the left page was split; the next pass finds its right half
  // Siblings that come from images on disk were compared (restore.cc, page_load.cc), so these pages join. If they did
  // not, the merge would lose keys: they stay as they are then.
  if (left_head->fence->high_key() != head->base->low() || head->fence->sibling == right) return false;
  const Timestamp left_flat = left_head->base->flat();
  const Timestamp flat = head->base->flat();
  if (left_flat != flat && DEUT_STEP("X1.merge_below_bound") &&
      std::max(left_flat, flat).value >= consolidation_timestamp_.load(std::memory_order_acquire)) {
    return false;
  }
  // No flusher may be writing a page whose id is about to be freed.
  if (!pages_.ClaimImage(right)) return false;
  Owned<RemoveDelta> removed = RemoveDelta::New(head);
  DEUT_POINT("bwtree.merge.before_remove");
  if (DEUT_CAS_FAILS("bwtree.remove.cas") || !pages_.Replace(right, head, removed.get())) {
    pages_.ReleaseImage(right);
    return false;
  }
  DEUT_IN_FLIGHT("dc.merge");
  CountPublished(RemoveDelta::block_bytes());
  const Node* const page = removed.release();
  FinishMerge(right, page);
  if (pages_.Load(right) != page) {  // undone
    pages_.ReleaseImage(right);
    return false;
  }
  // A page that still led to `right` would lead to a freed id soon.
  const Node* const left_now = pages_.Load(left);
  DEUT_CHECK(left_now == nullptr || left_now->fence->sibling != right);
  MarkParentDirty(static_cast<uint8_t>(page->level + 1), right_key);
  const size_t bytes = ChainBytes(page);
  bytes_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  domain_.Retire(new RemovedPage{pages_, images_, domain_, right, page}, RemovedPage::Free, bytes);
  merges_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void BwTree::FinishMerge(PageId id, const Node* removed) {
  if (Unlink(id, removed)) Absorb(id, removed);
}

bool BwTree::Unlink(PageId id, const Node* removed) {
  const std::string_view key = removed->base->low();
  for (;;) {
    const PageView parent = Descend(static_cast<uint8_t>(removed->level + 1), Target(key, Side::kAt));
    if (pages_.Load(id) != removed) return false;  // undone
    bool first = false;
    if (ChildAt(parent.head(), key, &first) != id) return true;
    if (first) {
      DEUT_POINT("bwtree.merge.before_undo");
      (void)ReplaceByBase(id, removed, BuildConsolidated(removed->next));
      return false;
    }
    Owned<BasePage> page = BuildWithoutTerm(parent.head(), key);
    DEUT_POINT("bwtree.merge.before_unlink");
    if (!DEUT_CAS_FAILS("bwtree.unlink.cas") && ReplaceByBase(parent.id, parent.head(), std::move(page))) return true;
  }
}

void BwTree::Absorb(PageId id, const Node* removed) {
  const Target target(removed->base->low(), Side::kBelow);
  for (;;) {
    const PageView left = Descend(removed->level, target);
    // Another thread was first. If the page was evicted, that holds too: it stays in memory until it has absorbed its
    // neighbour.
    if (!left.loaded() || left.head()->fence->sibling != id) return;
    const Timestamp bound(consolidation_timestamp_.load(std::memory_order_acquire));
    Owned<BasePage> page = BuildMerged(left.head(), removed, bound);
    DEUT_POINT("bwtree.merge.before_absorb");
    if (DEUT_CAS_FAILS("bwtree.absorb.cas") || !ReplaceByBase(left.id, left.head(), std::move(page))) continue;
    if (removed->is_leaf()) CountRecords(id, 0);
    return;
  }
}

void BwTree::MarkParentDirty(uint8_t level, std::string_view key) {
  if (DEUT_OMITTED("merge.parent_after_child")) return;
  for (;;) {
    const PageView parent = Descend(level, Target(key, Side::kAt));
    Owned<BasePage> page = BuildWithoutTerm(parent.head(), {});
    DEUT_POINT("bwtree.merge.before_touch");
    if (!DEUT_CAS_FAILS("bwtree.touch.cas") && ReplaceByBase(parent.id, parent.head(), std::move(page))) return;
  }
}

}  // namespace deut::dc
