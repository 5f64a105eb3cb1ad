// Put and delete. HOT PATH: no lock but the heap's, no system call; at most one allocation, except for stubs,
// consolidations and splits.
#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/leaf_view.h"
#include "dc/bwtree/page_state.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {
namespace {

// A page that may not be split now grows to at most this size: it must fit into one part. The deltas of a page that
// cannot be read may grow to the same size in memory, and its image to the same size on storage. When the page
// becomes readable again, all of it may have to be written as one part.
constexpr size_t kMaxUnsplitBytes = 16 << 20;
static_assert(3 * kMaxUnsplitBytes < kMaxPayloadBytes);
// A page that is loaded from any parts of an image fits into a base page, with its deltas in memory. The last of
// these is put on the page while the others are below their limit.
static_assert(ImageParts::kMax * kMaxContentBytes + kMaxUnsplitBytes + kMaxKeyBytes + kMaxValueBytes <
              BasePage::kMaxEntriesBytes);

// Deltas of a page lie together, and the heap sees few allocations. A new allocation reserves room for about as many
// deltas as the chain has now, and for at most the number that will come before the next consolidation. So pages that
// are updated once waste little.
constexpr size_t kMaxReservedDeltas = 7;
// A larger delta gets an allocation of its own.
constexpr size_t kMaxBytesWithRoom = 1024;

size_t RoomBehind(const Node* head, size_t data_bytes, size_t chain_limit) {
  const size_t length = size_t{head->chain_length} + 1;
  if (data_bytes > kMaxBytesWithRoom || length >= chain_limit) return 0;
  return std::min({length, kMaxReservedDeltas, chain_limit - length});
}

}  // namespace

Result<BwTree::Outcome> BwTree::Put(std::string_view key, std::string_view value, Version version) {
  return Update(NodeKind::kPut, key, value, version, LeafHint());
}

Result<BwTree::Outcome> BwTree::Put(std::string_view key, std::string_view value, Version version,
                                    const LeafHint& hint) {
  return Update(NodeKind::kPut, key, value, version, hint);
}

Result<BwTree::Outcome> BwTree::Delete(std::string_view key, Version version) {
  return Update(NodeKind::kTombstone, key, {}, version, LeafHint());
}

Result<BwTree::Outcome> BwTree::Delete(std::string_view key, Version version, const LeafHint& hint) {
  return Update(NodeKind::kTombstone, key, {}, version, hint);
}

