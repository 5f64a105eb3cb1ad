#include "dc/page_cache/image_read.h"

#include "common/base/check.h"

namespace deut::dc {
namespace {

constexpr size_t kLargestKeptBuffer = 64 << 10;

}  // namespace

void ImageRead::Begin(PageId page, const ImageParts& parts) {
  DEUT_DCHECK(parts_.empty());
  page_ = page;
  parts_ = parts;
  bytes_ = 0;
  for (const PageAddress part : parts.all()) bytes_ += part.length_bound();
}

bool ImageRead::Prepare(SegmentStore& store) {
  while (prepared_ < parts_.count() && failure_.ok()) {
    const Result<bool> begun = store.TryBeginRead(parts_[prepared_], page_, &buffers_[prepared_]);
    if (begun.ok() && !*begun) return false;
    if (begun.ok()) {
      ++prepared_;
    } else {
      failure_ = begun.status();
    }
  }
  return true;
}

// The first error decides. So a load waits once for a shortage, however many files its image has.
void ImageRead::PrepareAndOpen(SegmentStore& store) {
  if (met_shortage()) failure_ = Status::Ok();
  while (prepared_ < parts_.count() && failure_.ok()) {
    failure_ = store.BeginRead(parts_[prepared_], page_, &buffers_[prepared_]);
    if (failure_.ok()) ++prepared_;
  }
}

Status ImageRead::Build(SegmentStore& store, PageLoad* page) {
  page->id = page_;
  page->parts = parts_;  // also after an error: it counts only if the image still is the page's
  DEUT_RETURN_IF_ERROR(failure_);
  DEUT_DCHECK(prepared_ == parts_.count());
  return page->BuildImage([&](size_t i) -> Result<PartView> {
    DEUT_RETURN_IF_ERROR(store.EndRead(&buffers_[i]));
    return buffers_[i].part();
  });
}

void ImageRead::Reset() {
  for (size_t i = 0; i < prepared_; ++i) buffers_[i].ForgetRead();
  parts_ = ImageParts();
  prepared_ = 0;
  failure_ = Status::Ok();
}

bool ImageRead::IsSmall() const {
  for (const PartBuffer& buffer : buffers_) {
    if (buffer.bytes() > kLargestKeptBuffer) return false;
  }
  return true;
}

}  // namespace deut::dc
