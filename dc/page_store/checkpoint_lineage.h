// The lineage of a checkpoint: its own file and its ancestors, which are older files that it refers to. A checkpoint's
// file has the images that have changed since the last checkpoint of its lineage, and the images of one range of page
// ids completely. The ancestors have the rest: the newest file that says something about a page is right.
// Checkpoints belong to two lineages in turn, so that no file belongs to both of the checkpoints that are kept, and
// damage of one file leaves one of them whole (dc/docs/page_store.md).
// Thread-safety: values, pure functions.
#ifndef DC_PAGE_STORE_CHECKPOINT_LINEAGE_H_
#define DC_PAGE_STORE_CHECKPOINT_LINEAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

// The ids from `first` to the one before `end`.
struct PageRange {
  PageId first = PageId(1);
  PageId end = PageId(UINT32_MAX);
  friend bool operator==(const PageRange&, const PageRange&) = default;
};

// A file of a lineage. Number, length and last checksum identify it: a file of another try differs.
struct CheckpointAncestor {
  CheckpointNumber number = {};
  uint32_t blocks = 0;
  uint32_t checksum = 0;  // of its last block, and so of all blocks (checkpoint_format.h)
  PageId next_page = {};  // as its head has it
  PageRange pages = {};   // the range that it has completely
  friend bool operator==(const CheckpointAncestor&, const CheckpointAncestor&) = default;
};

// Ascending numbers.
using CheckpointLineage = std::vector<CheckpointAncestor>;

constexpr size_t kMaxAncestors = 1024;

// True if each id below `end` is in the range of some file.
bool RangesCover(std::span<const CheckpointAncestor> files, PageId end);

// True if the older files say nothing that `files` do not say: their ranges have all ids that existed when the first
// of them was written. Images of later ids have changed since, so that `files` have them as changes.
inline bool IsCompleteLineage(std::span<const CheckpointAncestor> files) {
  return !files.empty() && RangesCover(files, files.front().next_page);
}

// Removes the oldest files that the newer ones make superfluous. REQUIRES: IsCompleteLineage.
void DropSuperfluous(CheckpointLineage* lineage);

// OK if all files are there, as far as their length and last block tell. Else the first reason against it.
Status CheckLineageIsThere(Storage& storage, const std::string& directory, DcId dc, const CheckpointLineage& lineage);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_LINEAGE_H_
