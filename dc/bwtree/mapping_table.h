// MappingTable: page id -> the page, the only place that knows where a page is. Replacing the word of an id by compare-and-swap
// is how every change of a page becomes visible (Levandoski, Lomet, Sengupta: "The Bw-Tree", ICDE 2013, sections II and III; "LLAMA",
// PVLDB 6(10), 2013, section 3: the word is a pointer or an address on storage).
//
// States of an id, and who moves it on (all steps are single atomic operations on one word):
//   never used --Allocate--> live     the counter of used ids goes up, then the word is stored
//   live       --Replace--> live      compare-and-swap old head -> new head. The winner owns what it unlinked and retires it;
//                                     the loser still owns what it wanted to install
//   live       --Free--> retired      the word stays until no guard can see the id
//   retired    --reclamation--> limbo the id is pushed onto the list of ids that wait for a checkpoint (compare-and-swap of its top)
//   limbo      --ReuseFreed--> free   the list's ids are pushed onto the list of free ids, once a checkpoint that began after they
//                                     came there is complete: until then an image on storage may name them. Without storage: at once
//   free       --Allocate--> live     popped from the list (compare-and-swap of its top), then the word is stored
// Why the pop has no ABA: an id comes back to the list only through the reclamation domain. A thread that has read the top and
//   its successor inside a guard therefore finds the same id at the top only if it never left the list meanwhile.
// Beside the word lies the page's image: of what parts it consists on storage, whether or not the page is in memory. States of it:
//   unclaimed --ClaimImage--> claimed   compare-and-swap; the winner alone writes an image of the page until it gives the claim back
//   claimed   --SetImage--> claimed     the new parts are there, the caller owns the old ones. Or false: doomed
//   claimed   --ReleaseImage--> unclaimed, or, if doomed, the id goes to limbo
//   unclaimed --ReplaceImage--> unclaimed   another copy of the same image (page_rewrite.h): one compare-and-swap, without a claim
//   any       --TakeImage--> none       when the page is freed. Of a claimed one: doomed; then whoever holds the claim frees the id
// Lists of parts are retired, not deleted: who rewrites segments finds ids in them, and looks at images of pages that are being freed.
// Memory order: Replace and Allocate release the contents of the node, Load acquires them. Nothing here needs a store-load order.
// Thread-safety: all methods from any thread, latch-free. Load, Replace, Allocate, Free and Image need a reclamation guard.
// Ownership: of the address space and the ids; never of the nodes. The domain given to Free must end before the table.
// Limits: `capacity` ids, reserved as address space at once, backed by memory as they are used. Allocate answers kNoPage
//   when all are live; callers turn that into RESOURCE_EXHAUSTED.
#ifndef DC_BWTREE_MAPPING_TABLE_H_
#define DC_BWTREE_MAPPING_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

class MappingTable {
 public:
  // Of address space; of memory, once the id is used.
  static constexpr size_t kBytesPerId = 21;

  // RESOURCE_EXHAUSTED if the system refuses the address space (kBytesPerId for each id).
  static Result<std::unique_ptr<MappingTable>> Create(uint32_t capacity);
  ~MappingTable();
  MappingTable(const MappingTable&) = delete;
  MappingTable& operator=(const MappingTable&) = delete;

  // REQUIRES: `id` is live.
  PageWord LoadWord(PageId id) const { return PageWord(slots_[id.value].word.load(std::memory_order_acquire)); }
  // Its word will be looked at soon.
  void Prefetch(PageId id) const { __builtin_prefetch(&slots_[id.value]); }
  // The head of the page's chain; null if the page is on storage. REQUIRES: `id` is live.
  const Node* Load(PageId id) const { return LoadWord(id).head(); }

  // Replaces `expected` by `desired`. False: somebody else was first and nothing changed.
  [[nodiscard]] bool Replace(PageId id, PageWord expected, PageWord desired) {
    uint64_t word = expected.bits();
    return slots_[id.value].word.compare_exchange_strong(word, desired.bits(), std::memory_order_acq_rel,
                                                         std::memory_order_relaxed);
  }
  [[nodiscard]] bool Replace(PageId id, const Node* expected, const Node* desired) {
    return Replace(id, PageWord::Memory(expected), PageWord::Memory(desired));
  }

  // Second chance: somebody used the page. One load, and a write only if it was not marked.
  void Touch(PageId id) { SetHint(id, kTouched); }
  // Whether the page was used since the last call.
  bool TakeTouch(PageId id) { return TakeHint(id, kTouched); }
  // Most of the page was deleted.
  void SetSparse(PageId id) { SetHint(id, kSparse); }
  bool sparse(PageId id) const { return (hints_[id.value].load(std::memory_order_relaxed) & kSparse) != 0; }
  bool TakeSparse(PageId id) { return TakeHint(id, kSparse); }

  // What the leaf counts for in its tree's statistics; returns what it counted for before.
  uint32_t ExchangeRecords(PageId id, uint32_t records) {
    return records_[id.value].exchange(records, std::memory_order_relaxed);
  }
  uint32_t records(PageId id) const { return records_[id.value].load(std::memory_order_relaxed); }

