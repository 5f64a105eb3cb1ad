// PageRewriter: copies images of pages out of segments that are to be emptied. [Rosenblum, Ousterhout: "The Design
// and Implementation of a Log-Structured File System", SOSP 1991, section 3; LLAMA, PVLDB 6(10), 2013, section 4:
// consolidation of parts while cleaning]
//
// The rewriter copies the image, never the page in memory: the copy has exactly the content of the image. So the
// state of the page (in memory, on storage, dirty, being written, being loaded) does not matter. The rewriter changes
// nothing in the tree:
// - Nodes that are marked as written stay so. A mark that is being written belongs to a flush, which holds the claim.
// - A page that is on storage keeps its word. The word names the newest part of the image at eviction, or of an image
//   with the same content. No thread reads parts by it: BeginLoad, checkpoints and flushes ask for the image. The
//   word only protects from ABA. It still does: the word returns only if the page has not changed in between.
// - Bounds and children are those of the old image, so images that were registered in the right order stay in it
//   (page_flusher.h).
// Steps, for each part that is found in the segment:
//   look      the page's image names the part, or the part is dead (guard)
//   copy      reads the parts of the image and appends their content again (no guard, no claim: flushes continue). If
//             the part is a delta and the deltas together are small beside the base, they become one delta part on
//             the same base. Else the page becomes one base part. Either way the rewriter writes at most the bytes
//             that become dead, except for the rounding of lengths, for a base of at most twice its deltas, and for
//             content that compresses less well together
//   write     the copies are readable
//   replace   MappingTable::ReplaceImage: one compare-and-swap from the image that was copied to the copy
//   dead      the winner marks the replaced parts dead (after they were unlinked: segment_store.h); the loser marks
//             the copy dead
// Winner and loser. Opponents are a flush, a drop, a page that is freed, and an id that is used again. The thread
// that changes the image first wins. A copy of an image that is no longer the page's image is dropped. Its original
// is dead, or the next pass over the segment finds it again.
// Compression. An image of one part is copied as it is; a packed part stays packed, and is not decompressed. Content that
// is merged from several parts is packed as its base part was, or else the newest packed one of its delta parts; if none
// was packed, it is not. So the rewriter needs no options of tables.
// Rule X1: the rewriter drops no tombstones, because the page in memory may have updates that the image lacks. If the
// delta parts that it merges have several versions of a key, it keeps the largest one (X2).
// Thread-safety: one thread. Ownership: owns the added copies until Write; borrows the rest.
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
#include "common/base/compression.h"
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
  uint64_t bytes_read = 0;     // bytes of parts, except the part passed to Add
  uint64_t bytes_written = 0;  // bytes of parts
  uint64_t copies = 0;
  uint64_t copies_lost = 0;  // dropped: the image had changed
};

class PageRewriter {
 public:
  static Result<std::unique_ptr<PageRewriter>> Create(MappingTable& pages, ReclamationDomain& domain,
                                                      SegmentStore& store);
  PageRewriter(const PageRewriter&) = delete;
  PageRewriter& operator=(const PageRewriter&) = delete;

  // Takes a part as it was found in its segment. If it is live, adds a copy of its page's image. CORRUPTION,
  // IO_ERROR: the image cannot be read; copies that were added before stay. RESOURCE_EXHAUSTED: there is no room;
  // some of the added copies are void. REQUIRES: no guard is held.
  Status Add(const PartView& part);
  // True: the batch is large enough to be written.
  bool full() const { return appended_bytes_ >= full_bytes_; }
  // Writes the added copies and installs them. After an error no copy of the failed batch is installed.
  Status Write();

  const PageRewriterStatistics& statistics() const { return statistics_; }

 private:
  static constexpr size_t kFullBytes = 512 << 10;

  // A copy that is not installed yet.
  struct Pending {
    PageId id;
    PageAddress newest;  // newest part of the image that was copied
    ImageParts parts;
    std::vector<PageAddress> replaced;
  };
  // Copies of one kind of part. A failed write makes all copies void that were appended together.
  struct Batch {
    std::unique_ptr<SegmentAppender> appender;
    std::vector<Pending> pending;
  };

  PageRewriter(MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
               std::unique_ptr<SegmentAppender> base, std::unique_ptr<SegmentAppender> delta);

  ImageParts ImageOf(PageId id) const;
  // True if the image was replaced while it was read, so that a read error means nothing.
  bool HasChanged(PageId id, const ImageParts& parts) const;
  // Sets payload_ to the whole page (MergeWhole) or to the content of its delta parts (MergeDeltas), and compression_.
  Status MergeWhole(PageId id, const ImageParts& parts);
  Status MergeDeltas(PageId id, const ImageParts& parts);
  // A payload that is packed, as the header says, is appended as it is. Any other is packed with `compression`.
  Status Append(Batch* batch, const PartHeader& header, std::string_view payload, Compression compression,
                const ImageParts& image);
  Status WriteBatch(Batch* batch);
  void Replace(const Pending& pending);
  void MarkReplacedDead(std::span<const Pending> copies);

  // At most one segment: a batch that finds no room is void as a whole.
  const uint64_t full_bytes_;
  MappingTable& pages_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  Batch base_;
  Batch delta_;
  absl::flat_hash_set<PageId> adding_;
  size_t appended_bytes_ = 0;  // bytes of parts since the last Write
  std::string payload_;
  Compression compression_ = Compression::kNone;  // with which payload_ is to be packed
  PartBuffer buffer_;
  PageRewriterStatistics statistics_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_REWRITE_H_
