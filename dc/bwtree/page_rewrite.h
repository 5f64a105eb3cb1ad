// PageRewriter: copies images of pages out of segments that are to be emptied. [Rosenblum, Ousterhout: "The Design and Implementation of a
// Log-Structured File System", SOSP 1991, section 3; LLAMA, PVLDB 6(10), 2013, section 4: consolidation of parts while cleaning]
//
// What is copied is the image, never the page in memory: the copy says what the image says, no more and no less. So it does not matter
// whether the page is in memory, on storage, dirty, being written or being loaded, and nothing of the tree is touched:
//   - nodes that are said to be written stay so; a mark that is on its way is that of a flush, which holds the claim;
//   - a page that is on storage keeps its word. The word names the newest part of the image of which the page was swapped out, or of
//     one that says the same. Nobody reads by it: BeginLoad, checkpoints and flushes ask for the image. It protects from ABA, and
//     still does: it comes back only if the page has not changed in between;
//   - bounds and children are those that the image had, so whatever was registered in the right order stays in it (page_flusher.h).
// Steps, for each part that is found in the segment:
//   look      the page's image names the part, or the part is dead (guard)
//   copy      its parts are read and appended again (no guard, no claim: flushes go on). If the part is a delta, and the deltas together are
//             small beside the base, they become one delta part on the same base; else the page becomes one base part. Either way no more
//             is written than dies by it, but for the rounding of lengths, and a base of at most twice its deltas
//   write     the copies are readable
//   replace   MappingTable::ReplaceImage: one compare-and-swap from the image that was copied to the copy
//   dead      the winner says so of the parts replaced (after they were unlinked: segment_store.h); the loser of the copy
// Winner and loser. Against a flush, a drop, a page freed, an id used again: whoever changes the image first. The copy of an image that is
//   not the page's any more is dropped; what it was a copy of is dead, or is found again by the next pass over the segment.
// Rule X1: nothing is given up on the way, neither versions nor tombstones: what is not in the image may still be above it in memory.
// Thread-safety: one thread. Ownership: of what it has added until Write; borrows the rest.
#ifndef DC_BWTREE_PAGE_REWRITE_H_
#define DC_BWTREE_PAGE_REWRITE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_appender.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct PageRewriterStatistics {
  uint64_t bytes_read = 0;     // of parts, besides the one that was given
  uint64_t bytes_written = 0;  // of parts
  uint64_t copies = 0;
  uint64_t copies_lost = 0;  // dropped: the image had changed
};

class PageRewriter {
 public:
  static Result<std::unique_ptr<PageRewriter>> Create(MappingTable& pages, ReclamationDomain& domain,
                                                      SegmentStore& store);
  PageRewriter(const PageRewriter&) = delete;
  PageRewriter& operator=(const PageRewriter&) = delete;

  // A part as it was found in its segment. If it is live, a copy of its page's image is added. CORRUPTION, IO_ERROR: the image cannot be
  // read; what was added before stays. RESOURCE_EXHAUSTED: no room; some of what was added is void. REQUIRES: no guard is held.
  Status Add(const PartView& part);
  // Worth a write.
  bool full() const { return payload_bytes_ >= full_bytes_; }
  // Writes what was added and puts it in its place. After an error nothing of the batch that failed is in place.
  Status Write();

  const PageRewriterStatistics& statistics() const { return statistics_; }

 private:
  static constexpr size_t kFullBytes = 512 << 10;

  // A copy on its way.
  struct Pending {
    PageId id;
    PageAddress newest;  // of the image that was copied
    ImageParts parts;
    std::vector<PageAddress> replaced;
  };
  // Copies of one kind: a failed write makes void what was appended together.
  struct Batch {
    std::unique_ptr<SegmentAppender> appender;
    std::vector<Pending> pending;
  };

  PageRewriter(MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
               std::unique_ptr<SegmentAppender> base, std::unique_ptr<SegmentAppender> delta);

  ImageParts ImageOf(PageId id) const;
  // True if the image was replaced while it was read, so that what went wrong says nothing.
  bool HasChanged(PageId id, const ImageParts& parts) const;
  // payload_: the page as a whole, or what its delta parts say.
  Status MergeWhole(PageId id, const ImageParts& parts);
  Status MergeDeltas(PageId id, const ImageParts& parts);
  Status Append(Batch* batch, PartHeader header, std::string_view payload, const ImageParts& image);
  Status WriteBatch(Batch* batch);
  void Replace(const Pending& pending);
  void MarkReplacedDead(std::span<const Pending> copies);

  // At most a segment: a batch that finds no room is void as a whole.
  const uint64_t full_bytes_;
  MappingTable& pages_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  Batch base_;
  Batch delta_;
  absl::flat_hash_set<PageId> adding_;
  size_t payload_bytes_ = 0;
  std::string payload_;
  PartBuffer buffer_;
  PageRewriterStatistics statistics_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_REWRITE_H_
