#include "dc/bwtree/page_flusher.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/consolidate.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

// Serials of all flushers, so that none is ever used twice.
std::atomic<uint64_t> last_serial{0};

constexpr int kMarkTries = 8;
// Pages that may wait for one another. Neighbours that were never written make long chains; who is not reached is written later.
constexpr size_t kMaxWaiting = 4096;

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
      base_(std::move(base)),
      delta_(std::move(delta)) {}

PageFlusher::~PageFlusher() {
  for (const Pending& pending : pending_) pages_.ReleaseImage(pending.id);
}

void PageFlusher::SetSpaceUse(SpaceUse use) {
  base_->SetSpaceUse(use);
  delta_->SetSpaceUse(use);
}

Result<PageFlusher::Added> PageFlusher::Add(BwTree& tree, PageId id) {
  DEUT_DCHECK(domain_.held());
  std::vector<PageId> waiting{id};
  std::vector<PageId> first;
  for (;;) {
    first.clear();
    auto added = AddOne(tree, waiting.back(), &first);
    if (!added.ok()) return added.status();
    if (!first.empty()) {
      if (waiting.size() + first.size() > kMaxWaiting) return Added::kBusy;
      waiting.insert(waiting.end(), first.begin(), first.end());
      continue;
    }
    // What another page needs and cannot have: that page's turn comes later.
    if (waiting.size() == 1 || *added == Added::kBusy || *added == Added::kNotLoaded) return *added;
    waiting.pop_back();
  }
}

Result<PageFlusher::Added> PageFlusher::AddOne(BwTree& tree, PageId id, std::vector<PageId>* first) {
  if (adding_.contains(id)) return Added::kAdded;
  const Node* const seen = pages_.Load(id);
  if (seen == nullptr || IsClean(seen)) return Added::kClean;
  if (IsRemoved(seen)) {
    tree.FinishMerge(id, seen);
    return Added::kBusy;  // who named it names another page by now
  }
  // From here on no other flusher writes the page: the image is that of an older mark, and stays so.
  if (!pages_.ClaimImage(id)) return Added::kBusy;
  auto added = AddClaimed(tree, id, first);
  if (!added.ok() || *added != Added::kAdded) pages_.ReleaseImage(id);
  return added;
}

Result<PageFlusher::Added> PageFlusher::AddClaimed(BwTree& tree, PageId id, std::vector<PageId>* first) {
  // Rule X1: before the page is looked at.
  const Timestamp consolidation(consolidation_timestamp_.load(std::memory_order_acquire));
  const Node* const head = pages_.Load(id);
  if (head == nullptr || IsClean(head)) return Added::kClean;
  // Who merges pages holds the claim of the one that goes.
  DEUT_CHECK(!IsRemoved(head));
  const Node* const mark = PlaceMark(tree, id, head);
  if (mark == nullptr) return Added::kBusy;
  if (!FindUnwritten(mark, first) || !first->empty()) return Added::kBusy;
  return Encode(tree, id, mark, consolidation);
}

const Node* PageFlusher::PlaceMark(BwTree& tree, PageId id, const Node* head) {
  for (int i = 0; i < kMarkTries; ++i) {
    // The mark of a flush that was given up will do.
    if (head->kind == NodeKind::kFlushMark) return head;
    Owned<FlushMark> mark = FlushMark::New(last_serial.fetch_add(1, std::memory_order_relaxed) + 1);
    mark->LinkTo(head);
    DEUT_POINT("bwtree.mark.before_cas");
    if (!DEUT_CAS_FAILS("bwtree.mark.cas") && pages_.Replace(id, head, mark.get())) {
      tree.CountPublished(sizeof(FlushMark));
      return mark.release();
    }
    head = pages_.Load(id);
    DEUT_CHECK(head != nullptr);  // it is dirty, and nobody else writes it: who swaps pages out leaves it alone
  }
  return nullptr;
}

bool PageFlusher::FindUnwritten(const Node* mark, std::vector<PageId>* first) const {
  if (DEUT_OMITTED("flush.child_first")) return true;
  const PageId sibling = mark->fence->sibling;
  if (mark->fence->bounded() && sibling != kUnknownPage && !pages_.HasImage(sibling) && !adding_.contains(sibling)) {
    first->push_back(sibling);
  }
  if (mark->is_leaf()) return true;
  const Owned<BasePage> page = BuildConsolidated(mark, Timestamp());
  for (size_t i = 0; i < page->count(); ++i) {
    const PageId child = page->child(i);
    const Node* const head = pages_.Load(child);
    if (const auto adding = adding_.find(child); adding != adding_.end()) {
      if (IsRestructuredSince(head, adding->second) && !DEUT_OMITTED("flush.child_as_encoded")) return false;
    } else if (!pages_.HasImage(child) || (head != nullptr && IsRestructured(head))) {
      first->push_back(child);
    }
  }
  return true;
}

