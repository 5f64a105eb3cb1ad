#include "dc/bwtree/page_load.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/consolidate.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

Status Named(const Status& status, PageId id, PageAddress address) {
  return status.ok() ? status
                     : Status(status.code(), Concat("page ", id.value, " in segment ", address.segment(), " at ",
                                                    address.offset(), ": ", status.message()));
}

// Links `deltas`, newest first, onto `head`. Returns the new head.
const Node* LinkAll(std::vector<Owned<RecordDelta>>* deltas, const Node* head) {
  for (size_t i = deltas->size(); i > 0; --i) {
    (*deltas)[i - 1]->LinkTo(head);
    head = (*deltas)[i - 1].get();
  }
  return head;
}

// A chain that no other thread can see yet.
class Chain {
 public:
  explicit Chain(Owned<BasePage> base) : head_(base.release()) {}
  ~Chain() { FreeChain(const_cast<Node*>(head_)); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  // Puts copies of the stub's deltas and marks on top, in their order.
  void CopyFromStub(const Node* stub_head) {
    absl::InlinedVector<const Node*, 32> nodes;
    for (const Node* node = stub_head; node->kind != NodeKind::kBase; node = node->next) nodes.push_back(node);
    for (size_t i = nodes.size(); i > 0; --i) {
      if (nodes[i - 1]->kind == NodeKind::kFlushMark) {
        const StoredState& state = static_cast<const FlushMark*>(nodes[i - 1])->state;
        Owned<FlushMark> mark = FlushMark::New(state.serial);
        mark->state.in.store(state.in.load(std::memory_order_acquire), std::memory_order_relaxed);
        Put(std::move(mark));
      } else {
        // Splits, merges and consolidations leave stubs alone.
        DEUT_DCHECK(IsRecord(nodes[i - 1]));
        const auto* delta = static_cast<const RecordDelta*>(nodes[i - 1]);
        Put(RecordDelta::New(delta->kind, delta->key(), delta->value(), delta->version()));
      }
    }
  }
  const Node* head() const { return head_; }
  const Node* Release() { return std::exchange(head_, nullptr); }

 private:
  template <typename T>
  void Put(Owned<T> node) {
    node->LinkTo(head_);
    head_ = node.release();
  }

  const Node* head_;
};

}  // namespace

Status PageLoad::ReadImage(SegmentStore& store) {
  PartBuffer buffer;
  return BuildImage([&](size_t i) -> Result<PartView> {
    DEUT_RETURN_IF_ERROR(store.Read(parts[i], id, &buffer));
    return buffer.part();
  });
}

Status PageLoad::BuildImage(absl::FunctionRef<Result<PartView>(size_t i)> part) {
  const PageAddress base = parts[parts.count() - 1];
  const Result<PartView> base_part = part(parts.count() - 1);
  DEUT_RETURN_IF_ERROR(Named(base_part.status(), id, base));
  if (base_part->header.kind != PartKind::kBase)
    return Named(DEUT_ERROR(kCorruption, "a base part is wanted"), id, base);
  auto decoded = DecodeBaseImage(base_part->payload);
  if (!decoded.ok()) return Named(decoded.status(), id, base);
  page = std::move(*decoded);
  if (page->fence->sibling == id) return Named(DEUT_ERROR(kCorruption, "the page is its own right sibling"), id, base);
  table = base_part->header.table;
  compression = base_part->compression;
  if (base_part->header.level != page->level) {
    return Named(DEUT_ERROR(kCorruption, "the part says that the page is of another level"), id, base);
  }
  if (parts.count() > 1 && !page->is_leaf()) {
    return Named(DEUT_ERROR(kCorruption, "an inner page has no delta parts"), id, base);
  }
  std::vector<Owned<RecordDelta>> deltas;
  for (size_t i = 0; i + 1 < parts.count(); ++i) {
    const Result<PartView> delta_part = part(i);
    DEUT_RETURN_IF_ERROR(Named(delta_part.status(), id, parts[i]));
    const PartView& view = *delta_part;
    if (view.header.kind != PartKind::kDelta || view.header.previous != parts[i + 1] || view.header.table != table ||
        view.header.level != page->level) {
      return Named(DEUT_ERROR(kCorruption, "the delta part is not the next one of this image"), id, parts[i]);
    }
    if (compression == Compression::kNone) compression = view.compression;
    auto decoded_deltas = DecodeDeltaImage(view.payload);
    if (!decoded_deltas.ok()) return Named(decoded_deltas.status(), id, parts[i]);
    for (Owned<RecordDelta>& delta : *decoded_deltas) {
      const std::string_view key = delta->key();
      if (key < page->low() || (page->fence->bounded() && key >= page->fence->high_key())) {
        return Named(DEUT_ERROR(kCorruption, "an update lies outside the page"), id, parts[i]);
      }
      deltas.push_back(std::move(delta));
    }
  }
  page->SetStored(/*serial=*/0, StoredIn::kBasePart);
  page->SetRemovals(StoredIn::kBasePart);
  if (deltas.empty()) return Status::Ok();
  // The page remembers which of its entries are in no base part: a delta part that replaces these must have them.
  const StoredIn in = DEUT_STEP("flush.loaded_marks") ? StoredIn::kDeltaPart : StoredIn::kBasePart;
  const Owned<FlushMark> written = FlushMark::New(/*serial=*/0);
  written->state.in.store(in, std::memory_order_relaxed);
  written->LinkTo(LinkAll(&deltas, page.get()));
  // No tombstone may be dropped here: updates that the image lacks may still be on their way (rule X1). The new page
  // gets its state from the mark.
  page = BuildConsolidated(written.get(), Timestamp());
  return Status::Ok();
}

