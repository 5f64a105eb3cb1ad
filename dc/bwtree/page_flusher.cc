#include "dc/bwtree/page_flusher.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/consolidate.h"
#include "dc/bwtree/delta_choice.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

// The last serial of any flusher, so that no serial is ever used twice.
std::atomic<uint64_t> last_serial{0};

constexpr int kMaxMarkAttempts = 8;
// Largest number of pages that may wait for one another. Neighbours that were never written make long chains.
constexpr size_t kMaxPendingPages = 4096;

// True if the page has this image, or was freed and has none. REQUIRES: a guard.
bool HasImageOrNone(const MappingTable& pages, PageId id, const ImageParts& image) {
  const ImageParts now = pages.Image(id);
  return now.empty() || now.newest() == image.newest();
}

}  // namespace

Result<std::unique_ptr<PageFlusher>> PageFlusher::Create(const BwTreeEnvironment& environment, SegmentStore& store,
                                                         TreeSource& trees) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<SegmentAppender> base, store.NewAppender(SegmentKind::kBase));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<SegmentAppender> delta, store.NewAppender(SegmentKind::kDelta));
  return std::unique_ptr<PageFlusher>(new PageFlusher(environment, std::move(base), std::move(delta), store, trees));
}

PageFlusher::PageFlusher(const BwTreeEnvironment& environment, std::unique_ptr<SegmentAppender> base,
                         std::unique_ptr<SegmentAppender> delta, SegmentStore& store, TreeSource& trees)
    : full_bytes_(std::min<uint64_t>(kFullBytes, store.segment_bytes())),
      pages_(environment.pages),
      domain_(environment.domain),
      consolidation_timestamp_(environment.consolidation_timestamp),
      store_(store),
      trees_(trees),
      flushed_(environment.flushed),
      base_(std::move(base)),
      delta_(std::move(delta)),
      short_of_space_(store.IsShortOfSpace()) {}

PageFlusher::~PageFlusher() {
  for (const Pending& pending : pending_) pages_.ReleaseImage(pending.header.page);
}

void PageFlusher::SetSpaceUse(SpaceUse use) {
  base_->SetSpaceUse(use);
  delta_->SetSpaceUse(use);
}

PageFlusher::Added PageFlusher::Add(BwTree& tree, PageId id) {
  DEUT_DCHECK(domain_.guard_held());
  // Most pages that are added are clean: they cost no allocation.
  if (const Node* const head = pages_.Load(id); head == nullptr || IsClean(head)) return Added::kClean;
  std::vector<PageId> waiting{id};
  std::vector<PageId> first;
  bool whole = true;
  for (;;) {
    first.clear();
    const Added added = AddIfReady(tree, waiting.back(), &first);
    if (!first.empty()) {
      if (waiting.size() + first.size() > kMaxPendingPages) {
        if (DEUT_OMITTED("flush.end_of_chain")) return Added::kBusy;
        // The pages at the end of the chain are added now. So each retry finds a shorter chain, however many pages wait
        // for one another.
        waiting.clear();
        whole = false;
      }
      waiting.insert(waiting.end(), first.begin(), first.end());
      continue;
    }
    // If a page that another one needs cannot be added now, that other page has to wait as well.
    if (added == Added::kBusy || added == Added::kNotLoaded) return added;
    waiting.pop_back();
    if (waiting.empty()) return whole ? added : Added::kBusy;
  }
}

PageFlusher::Added PageFlusher::AddIfReady(BwTree& tree, PageId id, std::vector<PageId>* first) {
  if (adding_.contains(id)) return Added::kAdded;
  const Node* const seen = pages_.Load(id);
  if (seen == nullptr || IsClean(seen)) return Added::kClean;
  if (IsRemoved(seen)) {
    tree.FinishMerge(id, seen);
    return Added::kBusy;  // the page that named it names another one by now
  }
  // From here on no other flusher writes the page, so the image of this mark cannot replace that of a newer one.
  if (full() || !pages_.ClaimImage(id)) return Added::kBusy;
  const Added added = AddClaimed(tree, id, first);
  if (added != Added::kAdded) pages_.ReleaseImage(id);
  return added;
}

PageFlusher::Added PageFlusher::AddClaimed(BwTree& tree, PageId id, std::vector<PageId>* first) {
  // Rule X1: the bound is loaded before the page's head.
  const Timestamp consolidation(consolidation_timestamp_.load(std::memory_order_acquire));
  const Node* const head = pages_.Load(id);
  if (head == nullptr || IsClean(head)) return Added::kClean;
  // A merge holds the claim of the page that it removes.
  DEUT_CHECK(!IsRemoved(head));
  const Node* const mark = PlaceMark(tree, id, head);
  if (mark == nullptr) return Added::kBusy;
  if (!CollectPrerequisites(mark, first) || !first->empty()) return Added::kBusy;
  return Encode(tree, id, mark, consolidation);
}

