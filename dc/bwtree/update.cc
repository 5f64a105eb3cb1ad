// Put and delete. HOT PATH: at most one allocation, no lock, no system call.
#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"
#include "dc/bwtree/page_state.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {
namespace {

// A page that may not be split now grows up to here: it has to fit into one part. One that cannot be read takes as much in memory, while there is
// no more of it in its image: it may all have to be written as one part when it can be read again.
constexpr size_t kMaxUnsplitBytes = 16 << 20;
static_assert(3 * kMaxUnsplitBytes < kMaxPayloadBytes);

// A page's deltas lie together, and the heap sees few of them. Room is made for about as many as there are, and for no more than come before the page
// is consolidated: little is wasted on pages that are updated once.
constexpr size_t kMostRoom = 7;
// Larger ones are by themselves.
constexpr size_t kMaxRoomyBytes = 1024;

size_t RoomBehind(const Node* head, size_t data_bytes, size_t chain_limit) {
  const size_t length = size_t{head->chain_length} + 1;
  if (data_bytes > kMaxRoomyBytes || length >= chain_limit) return 0;
  return std::min({length, kMostRoom, chain_limit - length});
}

}  // namespace

Result<BwTree::Outcome> BwTree::Put(std::string_view key, std::string_view value, Version version) {
  return Update(NodeKind::kPut, key, value, version, Place());
}

Result<BwTree::Outcome> BwTree::Put(std::string_view key, std::string_view value, Version version, const Place& place) {
  return Update(NodeKind::kPut, key, value, version, place);
}

Result<BwTree::Outcome> BwTree::Delete(std::string_view key, Version version) {
  return Update(NodeKind::kTombstone, key, {}, version, Place());
}

Result<BwTree::Outcome> BwTree::Delete(std::string_view key, Version version, const Place& place) {
  return Update(NodeKind::kTombstone, key, {}, version, place);
}

// A place that was found inside the guard that is still held is as good as one that is found now: the page's id is not used again, the page still
// begins at or below the key (N4), and whether it still reaches up to it, or is there at all, is looked at below in any case. Of a page on storage
// the parent's head is what PutOnStored compares.
Result<BwTree::Outcome> BwTree::Update(NodeKind kind, std::string_view key, std::string_view value, Version version,
                                       const Place& place) {
  DEUT_CHECK(!key.empty() && key.size() <= kMaxKeyBytes && value.size() <= kMaxValueBytes);
  const Target target(key, Side::kAt);
  const ReclamationDomain::Guard guard(domain_);
  Owned<RecordDelta> delta;
  for (bool placed = place.page_.id != kNoPage;; placed = false) {
    PageView page = placed ? place.page_ : Descend(/*level=*/0, target);
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
      // No page's flat timestamp reaches C, so the base need not be looked at for what comes in time. After a new stream has set C back
      // a duplicate may get into the chain; it is passed over there.
      if (version.timestamp.value < consolidation_timestamp_.load(std::memory_order_relaxed) &&
          IsDuplicate(version, head->base->flat())) {
        return Outcome::kDuplicate;
      }
      if (delta == nullptr ||
          (delta->tenant && delta->base != head->base && !DEUT_OMITTED("bwtree.tenant_stays_in_its_chain"))) {
        const size_t more = RoomBehind(head, key.size() + value.size(), options_.leaf_chain_length);
        delta = RecordDelta::NewOn(head, kind, key, value, version, more);
      }
      delta->LinkTo(head);
      const bool blindly = place.unreadable_ && IsStub(head) && head->delta_bytes < kMaxUnsplitBytes &&
                           ImageBytes(page.id) < kMaxUnsplitBytes;
      if (MustConsolidate(head) && !blindly) {
        if (IsStub(head)) return Outcome::kNotLoaded;
        if (ChainBytes(head) > kMaxUnsplitBytes && !MayRestructure()) return Outcome::kHeld;
        // The delta stays ours: it goes into the new base by value.
        bool won = false;
        DEUT_RETURN_IF_ERROR(ReplaceByHalves(page.id, head, BuildConsolidated(delta.get()), &won));
        if (won) return Outcome::kApplied;
      } else {
        DEUT_POINT("bwtree.update.before_cas");
        if (!DEUT_CAS_FAILS("bwtree.update.cas") && pages_.Replace(page.id, head, delta.get())) {
          const RecordDelta* const installed = delta.release();
          if (!installed->tenant) CountPublished(installed->allocated_bytes());
          if (NeedsConsolidation(installed)) DEUT_RETURN_IF_ERROR(Consolidate(page.id, installed));
          return Outcome::kApplied;
        }
      }
      page.word = pages_.LoadWord(page.id);
    }
    // A stub that lies left of the key does not know its neighbour.
    if (page.head() != nullptr && page.head()->is_leaf() && page.head()->fence->sibling == kUnknownPage &&
        LiesLeft(*page.head(), target)) {
      return Outcome::kNotLoaded;
    }
  }
}

// The page's bounds come from the parent. They are right because
//   - a page is swapped out only when the terms of all its splits are in its parent (evict.cc);
//   - the parent, looked at again after the page's word was loaded, is what led here: so it has those terms;
//   - the page cannot be split without being loaded, and then its word never is this one again.
bool BwTree::PutOnStored(const PageView& page, Owned<RecordDelta>* owned) {
  DEUT_POINT("bwtree.blind.before_look_again");
  if (pages_.Load(page.parent) != page.parent_head && !DEUT_OMITTED("bwtree.blind_look_again")) return false;
  RecordDelta* const delta = owned->get();
  const ChildBounds bounds = BoundsOfChild(page.parent_head, delta->key());
  Owned<BasePage> stub = BasePage::BuildStub({bounds.low, bounds.high, bounds.bounded ? kUnknownPage : kNoPage});
  delta->LinkTo(stub.get());
  DEUT_POINT("bwtree.blind.before_cas");
  if (DEUT_CAS_FAILS("bwtree.blind.cas") || !pages_.Replace(page.id, page.word, PageWord::Memory(delta))) return false;
  CountPublished(stub.release()->bytes());
  CountPublished(owned->release()->allocated_bytes());
  return true;
}

}  // namespace deut::dc