bool BwTree::BeginLoad(const Target& target, PageLoad* load) {
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = Descend(/*level=*/0, target);
  if (page.loaded()) return false;
  load->id = page.id;
  load->parts = pages_.Image(page.id);
  // The page had an image when it was evicted or restored, and keeps one until it is freed.
  DEUT_CHECK(!load->parts.empty());
  return true;
}

// The bounds are known without the image: from the stub, or from the parent if its head has not changed since it led
// here (update.cc). If the head has changed, the page may have been split, written and evicted between the two loads,
// and the bounds that were read may be those from before.
BwTree::Agreement BwTree::CompareBounds(const BasePage& image, const PageView& page) const {
  const Fence& fence = *image.fence;
  if (page.head() != nullptr) {
    const Fence& known = *page.head()->fence;
    const bool same = page.head()->base->low() == image.low() && known.bounded() == fence.bounded() &&
                      known.high_key() == fence.high_key();
    return same ? Agreement::kAgrees : Agreement::kDiffers;
  }
  // A page that was reached from its left neighbour has a term by now: the page was evicted with its term posted
  // (evict.cc), after the parent was read.
  if (page.parent == kNoPage || pages_.Load(page.parent) != page.parent_head) return Agreement::kUnclear;
  // The low key may be any bytes. It has to be the one under which the parent names this page: the bounds of another
  // child would pass the comparison below, too.
  bool first = false;
  if (ChildAt(page.parent_head, image.low(), &first) != page.id) return Agreement::kDiffers;
  const ChildBounds known = BoundsOfChild(page.parent_head, image.low());
  const bool same = known.bounded == fence.bounded() && known.high == fence.high_key();
  return same ? Agreement::kAgrees : Agreement::kDiffers;
}

// The right neighbour is the page that the inner pages name for the page's high key. Its term stays while the page is
// on storage or a stub: only a merge into this page removes it. Such a merge finds the page loaded, and changes it
// before it can be evicted (merge.cc). So if the page's word is the same after the term was read, the term that was
// read is that of the neighbour.
BwTree::Agreement BwTree::CompareSibling(const BasePage& image, const PageView& page) {
  const Fence& fence = *image.fence;
  if (!fence.bounded()) return Agreement::kAgrees;  // no sibling (page_image.cc)
  const PageView parent = Descend(/*level=*/1, Target(fence.high_key(), Side::kAt));
  bool first = false;
  if (ChildAt(parent.head(), fence.high_key(), &first) == fence.sibling) return Agreement::kAgrees;
  return pages_.LoadWord(page.id) == page.word ? Agreement::kDiffers : Agreement::kUnclear;
}

// Each round that is not the last one is caused by another thread, which has changed the page or its parent.
Status BwTree::FinishLoad(const Target& target, PageLoad* load) {
  const ReclamationDomain::Guard guard(domain_);
  PageView page;
  const auto refuse = [&](std::string_view what) {
    // The base part states level, bounds and right neighbour.
    const PageAddress base = load->parts[load->parts.count() - 1];
    return DEUT_ERROR(kCorruption, "page ", page.id.value, ": its image in segment ", base.segment(), " at ",
                      base.offset(), " ", what);
  };
  for (Agreement agreement = Agreement::kUnclear; agreement == Agreement::kUnclear;) {
    page = Descend(/*level=*/0, target);
    if (page.id != load->id || page.loaded()) return Status::Ok();
    // The page's word was loaded above, before this comparison. In the other order, a load, a flush and an eviction in
    // between could give the page a newer image and word. The compare-and-swap would then install the older content.
    DEUT_POINT("bwtree.load.before_image_again");
    if (pages_.Image(page.id).newest() != load->parts.newest() && DEUT_STEP("bwtree.load_image_again")) {
      return Status::Ok();
    }
    if (load->table != table_) return refuse("is that of another table");
    if (!load->page->is_leaf()) return refuse("is that of an inner page, but the page is a leaf");
    agreement = CompareBounds(*load->page, page);
    if (agreement == Agreement::kDiffers) return refuse("has other bounds than its parent says");
    if (agreement == Agreement::kUnclear) continue;
    agreement = CompareSibling(*load->page, page);
    if (agreement == Agreement::kDiffers) return refuse("names another right neighbour than the inner pages say");
  }
  const Node* const stub = page.head();
  const uint32_t live = load->page->live_records();
  Chain chain(std::move(load->page));
  if (stub != nullptr) chain.CopyFromStub(stub);
  // Before the page can be seen. A point access that comes later makes a transient page a lasting one.
  pages_.MarkLoaded(page.id, /*transient=*/load->stay == PageStay::kTransient);
  pages_.NoteRead(page.id, load->stay == PageStay::kLasting);
  DEUT_POINT("bwtree.load.before_cas");
  // A flush may have ended since its mark was copied. The page that is installed says that its image lacks the deltas
  // below the mark, so it counts as dirty.
  if (DEUT_CAS_FAILS("bwtree.load.cas") || !Change(page.id, page.word, chain.head())) {
    return Status::Ok();
  }
  load->installed = true;
  if (load->stay == PageStay::kTransient && page.parent != kNoPage) {
    load->parent = page.parent;
    load->parent_high = page.parent_head->fence->high_key();
  }
  CountPublished(ChainBytes(chain.Release()));
  CountRecords(page.id, live);
  if (stub != nullptr) Retire(stub);
  return Status::Ok();
}

}  // namespace deut::dc