bool PageFlusher::IsMostlyDeleted(PageId id, const Node* mark) const {
  const size_t records = IsStub(mark) ? pages_.records(id) : mark->base->count();
  size_t tombstones = 0;
  for (const Node* node = mark; !IsWritten(node) && node->kind != NodeKind::kBase; node = node->next) {
    tombstones += node->kind == NodeKind::kTombstone ? 1 : 0;
  }
  return tombstones > records / 2;
}

Result<PageFlusher::Added> PageFlusher::Encode(BwTree& tree, PageId id, const Node* mark, Timestamp consolidation) {
  const ImageParts old = pages_.Image(id);
  payload_.clear();
  PartHeader header;
  header.page = id;
  header.table = tree.table();
  header.level = mark->level;
  header.kind = PartKind::kBase;
  // Deletions take up space until their page is written as a whole.
  const bool deleted = mark->is_leaf() && IsMostlyDeleted(id, mark);
  if (deleted) tree.NoteSparse(id);
  if (mark->is_leaf() && !deleted && !old.empty() && old.count() < ImageParts::kMax &&
      EncodeDeltaImage(mark, &payload_) && (IsStub(mark) || payload_.size() < mark->base_bytes / 2)) {
    header.kind = PartKind::kDelta;
    header.previous = old.newest();
  } else if (IsStub(mark)) {
    return Added::kNotLoaded;
  } else {
    payload_.clear();
    EncodeBaseImage(*BuildConsolidated(mark, consolidation), &payload_);
  }
  SegmentAppender& appender = header.kind == PartKind::kBase ? *base_ : *delta_;
  auto address = appender.Append(header, payload_);
  if (!address.ok()) {
    GiveUp(&appender);
    return address.status();
  }
  Pending pending{header.table, id, static_cast<const FlushMark*>(mark)->state.serial, ImageParts(*address), {}};
  if (header.kind == PartKind::kDelta) {
    for (const PageAddress part : old.all()) pending.parts.Append(part);
    ++statistics_.delta_parts;
  } else {
    pending.replaced = old;
    ++statistics_.base_parts;
  }
  statistics_.bytes += payload_.size();
  payload_bytes_ += payload_.size();
  pending_.push_back(pending);
  adding_.emplace(id, pending_.back().serial);
  DEUT_POINT("bwtree.flush.encoded");
  return Added::kAdded;
}

Status PageFlusher::Write() {
  DEUT_DCHECK(!domain_.held());
  for (SegmentAppender* const appender : {base_.get(), delta_.get()}) {
    const Status status = appender->Write();
    if (status.ok()) continue;
    GiveUp(appender);
    return status;
  }
  for (const Pending& pending : pending_) Register(pending);
  pending_.clear();
  adding_.clear();
  payload_bytes_ = 0;
  return Status::Ok();
}

void PageFlusher::Register(const Pending& pending) {
  const ReclamationDomain::Guard guard(domain_);
  const PageAddress newest = pending.parts.newest();
  DEUT_POINT("bwtree.flush.before_register");
  if (pages_.SetImage(pending.id, pending.parts, domain_)) {
    for (const PageAddress part : pending.replaced.all()) store_.MarkDead(part);
    // Only the pages of a tree that is there may be looked at.
    const Node* const head = trees_.FindTree(pending.table) != nullptr ? pages_.Load(pending.id) : nullptr;
    const StoredState* state = head != nullptr ? StoredStateOf(head) : nullptr;
    if (state != nullptr && state->serial == pending.serial) state->written.store(true, std::memory_order_release);
  } else {
    store_.MarkDead(newest);
  }
  pages_.ReleaseImage(pending.id);
}

void PageFlusher::GiveUp(const SegmentAppender* failed) {
  // The other appender's batch is not void: its parts are written, and dead.
  for (SegmentAppender* const appender : {base_.get(), delta_.get()}) {
    if (appender == failed || !appender->Write().ok()) continue;
    for (const Pending& pending : pending_) {
      const bool base = pending.parts.count() == 1;
      if (base == (appender == base_.get())) store_.MarkDead(pending.parts.newest());
    }
  }
  for (const Pending& pending : pending_) pages_.ReleaseImage(pending.id);
  pending_.clear();
  adding_.clear();
  payload_bytes_ = 0;
}

}  // namespace deut::dc