const Node* PageFlusher::PlaceMark(BwTree& tree, PageId id, const Node* head) {
  for (int i = 0; i < kMaxMarkAttempts; ++i) {
    // The mark of a flush that was given up can be reused.
    if (head->kind == NodeKind::kFlushMark) return head;
    Owned<FlushMark> mark = FlushMark::New(last_serial.fetch_add(1, std::memory_order_relaxed) + 1);
    mark->LinkTo(head);
    DEUT_POINT("bwtree.mark.before_cas");
    if (!DEUT_CAS_FAILS("bwtree.mark.cas") && pages_.Replace(id, head, mark.get())) {
      tree.CountPublished(FlushMark::block_bytes());
      return mark.release();
    }
    head = pages_.Load(id);
    // The page is dirty and only this flusher writes it, so the evictor leaves it in memory.
    DEUT_CHECK(head != nullptr);
  }
  return nullptr;
}

bool PageFlusher::CollectPrerequisites(const Node* mark, std::vector<PageId>* first) const {
  if (DEUT_OMITTED("flush.child_first")) return true;
  const PageId sibling = mark->fence->sibling;
  if (mark->fence->bounded() && sibling != kUnknownPage && !pages_.HasImage(sibling) && !adding_.contains(sibling)) {
    first->push_back(sibling);
  }
  if (mark->is_leaf()) return true;
  const InnerTerms terms(mark);
  for (size_t i = 0; i < terms.count(); ++i) {
    const PageId child = terms.child(i);
    const Node* const head = pages_.Load(child);
    if (const auto adding = adding_.find(child); adding != adding_.end()) {
      if (IsRestructuredSince(head, adding->second) && DEUT_STEP("flush.child_as_encoded")) return false;
    } else if (!pages_.HasImage(child) || (head != nullptr && IsRestructured(head))) {
      first->push_back(child);
    }
  }
  return true;
}

bool PageFlusher::IsMostlyDeleted(PageId id, const Node* mark) const {
  const size_t records = IsStub(mark) ? pages_.records(id) : mark->base->count();
  size_t tombstones = 0;
  const Node* node = mark;
  for (; !IsWritten(node) && node->kind != NodeKind::kBase; node = node->next) {
    tombstones += node->kind == NodeKind::kTombstone ? 1 : 0;
  }
  if (!IsWritten(node)) tombstones += mark->base->tombstones();
  return tombstones > records / 2;
}

bool PageFlusher::IsReadAgain(PageId id, const Node* head) const {
  return pages_.read(id) && PartBytesInUnits(BaseImageBytes(*head->base)) <= kWrittenForARead;
}

DeltaChoice PageFlusher::ChoiceFor(const Node* head, const Pending& pending) const {
  const bool leaves_few = merges_parts_ && IsReadAgain(pending.header.page, head);
  return DeltaChoice(pending.old, PartBytesInUnits(BaseImageBytes(*head->base)), short_of_space_,
                     leaves_few ? kMaxDeltaPartsOfRead : kMaxDeltaParts);
}

bool PageFlusher::EncodeMergedDelta(const Node* head, const DeltaChoice& choice, uint64_t changed, Pending* pending) {
  const ImageParts& old = pending->old;
  // A tombstone that only the delta parts have is not in memory any more. They cannot be replaced from there.
  if (old.count() == 1 || (RemovalsOf(head) != StoredIn::kBasePart && DEUT_STEP("flush.removals_kept"))) return false;
  const size_t changed_end = payloads_.size();
  // None: the delta parts have only what newer versions in the base part supersede.
  const uint32_t records = EncodeDeltaImage(head, StoredIn::kDeltaPart, &payloads_);
  if (records == 0 || !choice.MergePays(changed, PartBytesInUnits(payloads_.size() - changed_end))) {
    payloads_.resize(changed_end);
    return false;
  }
  payloads_.erase(pending->begin, changed_end - pending->begin);
  pending->header.kind = PartKind::kDelta;
  pending->header.previous = old[old.count() - 1];
  pending->kept = 1;
  return true;
}

void PageFlusher::EncodeWhole(const Node* head, Timestamp consolidation, Pending* pending) {
  pending->header.kind = PartKind::kBase;
  pending->header.previous = PageAddress();
  pending->kept = 0;
  EncodeBaseImage(*BuildConsolidated(head, consolidation), &payloads_);
}

