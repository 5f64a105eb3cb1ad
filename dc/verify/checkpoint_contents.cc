#include "dc/verify/checkpoint_contents.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace deut::dc {
namespace {

class Collecting final : public CheckpointVisitor {
 public:
  Collecting(WithImages with_images, CheckpointContents* out) : with_images_(with_images), out_(*out) {}

  Status OnHead(const CheckpointHead& head) override {
    out_.head = head;
    return Status::Ok();
  }
  Status OnTable(const CheckpointTable& table) override {
    out_.tables.push_back({table.id, table.root, std::string(table.name), table.last(), table.compression});
    return Status::Ok();
  }
  Status OnSegment(const SegmentExtent& segment) override {
    out_.segments.push_back(segment);
    return Status::Ok();
  }
  Status OnPage(PageId page, std::span<const PageAddress> newest_first) override {
    if (with_images_ == WithImages::kYes) out_.images.Add(page, newest_first);
    return Status::Ok();
  }

 private:
  const WithImages with_images_;
  CheckpointContents& out_;
};

}  // namespace

void ImageIndex::Add(PageId page, std::span<const PageAddress> newest_first) {
  pages_.push_back(page);
  parts_.insert(parts_.end(), newest_first.begin(), newest_first.end());
  begins_.push_back(parts_.size());
}

void ImageIndex::Sort() {
  if (std::ranges::is_sorted(pages_)) return;
  std::vector<size_t> places(pages_.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::sort(places, {}, [this](size_t place) { return pages_[place]; });
  ImageIndex sorted;
  for (const size_t place : places) sorted.Add(pages_[place], parts(place));
  *this = std::move(sorted);
}

std::optional<size_t> ImageIndex::Find(PageId page) const {
  const auto place = std::ranges::lower_bound(pages_, page);
  if (place == pages_.end() || *place != page) return std::nullopt;
  return static_cast<size_t>(place - pages_.begin());
}

std::string DroppedText(TableId first, TableId last) {
  if (first == last) return Concat("table ", first.value, ": dropped");
  return Concat("tables ", first.value, " to ", last.value, ": dropped");
}

Result<CheckpointContents> ReadContents(Storage& storage, const std::string& directory, CheckpointNumber number,
                                        DcId dc, WithImages with_images) {
  CheckpointContents contents;
  Collecting collecting(with_images, &contents);
  DEUT_ASSIGN_OR_RETURN(const CheckpointCounts counts, ReadCheckpoint(storage, directory, number, dc, &collecting));
  // The visitor has seen what the reader has counted.
  DEUT_CHECK(contents.tables.size() == counts.tables && contents.segments.size() == counts.segments);
  DEUT_CHECK(contents.images.size() == (with_images == WithImages::kYes ? counts.pages : 0));
  contents.pages = counts.pages;
  contents.images.Sort();
  return contents;
}

}  // namespace deut::dc
