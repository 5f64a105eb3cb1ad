#include "dc/page_store/checkpoint_lineage.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "dc/page_store/checkpoint_blocks.h"
#include "dc/page_store/checkpoint_file.h"

namespace deut::dc {

bool RangesCover(std::span<const CheckpointAncestor> files, PageId end) {
  std::vector<PageRange> ranges;
  for (const CheckpointAncestor& file : files) ranges.push_back(file.pages);
  std::ranges::sort(ranges, {}, &PageRange::first);
  PageId covered(1);  // every id below it is covered
  for (const PageRange& range : ranges) {
    if (range.first <= covered) covered = std::max(covered, range.end);
  }
  return covered >= end;
}

void DropSuperfluous(CheckpointLineage* lineage) {
  DEUT_CHECK(IsCompleteLineage(*lineage));
  const std::span<const CheckpointAncestor> files = *lineage;
  size_t superfluous = 0;
  for (size_t first = 1; first < files.size(); ++first) {
    if (IsCompleteLineage(files.subspan(first)) || DEUT_OMITTED("checkpoint.drop_covered")) superfluous = first;
  }
  lineage->erase(lineage->begin(), lineage->begin() + static_cast<ptrdiff_t>(superfluous));
}

Status CheckLineageIsThere(Storage& storage, const std::string& directory, DcId dc, const CheckpointLineage& lineage) {
  for (const CheckpointAncestor& file : lineage) {
    const std::string path = Concat(directory, "/", CheckpointName(file.number));
    DEUT_ASSIGN_OR_RETURN(const CheckpointBlocks blocks, CheckpointBlocks::Open(storage, path, file.number, dc));
    DEUT_RETURN_IF_ERROR(blocks.ExpectBlocks(file.blocks));
    const auto ignore = [](std::string_view, uint64_t, uint16_t) { return Status::Ok(); };
    DEUT_ASSIGN_OR_RETURN(const CheckpointBlocks::Links links, blocks.Read(file.blocks - 1, 1, ignore));
    DEUT_RETURN_IF_ERROR(blocks.ExpectChecksum(links.last, file.checksum));
  }
  return Status::Ok();
}

}  // namespace deut::dc
