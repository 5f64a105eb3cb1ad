// PageFlusher: writes images of changed pages to the page store. [Levandoski, Lomet, Sengupta: "LLAMA", PVLDB 6(10),
// 2013, section 4]
//
// Steps of a page's flush:
//   claim     MappingTable::ClaimImage admits one flusher at a time. The claim precedes the mark, so that the image
//             of an older mark never replaces that of a newer one
//   mark      head -> FlushMark on head (compare-and-swap, tried a few times). The flush writes the nodes below the
//             mark.
//   encode    encodes what the chain below the mark has and the image lacks, as a delta part; or what the base part
//             lacks, as a delta part that replaces the others; or the whole page. delta_choice.h decides which. If the
//             page has lost something that the image still has (RemovalsOf), it is always the whole page. If the image
//             lacks nothing, the mark is set to written at once
//   write     without a guard, a batch of pages at a time. Parts of a table with compression are packed here
//             (part_compression.h). The parts are readable on storage, but not durable: a
//             checkpoint makes them durable
//   register  MappingTable::SetImage. From here on the image is the newer one.
//   clean     sets StoredState::in of the mark, or of the base page that has absorbed the mark as its newest node. If
//             that node still is the page's head, the page is clean
// Steps of a merge of parts (AddMergedParts), for a page that is clean and about to leave memory: claim, encode, write
// and register. There is no mark: the page stays clean, the new image has the same content as the old one, and what the
// page says of its image stays right. The chain's head is loaded after the claim, and must be clean then. With an older
// head, another flush could have written newer updates before the claim, and the merged part would lack them.
// How a page knows what its image lacks: each record says in which kind of part the image has it (StoredIn). A delta
// says it by the newest written node above it, an entry of a base page also by two bits. RemovalsOf says it of records
// that have left the page.
// The states of a record, and the steps between them:
//   kNoPart -> kDeltaPart   `clean` of a delta part
//   any     -> kBasePart    `clean` of the whole page
//   any     -> kNoPart      an update, which is another version
// A consolidation copies what it finds (consolidate.cc), and a load sets it anew (page_load.cc).
// Why a record never claims more than the image has: the image only gains versions, except by `register` of a whole
// page. That page has them too, or has dropped them by rule X1. The cleaner moves content from delta parts to base
// parts, never back.
// Races. Updates continue all the while. A delta above the mark is not in the image, so the page stays dirty.
//   A consolidation takes the mark away before `clean`. If the mark was the newest node, the base page has its serial,
//   so `clean` finds that. Else the flush leaves no trace in memory: the base page claims less than the image has, and
//   the next flush writes some records again. A tombstone that was dropped counts as lost without a trace on storage
//   then, and the whole page is written.
//   The cleaner never replaces the image while the flush holds the claim.
//   A failed write registers nothing and changes no state. The image lacks the same as before.
//   An eviction takes only clean pages, of which the image lacks nothing.
//   A page that is freed between encode and register is doomed: register fails, and the part is dead.
// Order of registration. An image names pages: a right neighbour, children. The rules are:
// - An image is registered after the images of the pages that it names (LLAMA: a child is stable before its index
//   term).
// - An inner page's image is also registered after those of the children whose bounds have changed since their image.
//   So no child's image is wider than a registered inner page's image states. Where the two differ at all, the inner
//   page has changed since.
// - A child may be split between its own encoding and its parent's in one batch. Its image would then be wider, so
//   the parent waits for the next batch.
// Rule X1: the flusher loads the consolidation bound before it puts the mark on the page. So every update below the
// bound is under the mark.
// Thread-safety: one thread. Ownership: owns the added payloads until Write; borrows the rest.
#ifndef DC_BWTREE_PAGE_FLUSHER_H_
#define DC_BWTREE_PAGE_FLUSHER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/compression.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/delta_choice.h"
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
  uint64_t bytes = 0;  // bytes of payload
};

class PageFlusher {
 public:
  static Result<std::unique_ptr<PageFlusher>> Create(const BwTreeEnvironment& environment, SegmentStore& store,
                                                     TreeSource& trees);
  // Drops the pages that were added but not written.
  ~PageFlusher();
  PageFlusher(const PageFlusher&) = delete;
  PageFlusher& operator=(const PageFlusher&) = delete;

