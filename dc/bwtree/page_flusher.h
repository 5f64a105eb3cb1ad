// PageFlusher: writes images of changed pages to the page store. [Levandoski, Lomet, Sengupta: "LLAMA", PVLDB 6(10), 2013, section 4]
//
// Steps of a page's flush:
//   claim     MappingTable::ClaimImage: one flusher at a time. Before the mark: an image never is followed by that of an older mark
//   mark      head -> FlushMark on head (compare-and-swap, tried a few times). What is below the mark is what is written.
//   encode    what the chain below the mark says that the image does not: as a delta part if that is only records and the image has
//             room for a part, else the page as a whole
//   write     without a guard, a batch of pages at a time: the parts are readable on storage (not durable: that is a checkpoint's business)
//   register  MappingTable::SetImage. From here on the image is the newer one.
//   clean     the mark, or the base page that has swallowed it, is said to be written, if it still is the page's head
// Races. Updates go on all the while; what comes above the mark is not in the image, and the page stays dirty. A page that is freed
//   between encode and register is doomed: register fails, the part is dead.
// An image names pages: a right neighbour, children. It is registered after theirs (LLAMA: a child is stable before its index term), and an
//   inner page's after those of children whose bounds have changed since their image: so when an inner page's image is
//   registered, no child's image is wider than it says; and where they differ at all the inner page has changed since. A child that is split
//   between its encoding and its parent's in one batch would be wider: the parent then waits for the next batch.
// Rule X1: the consolidation bound is loaded before the mark is put on the page; so every update below it is under the mark.
// Thread-safety: one thread. Ownership: of what it has added until Write; borrows the rest.
#ifndef DC_BWTREE_PAGE_FLUSHER_H_
#define DC_BWTREE_PAGE_FLUSHER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_appender.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {

struct PageFlusherStatistics {
  uint64_t base_parts = 0;
  uint64_t delta_parts = 0;
  uint64_t bytes = 0;  // of payload
};

class PageFlusher {
 public:
  static Result<std::unique_ptr<PageFlusher>> Create(const BwTreeEnvironment& environment, SegmentStore& store,
                                                     TreeSource& trees);
  // Gives up what was added and not written.
  ~PageFlusher();
  PageFlusher(const PageFlusher&) = delete;
  PageFlusher& operator=(const PageFlusher&) = delete;

  enum class Added : uint8_t {
    kClean,      // nothing to write
    kAdded,      // will be written, with what its image names
    kBusy,       // others kept changing the page, or the batch is full; after the next Write
    kNotLoaded,  // it has to be written as a whole, so it has to be loaded first
  };
  // Touches no disk. REQUIRES: a guard; the page is the tree's.
  Added Add(BwTree& tree, PageId id);
  // Worth a write; nothing more is added.
  bool full() const { return payloads_.size() >= full_bytes_; }
  bool empty() const { return pending_.empty(); }
  // Writes and registers what was added. After an error nothing of it is registered: RESOURCE_EXHAUSTED may be tried again, with Add.
  // REQUIRES: no guard is held.
  Status Write();

  // For segments begun from now on; at first kOrdinary.
  void SetSpaceUse(SpaceUse use);

  const PageFlusherStatistics& statistics() const { return statistics_; }

 private:
  static constexpr size_t kFullBytes = 1 << 20;

  // A page whose image is on its way.
  struct Pending {
    PartHeader header;
    uint64_t serial;
    size_t begin;  // of its payload
    size_t bytes;
    ImageParts old;
    PageAddress newest;  // once it is appended
  };

  PageFlusher(const BwTreeEnvironment& environment, std::unique_ptr<SegmentAppender> base,
              std::unique_ptr<SegmentAppender> delta, SegmentStore& store, TreeSource& trees);

  // *first: pages that have to be added first; if there are any nothing else was done.
  Added AddOne(BwTree& tree, PageId id, std::vector<PageId>* first);
  Added AddClaimed(BwTree& tree, PageId id, std::vector<PageId>* first);
  const Node* PlaceMark(BwTree& tree, PageId id, const Node* head);
  // False: a page that is being added was split since; it has to be written first, as it was, and then again.
  bool FindUnwritten(const Node* mark, std::vector<PageId>* first) const;
  bool IsMostlyDeleted(PageId id, const Node* mark) const;
  Added Encode(BwTree& tree, PageId id, const Node* mark, Timestamp consolidation);
  // *failed: the appender whose batch is void; null: none.
  Status WriteParts(const SegmentAppender** failed);
  SegmentAppender& AppenderOf(const Pending& pending) {
    return pending.header.kind == PartKind::kBase ? *base_ : *delta_;
  }
  void Register(const Pending& pending);
  // Nothing of what was added is registered.
  void GiveUp(const SegmentAppender* failed);
  void Clear();

  // At most a segment: a batch that finds no room is void as a whole.
  const uint64_t full_bytes_;
  MappingTable& pages_;
  ReclamationDomain& domain_;
  const std::atomic<uint64_t>& consolidation_timestamp_;
  SegmentStore& store_;
  TreeSource& trees_;
  const std::unique_ptr<SegmentAppender> base_;
  const std::unique_ptr<SegmentAppender> delta_;
  std::vector<Pending> pending_;                  // in the order in which images may be registered
  absl::flat_hash_map<PageId, uint64_t> adding_;  // and the serials of their marks
  std::string payloads_;                          // one behind the other
  PageFlusherStatistics statistics_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_FLUSHER_H_