  // Parts of the page's image; none if it was never written. Any id that was ever given out. REQUIRES: a guard.
  ImageParts Image(PageId id) const;
  bool HasImage(PageId id) const { return (slots_[id.value].image.load(std::memory_order_acquire) & ~kClaimed) != 0; }
  // False: somebody else holds the claim. REQUIRES: `id` is live, a guard.
  [[nodiscard]] bool ClaimImage(PageId id);
  // REQUIRES: the claim. False: the page was freed meanwhile; nothing changed.
  [[nodiscard]] bool SetImage(PageId id, const ImageParts& parts, ReclamationDomain& domain);
  void ReleaseImage(PageId id);
  // Puts `parts`, which say the same, in the place of the image whose newest part is `newest`. False: the page has another image by now, or
  // none, or somebody holds the claim; nothing changed. REQUIRES: a guard. `id` may be free, or be another page by now.
  [[nodiscard]] bool ReplaceImage(PageId id, PageAddress newest, const ImageParts& parts, ReclamationDomain& domain);
  // *parts: the id's image, which is the caller's from now on. True: the caller frees the id; false: the claim's holder will.
  // REQUIRES: no thread but perhaps the claim's holder can see the id, and those who look at the images of all ids (a checkpoint, who
  // rewrites segments).
  [[nodiscard]] bool TakeImage(PageId id, ImageParts* parts, ReclamationDomain& domain);

  // Recovery: the id is live, on storage, with this image. REQUIRES: one thread, nothing else has begun.
  void Restore(PageId id, const ImageParts& parts);
  // Recovery: whether the id, which may be any number, has an image.
  bool MayBeRestored(PageId id) const { return id.value <= capacity_ && id != kNoPage && HasImage(id); }
  // Recovery: notes that the id is named, by its parent or as a root. False: it was named before. From any thread. REQUIRES: MayBeRestored.
  [[nodiscard]] bool Name(PageId id) {
    return (hints_[id.value].fetch_or(kTouched, std::memory_order_relaxed) & kTouched) == 0;
  }
  // Recovery, once for each id: whether it was named.
  bool TakeName(PageId id) { return TakeTouch(id); }
  // Recovery: nothing names the id. Its image is the caller's.
  ImageParts RestoreUnnamed(PageId id, ReclamationDomain& domain);
  // Recovery: ids 1 .. `last` were given out; those of them that are not live are free.
  void RestoreFree(uint64_t last);

  // From now on freed ids wait in limbo. REQUIRES: nothing else has begun.
  void KeepFreedIds() { keep_freed_ = true; }
  // The ids that are in limbo now, as one list for ReuseFreed.
  uint32_t TakeFreed();
  void ReuseFreed(uint32_t list);
  void ReturnFreed(uint32_t list);  // back to limbo

  // A live id whose page is `head`; kNoPage at the limit.
  PageId Allocate(const Node* head);
  // Gives the id back once no guard can see it. REQUIRES: nothing reachable names the id.
  void Free(PageId id, ReclamationDomain& domain);
  // The same at once. REQUIRES: no thread can see the id (as in a deleter of the domain); its image was taken.
  void FreeUnseen(PageId id);

  // Ids that are live or on their way to the free list.
  uint64_t used() const;
  // The largest id that was ever given out.
  uint64_t last_id() const;
  uint64_t capacity() const { return capacity_; }
  // Of ids that were ever given out, and of lists of parts.
  uint64_t memory_bytes() const;

 private:
  struct Slot {
    std::atomic<uint64_t> word;
    // Address of the only part << 2, or an ImageParts (8-byte aligned) and kList; and kClaimed. kDoomed: see TakeImage.
    std::atomic<uint64_t> image;
  };
  static constexpr uint64_t kClaimed = 1;
  static constexpr uint64_t kList = 2;
  static constexpr uint64_t kDoomed = kClaimed | kList;

  static constexpr uint8_t kTouched = 1;
  static constexpr uint8_t kSparse = 2;

  MappingTable(void* memory, uint32_t capacity);

  void SetHint(PageId id, uint8_t hint) {
    if ((hints_[id.value].load(std::memory_order_relaxed) & hint) == 0) {
      hints_[id.value].fetch_or(hint, std::memory_order_relaxed);
    }
  }
  bool TakeHint(PageId id, uint8_t hint) {
    if ((hints_[id.value].load(std::memory_order_relaxed) & hint) == 0) return false;
    hints_[id.value].fetch_and(static_cast<uint8_t>(~hint), std::memory_order_relaxed);
    return true;
  }
  static size_t BytesFor(uint64_t capacity);
  static ImageParts PartsOf(uint64_t image);
  uint64_t ImageOf(const ImageParts& parts);
  // The image's list of parts, if it has one: nobody has seen it; or somebody may.
  void DeleteList(uint64_t image);
  void RetireList(uint64_t image, ReclamationDomain& domain);
  PageId PopFree();
  void Push(PageId id, std::atomic<uint32_t>* top);

  Slot* const slots_;
  std::atomic<uint32_t>* const records_;
  std::atomic<uint8_t>* const hints_;
  const uint64_t capacity_;  // ids 1 .. capacity_; id 0 names no page
  alignas(64) std::atomic<uint64_t> ever_used_{0};
  alignas(64) std::atomic<uint32_t> free_top_{0};
  std::atomic<uint32_t> limbo_top_{0};
  bool keep_freed_ = false;
  std::atomic<uint64_t> free_count_{0};
  alignas(64) std::atomic<uint64_t> lists_{0};  // of parts, of all images
};

}  // namespace deut::dc

#endif  // DC_BWTREE_MAPPING_TABLE_H_