// A hint that was found inside the current guard is as good as a search now. The page's id is not used
// again, and the page still begins at or below the key (N4). The loop below checks in any case whether the page still
// reaches up to the key and still exists. For a page on storage, PutOnStored compares the parent's head.
Result<BwTree::Outcome> BwTree::Update(NodeKind kind, std::string_view key, std::string_view value, Version version,
                                       const LeafHint& hint) {
  DEUT_CHECK(!key.empty() && key.size() <= kMaxKeyBytes && value.size() <= kMaxValueBytes);
  const Target target(key, Side::kAt);
  const ReclamationDomain::Guard guard(domain_);
  Owned<RecordDelta> delta;
  for (bool placed = hint.page_.id != kNoPage;; placed = false) {
    PageView page = placed ? hint.page_ : DescendToUpdate(target);
    if (placed) page.word = pages_.LoadWord(page.id);
    if (page.head() == nullptr) {
      if (page.parent == kNoPage) return Outcome::kNotLoaded;  // reached from its left neighbour
      if (delta == nullptr || delta->tenant) delta = RecordDelta::New(kind, key, value, version);
      if (PutOnStored(page, &delta)) return Outcome::kApplied;
      continue;
    }
    bool again = false;
    while (page.head() != nullptr && page.head()->is_leaf() &&
           (!IsRemoved(page.head()) || DEUT_OMITTED("merge.nothing_on_removed")) &&
           (!LiesLeft(*page.head(), target) || (again && DEUT_OMITTED("bwtree.fence_again")))) {
      again = true;
      const Node* const head = page.head();
      // Every page's flat timestamp is below C, so an update that comes in time need not look at the base. After a
      // new stream has set C back, a duplicate may get into the chain; readers of the chain skip it.
      if (version.timestamp.value < consolidation_timestamp_.load(std::memory_order_relaxed) &&
          IsDuplicate(version, head->base->flat())) {
        return Outcome::kDuplicate;
      }
      if (delta == nullptr ||
          (delta->tenant && delta->base != head->base && DEUT_STEP("bwtree.tenant_stays_in_its_chain"))) {
        const size_t more = RoomBehind(head, key.size() + value.size(), options_.leaf_chain_length);
        delta = RecordDelta::NewOn(head, kind, key, value, version, more);
      }
      delta->LinkTo(head);
      const bool blindly = hint.unreadable_ && IsStub(head) && head->delta_bytes < kMaxUnsplitBytes &&
                           ImageBytes(page.id) < kMaxUnsplitBytes;
      if (MustConsolidate(head) && !blindly) {
        if (IsStub(head)) return Outcome::kNotLoaded;
        if (ChainBytes(head) > kMaxUnsplitBytes && !MayRestructure()) return Outcome::kGateClosed;
        // The delta stays owned here: the new base contains a copy of it.
        bool won = false;
        DEUT_RETURN_IF_ERROR(ReplaceAndSplitIfLarge(page.id, head, BuildConsolidated(delta.get()), &won));
        if (won) return Outcome::kApplied;
      } else {
        DEUT_POINT("bwtree.update.before_cas");
        if (!DEUT_CAS_FAILS("bwtree.update.cas") && Change(page.id, page.word, delta.get())) {
          const RecordDelta* const installed = delta.release();
          if (!installed->tenant) CountPublished(installed->block_bytes());
          if (NeedsConsolidation(installed)) DEUT_RETURN_IF_ERROR(Consolidate(page.id, installed));
          return Outcome::kApplied;
        }
      }
      page.word = pages_.LoadWord(page.id);
    }
    // A stub that lies left of the key does not know its right neighbour.
    if (page.head() != nullptr && page.head()->is_leaf() && page.head()->fence->sibling == kUnknownPage &&
        LiesLeft(*page.head(), target)) {
      return Outcome::kNotLoaded;
    }
  }
}

// The page's bounds come from the parent. They are right for three reasons:
// - A page is evicted only when its parent has the terms of all its splits (evict.cc).
// - The parent is read again after the page's word was loaded, and still is the one that led here. So it has those
//   terms.
// - The page cannot be split without being loaded, and then its word never becomes this one again.
bool BwTree::PutOnStored(const PageView& page, Owned<RecordDelta>* owned) {
  DEUT_POINT("bwtree.blind.before_look_again");
  if (pages_.Load(page.parent) != page.parent_head && DEUT_STEP("bwtree.blind_look_again")) return false;
  RecordDelta* const delta = owned->get();
  const ChildBounds bounds = BoundsOfChild(page.parent_head, delta->key());
  DEUT_DCHECK(bounds.low <= delta->key());
  DEUT_DCHECK(!bounds.bounded || delta->key() < bounds.high);
  Owned<BasePage> stub = BasePage::BuildStub({bounds.low, bounds.high, bounds.bounded ? kUnknownPage : kNoPage});
  delta->LinkTo(stub.get());
  // The mark of a transient page is left over from the last time that the page was in memory. With it, these updates
  // would be the first to leave.
  pages_.MarkUsed(page.id);
  DEUT_POINT("bwtree.blind.before_cas");
  if (DEUT_CAS_FAILS("bwtree.blind.cas") || !Change(page.id, page.word, delta)) return false;
  CountPublished(stub.release()->block_bytes());
  CountPublished(owned->release()->block_bytes());
  return true;
}

}  // namespace deut::dc
