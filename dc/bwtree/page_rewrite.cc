#include "dc/bwtree/page_rewrite.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {
namespace {

bool Names(const ImageParts& parts, PageAddress address) {
  return std::ranges::find(parts.all(), address) != parts.all().end();
}

uint64_t BytesOf(std::span<const PageAddress> parts) {
  uint64_t bytes = 0;
  for (const PageAddress part : parts) bytes += part.length_bound();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<PageRewriter>> PageRewriter::Create(MappingTable& pages, ReclamationDomain& domain,
                                                           SegmentStore& store) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<SegmentAppender> base, store.NewAppender(SegmentKind::kBase));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<SegmentAppender> delta, store.NewAppender(SegmentKind::kDelta));
  base->SetSpaceUse(SpaceUse::kReclaim);
  delta->SetSpaceUse(SpaceUse::kReclaim);
  return std::unique_ptr<PageRewriter>(new PageRewriter(pages, domain, store, std::move(base), std::move(delta)));
}

PageRewriter::PageRewriter(MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
                           std::unique_ptr<SegmentAppender> base, std::unique_ptr<SegmentAppender> delta)
    : full_bytes_(std::min<uint64_t>(kFullBytes, store.segment_bytes())),
      pages_(pages),
      domain_(domain),
      store_(store),
      base_{.appender = std::move(base), .pending = {}},
      delta_{.appender = std::move(delta), .pending = {}} {}

ImageParts PageRewriter::ImageOf(PageId id) const {
  // The id comes from a part that may be old, so it may no longer exist.
  if (id == kNoPage || id.value > pages_.last_id()) return {};
  const ReclamationDomain::Guard guard(domain_);
  return pages_.Image(id);
}

bool PageRewriter::HasChanged(PageId id, const ImageParts& parts) const {
  const ImageParts now = ImageOf(id);
  return now.empty() || now.newest() != parts.newest();
}

Status PageRewriter::Add(const PartView& part) {
  DEUT_DCHECK(!domain_.guard_held());
  const PageId id = part.header.page;
  if (adding_.contains(id)) return Status::Ok();
  const ImageParts image = ImageOf(id);
  if (!Names(image, part.address)) return Status::Ok();
  PartHeader header;
  header.page = id;
  header.table = part.header.table;
  header.level = part.header.level;
  if (image.count() == 1) {
    header.packed = part.header.packed;
    return Append(&base_, header, part.payload, Compression::kNone, image);
  }
  const std::span<const PageAddress> deltas = image.all().first(image.count() - 1);
  const PageAddress base = image[image.count() - 1];
  const bool as_delta = part.header.kind == PartKind::kDelta && BytesOf(deltas) < base.length_bound() / 2;
  const Status read = as_delta ? MergeDeltas(id, image) : MergeWhole(id, image);
  DEUT_POINT("bwtree.rewrite.read");
  if (!read.ok()) return HasChanged(id, image) ? Status::Ok() : read;
  if (!as_delta) return Append(&base_, header, payload_, compression_, image);
  header.kind = PartKind::kDelta;
  header.previous = base;
  return Append(&delta_, header, payload_, compression_, image);
}

Status PageRewriter::MergeWhole(PageId id, const ImageParts& parts) {
  PageLoad load;
  load.id = id;
  load.parts = parts;
  DEUT_RETURN_IF_ERROR(load.ReadImage(store_));
  statistics_.bytes_read += BytesOf(parts.all());
  payload_.clear();
  EncodeBaseImage(*load.page, &payload_);
  compression_ = load.compression;
  return Status::Ok();
}