PageFlusher::Delta PageFlusher::EncodeDelta(const Node* mark, Pending* pending) {
  if (RemovalsOf(mark) == StoredIn::kNoPart && DEUT_STEP("flush.removals_whole")) return Delta::kNone;
  if (EncodeDeltaImage(mark, StoredIn::kNoPart, &payloads_) == 0) {
    payloads_.resize(pending->begin);
    return Delta::kUnneeded;
  }
  const ImageParts& old = pending->old;
  pending->header.kind = PartKind::kDelta;
  pending->header.previous = old.newest();
  pending->kept = old.count();
  if (IsStub(mark)) return old.count() < ImageParts::kMax ? Delta::kEncoded : Delta::kNone;
  const DeltaChoice choice = ChoiceFor(mark, *pending);
  const uint64_t changed = PartBytesInUnits(payloads_.size() - pending->begin);
  if (EncodeMergedDelta(mark, choice, changed, pending)) return Delta::kEncoded;
  return choice.AppendPays(changed) ? Delta::kEncoded : Delta::kNone;
}

PageFlusher::Pending PageFlusher::NewPending(const BwTree& tree, PageId id, const Node* head, uint64_t serial) const {
  Pending pending;
  pending.serial = serial;
  pending.begin = payloads_.size();
  pending.compression = tree.compression();
  pending.old = pages_.Image(id);
  pending.header.page = id;
  pending.header.table = tree.table();
  pending.header.level = head->level;
  return pending;
}

void PageFlusher::AddPending(Pending* pending) {
  pending->bytes = payloads_.size() - pending->begin;
  statistics_.bytes += pending->bytes;
  ++(pending->header.kind == PartKind::kBase ? statistics_.base_parts : statistics_.delta_parts);
  pending_.push_back(*pending);
  adding_.emplace(pending->header.page, pending->serial);
  DEUT_POINT("bwtree.flush.encoded");
}

PageFlusher::Added PageFlusher::Encode(BwTree& tree, PageId id, const Node* mark, Timestamp consolidation) {
  // This flusher alone has been able to register an image since it claimed the page, which was dirty then.
  DEUT_CHECK(!IsWritten(mark));
  Pending pending = NewPending(tree, id, mark, static_cast<const FlushMark*>(mark)->state.serial);
  // Deletions take up space until the whole page is written.
  const bool deleted = mark->is_leaf() && IsMostlyDeleted(id, mark);
  if (deleted) tree.MarkSparse(id);
  const bool may_be_delta = mark->is_leaf() && !deleted && !pending.old.empty();
  const Delta delta = may_be_delta ? EncodeDelta(mark, &pending) : Delta::kNone;
  if (delta == Delta::kUnneeded) {
    // The page has only got updates that it had before, or that newer ones supersede. No other thread changes the state
    // of this mark, because it would need the claim.
    static_cast<const FlushMark*>(mark)->state.in.store(StoredIn::kDeltaPart, std::memory_order_release);
    return Added::kClean;
  }
  if (delta == Delta::kNone) {
    payloads_.resize(pending.begin);
    if (IsStub(mark)) return Added::kNotLoaded;
    EncodeWhole(mark, consolidation, &pending);
  }
  AddPending(&pending);
  return Added::kAdded;
}

void PageFlusher::SetMergesParts(bool merges) {
  DEUT_DCHECK(!domain_.guard_held() && pending_.empty());
  merges_parts_ = false;
  if (!merges) return;
  // A merge makes other parts dead, whose bytes come back only later.
  short_of_space_ = store_.IsShortOfSpace();
  merges_parts_ = !short_of_space_;
}

bool PageFlusher::AddMergedParts(BwTree& tree, PageId id) {
  DEUT_DCHECK(domain_.guard_held());
  if (!merges_parts_ || full() || pages_.Image(id).count() <= kMaxDeltaPartsOfRead + 1) return false;
  const auto may_merge = [&](const Node* head) {
    return head != nullptr && head->is_leaf() && IsClean(head) && !IsStub(head) && IsReadAgain(id, head);
  };
  const Node* head = pages_.Load(id);
  if (!may_merge(head)) return false;
  DEUT_POINT("bwtree.merge_parts.before_claim");
  if (!pages_.ClaimImage(id)) return false;
  // Rule X1: the bound is loaded before the page's head.
  const Timestamp consolidation(consolidation_timestamp_.load(std::memory_order_acquire));
  // Before the claim, another flush may have written updates that the head from before lacks.
  if (DEUT_STEP("flush.merge_as_claimed")) head = pages_.Load(id);
  // The image may have been merged or moved meanwhile.
  if (!may_merge(head) || pages_.Image(id).count() <= kMaxDeltaPartsOfRead + 1) {
    pages_.ReleaseImage(id);
    return false;
  }
  // No node has the serial, so that `register` finds no mark, as if a consolidation had taken it away. The page's
  // bounds are those of its image, so all pages that the new image names have an image.
  Pending pending = NewPending(tree, id, head, last_serial.fetch_add(1, std::memory_order_relaxed) + 1);
  pending.only_merges = true;
  if (!EncodeMergedDelta(head, ChoiceFor(head, pending), /*changed=*/0, &pending)) {
    EncodeWhole(head, consolidation, &pending);
  }
  AddPending(&pending);
  return true;
}

