// CheckpointRules: the rules for the records of a checkpoint: their order, and what they may name. Writer and reader
// apply the same rules. Internal to the page store. Memory: the segments and the roots of the tables.
// Thread-safety: one thread at a time; Contents and NotePage from any thread, once BeginPages was called.
// Errors: each method returns nothing, or the violated rule as a clause for a message.
#ifndef DC_PAGE_STORE_CHECKPOINT_RULES_H_
#define DC_PAGE_STORE_CHECKPOINT_RULES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/named_segments.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc {

class CheckpointRules {
 public:
  using Violation = std::optional<std::string>;

  // Lineages are complete (IsCompleteLineage), with ascending numbers below the checkpoint's. They have no file in
  // common.
  Violation Head(const CheckpointHead& head);
  // Ascending ids; names with 1 to kMaxTableNameBytes bytes; a root below next_page that no other table has. A
  // dropped table has neither name nor root. Only a live one has a compression, and only if the head has_table_options.
  Violation Table(const CheckpointTable& table);
  // Ascending numbers below next_segment; whole blocks.
  Violation Segment(const SegmentExtent& segment);
  // The tables and segments are complete. Page calls it, other users of Contents and NotePage do it themselves.
  void BeginPages();
  // Ascending ids, and Contents.
  Violation Page(PageId page, std::span<const PageAddress> newest_first, bool recent);
  // An id below next_page; delta parts and then one base part, each within the written bytes of a segment of its kind.
  // No parts, if the file has ancestors, or if it names the lineage of the checkpoint before and the page had an image
  // there (`recent`). Adds the parts' bytes to `live_bytes`, which has one sum for each place in segments(), or is empty.
  Violation Contents(PageId page, std::span<const PageAddress> newest_first, bool recent,
                     std::span<uint64_t> live_bytes = {}) const;
  // The page has an image.
  void NotePage(PageId page) {
    if ((may_be_root_[WordOfBit(page)] >> (page.value % 64) & 1) != 0) [[unlikely]]
      NoteRoot(page);
  }
  // Pages were added without Page, in the right order.
  Violation PagesOfReader(uint64_t records);
  // The counts are right. A file without ancestors also has an image of every root.
  Violation End(const CheckpointCounts& claimed);
  // Every root has an image.
  Violation Roots() const;

  const CheckpointCounts& counts() const { return counts_; }
  const NamedSegments& segments() const { return segments_; }

 private:
  enum class Section { kStart, kTables, kSegments, kPages, kEnd };
  // *place: the segment's place, if there is no violation.
  Violation CheckAddress(PageAddress address, SegmentKind kind, size_t* place) const;
  Violation Lineage(std::span<const CheckpointAncestor> files, const CheckpointHead& head) const;
  // If the page is a root, it has an image.
  void NoteRoot(PageId page);
  // The word of may_be_root_ that has the page's bit.
  size_t WordOfBit(PageId page) const { return (page.value / 64) & (may_be_root_.size() - 1); }

  Section section_ = Section::kStart;
  PageId next_page_;
  bool has_ancestors_ = false;
  bool names_previous_ = false;
  bool has_table_options_ = false;
  uint64_t next_segment_ = 0;
  TableId last_table_;
  PageId last_page_;
  std::map<PageId, std::atomic<bool>> roots_;  // true: the root has an image
  // The bit of each root, at its id modulo the number of bits, a power of 2. So one bit tells of most other pages that
  // they are no roots.
  std::vector<uint64_t> may_be_root_ = {0};
  NamedSegments segments_;
  CheckpointCounts counts_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_RULES_H_