Status PageRewriter::MergeDeltas(PageId id, const ImageParts& parts) {
  compression_ = Compression::kNone;
  std::vector<Owned<RecordDelta>> deltas;  // the newest first
  for (size_t i = 0; i + 1 < parts.count(); ++i) {
    DEUT_RETURN_IF_ERROR(store_.Read(parts[i], id, &buffer_));
    statistics_.bytes_read += parts[i].length_bound();
    const PartView& view = buffer_.part();
    if (view.header.kind != PartKind::kDelta || view.header.previous != parts[i + 1]) {
      return DEUT_ERROR(kCorruption, "page ", id.value, " in segment ", parts[i].segment(), " at ", parts[i].offset(),
                        ": the delta part is not the next one of this image");
    }
    if (compression_ == Compression::kNone) compression_ = view.compression;
    DEUT_ASSIGN_OR_RETURN(std::vector<Owned<RecordDelta>> updates, DecodeDeltaImage(view.payload));
    std::ranges::move(updates, std::back_inserter(deltas));
  }
  // A placeholder for the base, at which the encoding ends.
  const Owned<BasePage> stub = BasePage::BuildStub(BasePage::Bounds{});
  const Node* head = stub.get();
  for (size_t i = deltas.size(); i > 0; --i) {
    deltas[i - 1]->LinkTo(head);
    head = deltas[i - 1].get();
  }
  payload_.clear();
  EncodeDeltaImage(head, StoredIn::kNoPart, &payload_);
  return Status::Ok();
}

Status PageRewriter::Append(Batch* batch, const PartHeader& header, std::string_view payload, Compression compression,
                            const ImageParts& image) {
  const size_t bytes_before = batch->appender->batch_bytes();
  auto address = header.packed ? batch->appender->Append(header, payload)
                               : batch->appender->AppendContent(header, payload, compression);
  if (!address.ok()) {
    // The failed part makes the copies void that were appended before it.
    for (const Pending& pending : batch->pending) adding_.erase(pending.id);
    batch->pending.clear();
    return address.status();
  }
  Pending pending{.id = header.page, .newest = image.newest(), .parts = ImageParts(*address), .replaced = {}};
  std::span<const PageAddress> replaced = image.all();
  if (header.kind == PartKind::kDelta) {
    DEUT_DCHECK(header.previous == image[image.count() - 1]);  // the base stays, in both images
    pending.parts.Append(header.previous);
    replaced = replaced.first(image.count() - 1);
  }
  pending.replaced.assign(replaced.begin(), replaced.end());
  batch->pending.push_back(std::move(pending));
  adding_.insert(header.page);
  // A packed part has fewer bytes than its content.
  const size_t bytes = batch->appender->batch_bytes() - bytes_before;
  appended_bytes_ += bytes;
  statistics_.bytes_written += bytes;
  return Status::Ok();
}

Status PageRewriter::Write() {
  DEUT_DCHECK(!domain_.guard_held());
  // A page is in one batch, once: of two copies of one image the second would be lost, and the first one kept.
  DEUT_CHECK(adding_.size() == base_.pending.size() + delta_.pending.size());
  const Status base = WriteBatch(&base_);
  const Status delta = WriteBatch(&delta_);
  adding_.clear();
  appended_bytes_ = 0;
  return base.ok() ? delta : base;
}

Status PageRewriter::WriteBatch(Batch* batch) {
  const Status written = batch->appender->Write();
  if (written.ok()) {
    // The parts are unlinked first, then marked dead. In the other order, a checkpoint that begins in between would
    // name parts that nothing keeps for it.
    if (DEUT_OMITTED("clean.unlinks_first")) MarkReplacedDead(batch->pending);
    DEUT_POINT("bwtree.rewrite.written");
    for (const Pending& pending : batch->pending) Replace(pending);
  }
  batch->pending.clear();
  return written;
}

void PageRewriter::MarkReplacedDead(std::span<const Pending> copies) {
  for (const Pending& copy : copies) {
    for (const PageAddress part : copy.replaced) store_.MarkDead(part);
  }
}

void PageRewriter::Replace(const Pending& pending) {
  const ReclamationDomain::Guard guard(domain_);
  ++statistics_.copies;
  DEUT_POINT("bwtree.rewrite.before_replace");
  if (!pages_.ReplaceImage(pending.id, pending.newest, pending.parts, domain_)) {
    ++statistics_.copies_lost;
    store_.MarkDead(pending.parts.newest());
    return;
  }
  if (DEUT_STEP("clean.unlinks_first")) MarkReplacedDead({&pending, 1});
}

}  // namespace deut::dc
