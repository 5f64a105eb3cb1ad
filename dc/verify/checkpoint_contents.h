// CheckpointContents: the content of a checkpoint with its ancestors, in memory, without restoring pages or trees from it. Memory:
// 12 bytes for each page and 8 for each of its parts. Thread-safety: a value. Ownership: owns its content. Errors:
// those of ReadCheckpoint (checkpoint_file.h).
#ifndef DC_VERIFY_CHECKPOINT_CONTENTS_H_
#define DC_VERIFY_CHECKPOINT_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

// The parts of each page. Pages have places, from 0, in the order of their ids.
class ImageIndex {
 public:
  void Add(PageId page, std::span<const PageAddress> newest_first);
  // Called when all pages are added: puts them into the order of their ids. The files of a lineage have them in another
  // one.
  void Sort();

  size_t size() const { return pages_.size(); }
  // REQUIRES: the pages are in order.
  std::optional<size_t> Find(PageId page) const;
  PageId page(size_t place) const { return pages_[place]; }
  std::span<const PageAddress> parts(size_t place) const {
    return std::span(parts_).subspan(begins_[place], begins_[place + 1] - begins_[place]);
  }

 private:
  std::vector<PageId> pages_;
  std::vector<uint64_t> begins_ = {0};  // start of each page's parts in parts_; one element more than pages_
  std::vector<PageAddress> parts_;
};

struct CheckpointContents {
  struct Table {
    TableId id;
    PageId root;  // 0: the table was dropped
    std::string name;
    TableId last;  // a dropped entry covers the ids from `id` to this one; else `id`
    Compression compression = Compression::kNone;
    bool dropped() const { return root.value == 0; }
  };
  CheckpointHead head;
  std::vector<Table> tables;
  std::vector<SegmentExtent> segments;  // in ascending order
  ImageIndex images;                    // empty unless requested
  uint64_t pages = 0;
};

// Returns "table 3: dropped", or "tables 3 to 9: dropped".
std::string DroppedText(TableId first, TableId last);

enum class WithImages : uint8_t { kNo, kYes };
Result<CheckpointContents> ReadContents(Storage& storage, const std::string& directory, CheckpointNumber number,
                                        DcId dc, WithImages with_images);

}  // namespace deut::dc

#endif  // DC_VERIFY_CHECKPOINT_CONTENTS_H_