  enum class Added : uint8_t {
    kClean,  // nothing to write
    kAdded,  // will be written, with the pages that its image names
    kBusy,   // other threads kept changing the page, the batch is full, or very many pages must be written first, of
             // which some were added; the caller retries after the next Write
    kNotLoaded,  // the image has no room for another part, so the page must be loaded first
  };
  // Adds the page to the batch. It does no disk I/O. REQUIRES: a guard; the page belongs to the tree.
  Added Add(BwTree& tree, PageId id);
  // From now on, if the disk is not short of space, parts of pages that readers load are merged (delta_choice.h). This
  // is for a flusher whose pages leave memory once they are written. REQUIRES: no guard is held, nothing is added.
  void SetMergesParts(bool merges);
  // Adds a clean page whose image has more parts than it should leave memory with. False: the page is not like that, or
  // cannot be added now, or merges of parts are not on. REQUIRES: as Add.
  [[nodiscard]] bool AddMergedParts(BwTree& tree, PageId id);
  // True: the batch is large enough to be written, and Add accepts no more.
  bool full() const { return payloads_.size() >= full_bytes_; }
  bool empty() const { return pending_.empty(); }
  // Writes and registers the added pages. After an error none of them is registered. After RESOURCE_EXHAUSTED the
  // caller may retry, with Add. REQUIRES: no guard is held.
  Status Write();

  // True if the disk has so little free space that ordinary writes are refused, or soon will be. REQUIRES: no guard is
  // held.
  bool IsShortOfSpace() const { return store_.IsShortOfSpace(); }
  // Sets the use of segments that begin from now on; initially kOrdinary.
  void SetSpaceUse(SpaceUse use);

  const PageFlusherStatistics& statistics() const { return statistics_; }

 private:
  static constexpr size_t kFullBytes = 1 << 20;

  // A page whose image is not registered yet.
  struct Pending {
    PartHeader header;
    uint64_t serial;
    size_t begin;  // start of its payload in payloads_
    size_t bytes;
    Compression compression;
    ImageParts old;
    size_t kept = 0;           // number of the oldest parts of `old` that stay in the image
    bool only_merges = false;  // the new image has the content of the old one
    PageAddress newest;        // its address, once it is appended
  };

  PageFlusher(const BwTreeEnvironment& environment, std::unique_ptr<SegmentAppender> base,
              std::unique_ptr<SegmentAppender> delta, SegmentStore& store, TreeSource& trees);

  // *first: the pages that must be added first. If there are any, the method did nothing else.
  Added AddIfReady(BwTree& tree, PageId id, std::vector<PageId>* first);
  Added AddClaimed(BwTree& tree, PageId id, std::vector<PageId>* first);
  const Node* PlaceMark(BwTree& tree, PageId id, const Node* head);
  // Collects the pages that must be registered first. False: a child in the current batch was split since its
  // encoding. That child's image is written as encoded, and then again.
  bool CollectPrerequisites(const Node* mark, std::vector<PageId>* first) const;
  bool IsMostlyDeleted(PageId id, const Node* mark) const;
  enum class Delta : uint8_t { kNone, kUnneeded, kEncoded };
  // kNone: the whole page must be written. kUnneeded: the image lacks nothing. REQUIRES: a leaf with an image.
  Delta EncodeDelta(const Node* mark, Pending* pending);
  // Encodes one delta part in place of all. `changed`: bytes of a part with what the image lacks, which is cut off (it
  // is all from pending->begin on), or 0. False: that does not pay, or is impossible, and nothing changed.
  bool EncodeMergedDelta(const Node* head, const DeltaChoice& choice, uint64_t changed, Pending* pending);
  void EncodeWhole(const Node* head, Timestamp consolidation, Pending* pending);
  DeltaChoice ChoiceFor(const Node* head, const Pending& pending) const;
  // True if the page's image may be read again, so that fewer parts save more than they cost.
  bool IsReadAgain(PageId id, const Node* head) const;
  Pending NewPending(const BwTree& tree, PageId id, const Node* head, uint64_t serial) const;
  void AddPending(Pending* pending);
  Added Encode(BwTree& tree, PageId id, const Node* mark, Timestamp consolidation);
  // *failed: the appender whose batch is void; null if there is none.
  Status WriteParts(const SegmentAppender** failed);
  SegmentAppender& AppenderOf(const Pending& pending) {
    return pending.header.kind == PartKind::kBase ? *base_ : *delta_;
  }
  void CountWritten(const Pending& pending);
  void Register(const Pending& pending);
  // Drops all added pages; none is registered.
  void GiveUp(const SegmentAppender* failed);
  void Clear();

  // At most one segment: a batch that finds no room is void as a whole.
  const uint64_t full_bytes_;
  MappingTable& pages_;
  ReclamationDomain& domain_;
  const std::atomic<uint64_t>& consolidation_timestamp_;
  SegmentStore& store_;
  TreeSource& trees_;
  FlushedBytes* const flushed_;
  const std::unique_ptr<SegmentAppender> base_;
  const std::unique_ptr<SegmentAppender> delta_;
  std::vector<Pending> pending_;                  // in the order in which images may be registered
  absl::flat_hash_map<PageId, uint64_t> adding_;  // serials of the marks of the pages in pending_
  std::string payloads_;                          // payloads of pending_, concatenated
  // At the last Write: the disk is not asked under a guard, nor for each page.
  bool short_of_space_;
  bool merges_parts_ = false;
  PageFlusherStatistics statistics_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_FLUSHER_H_