void PageFlusher::CountWritten(const Pending& pending) {
  if (flushed_ == nullptr) return;
  std::atomic<uint64_t>& bytes = pending.header.kind == PartKind::kBase ? flushed_->pages : flushed_->deltas;
  bytes.fetch_add(pending.newest.length_bound(), std::memory_order_relaxed);
  if (!pending.only_merges) return;
  flushed_->merged_parts.fetch_add(pending.old.count() - (pending.kept + 1), std::memory_order_relaxed);
}

Status PageFlusher::Write() {
  DEUT_DCHECK(!domain_.guard_held());
  DEUT_IN_FLIGHT_IF(!pending_.empty(), "dc.page_flush");
  DEUT_CHECK(adding_.size() == pending_.size());
  // A payload that was encoded in vain was cut off again.
  DEUT_CHECK(payloads_.size() == (pending_.empty() ? 0 : pending_.back().begin + pending_.back().bytes));
  const SegmentAppender* failed = nullptr;
  Status status = WriteParts(&failed);
  short_of_space_ = store_.IsShortOfSpace();
  if (!status.ok()) {
    GiveUp(failed);
    return status;
  }
  for (const Pending& pending : pending_) {
    CountWritten(pending);
    Register(pending);
  }
  Clear();
  return Status::Ok();
}

Status PageFlusher::WriteParts(const SegmentAppender** failed) {
  for (Pending& pending : pending_) {
    SegmentAppender& appender = AppenderOf(pending);
    const std::string_view content = std::string_view(payloads_).substr(pending.begin, pending.bytes);
    auto address = appender.AppendContent(pending.header, content, pending.compression);
    if (!address.ok()) {
      if (address.status() != ErrorCode::kInvalidArgument) *failed = &appender;
      return address.status();
    }
    pending.newest = *address;
  }
  for (SegmentAppender* const appender : {base_.get(), delta_.get()}) {
    const Status status = appender->Write();
    if (status.ok()) continue;
    *failed = appender;
    return status;
  }
  return Status::Ok();
}

void PageFlusher::Register(const Pending& pending) {
  const PageId id = pending.header.page;
  ImageParts parts(pending.newest);
  const size_t replaced_count = pending.old.count() - pending.kept;
  for (const PageAddress part : pending.old.all().subspan(replaced_count)) parts.Append(part);
  const std::span<const PageAddress> replaced = pending.old.all().first(replaced_count);
  const ReclamationDomain::Guard guard(domain_);
  // Nobody replaces a claimed image. So the parts that become dead below are those that the new image replaces.
  DEUT_DCHECK(HasImageOrNone(pages_, id, pending.old));
  DEUT_POINT("bwtree.flush.before_register");
  if (pages_.SetImage(id, parts, domain_)) {
    // SetImage unlinks the replaced parts before they are marked dead. In the other order, a checkpoint could name a
    // part that nothing keeps for it.
    for (const PageAddress part : replaced) store_.MarkDead(part);
    // Only the pages of a tree that still exists may be read.
    const Node* const head = trees_.FindTree(pending.header.table) != nullptr ? pages_.Load(id) : nullptr;
    const StoredIn in = pending.header.kind == PartKind::kBase ? StoredIn::kBasePart : StoredIn::kDeltaPart;
    for (const Node* node = head; node != nullptr; node = node->next) {
      const StoredState* const state = StoredStateOf(node);
      if (state == nullptr || state->serial != pending.serial) continue;
      state->in.store(in, std::memory_order_release);
      break;
    }
  } else {
    store_.MarkDead(pending.newest);
  }
  pages_.ReleaseImage(id);
}

void PageFlusher::GiveUp(const SegmentAppender* failed) {
  for (SegmentAppender* const appender : {base_.get(), delta_.get()}) {
    if (appender == failed || !appender->Write().ok()) continue;
    // This appender's batch is not void: its parts are written, and become dead.
    for (const Pending& pending : pending_) {
      if (&AppenderOf(pending) == appender && !pending.newest.is_none()) store_.MarkDead(pending.newest);
    }
  }
  for (const Pending& pending : pending_) pages_.ReleaseImage(pending.header.page);
  Clear();
}

void PageFlusher::Clear() {
  pending_.clear();
  adding_.clear();
  payloads_.clear();
}

}  // namespace deut::dc
