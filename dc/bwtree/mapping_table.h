// MappingTable: maps a page id to the page. It is the only place that knows where a page is. Every change of a page
// becomes visible by a compare-and-swap of the id's word (Levandoski, Lomet, Sengupta: "The Bw-Tree", ICDE 2013,
// sections II and III; "LLAMA", PVLDB 6(10), 2013, section 3: the word is a pointer or an address on storage).
//
// States of an id, and the steps between them (each step is a single atomic operation on one word):
//   never used --Allocate--> live      the counter of used ids goes up, then the word is stored
//   live       --Replace--> live       compare-and-swap old head -> new head. The winner owns the chain that it
//                                      unlinked and retires it; the loser still owns the node that it wanted to
//                                      install
//   live       --Free--> retired       the word stays until no guard can see the id
//   retired    --reclamation--> limbo  the id is pushed onto the list of ids that wait for a checkpoint
//                                      (compare-and-swap of the list's top)
//   limbo      --ReuseLimboIds--> free    the list's ids are pushed onto the list of free ids, once a checkpoint that
//                                      began after they entered limbo is complete: until then an image on storage
//                                      may name them. A table without storage skips limbo
//   free       --Allocate--> live      popped from the list (compare-and-swap of its top), then the word is stored
// Why the pop has no ABA problem: an id returns to the list only through the reclamation domain. A thread reads the
// top and its successor inside a guard. If it then finds the same id at the top, that id has never left the list
// meanwhile.
// Beside the word lies the page's image: the list of its parts on storage, whether or not the page is in memory.
// States of the image:
//   unclaimed --ClaimImage--> claimed       compare-and-swap. Only the winner writes an image of the page until it
//                                           releases the claim
//   claimed   --SetImage--> claimed         the new parts are installed, and the caller owns the old ones. SetImage
//                                           returns false if the image is doomed
//   claimed   --ReleaseImage--> unclaimed   if the image is doomed, the id goes to limbo instead
//   unclaimed --ReplaceImage--> unclaimed   installs another copy of the same image (page_rewrite.h): one
//                                           compare-and-swap, without a claim
//   any       --TakeImage--> none           when the page is freed. A claimed image becomes doomed; then the holder
//                                           of the claim frees the id
// Lists of parts are retired, not deleted: a cleaner finds ids in old segments, and so reads images of pages that are
// being freed.
// Changed images. A bit for each id tells a checkpoint which images it has to write. A thread that changes an image
// marks the id before its compare-and-swap, and once more after it, both inside one guard. A checkpoint takes the
// marks (exchange with 0), and then reads the images of these ids. So, if all guards held before have ended:
//   The checkpoint finds the mark of each image that was exchanged before it took the marks. Either the first mark is
//   still there, or an earlier checkpoint has taken it before the exchange. That was in a guard that has ended since,
//   so the second mark is there.
//   An image that is exchanged after the checkpoint has read it has its second mark behind that, for the next one.
// With the first mark alone, the second of these would be lost. With the second one alone, a thread that stops after
// its exchange would hide the image of a page from a checkpoint that already relies on it.
// Dirty pages. Another bit for each id tells a checkpoint which pages it has to visit, so that its cost follows the
// changes. A page is dirty when its image lacks something of it (page_state.h).
// States of a page, and the steps between them. "marked": the bit is set, or a checkpoint has taken it and not visited
// the page yet.
//   clean         --MarkDirty--> clean, marked     by the thread that is about to change the page (BwTree::Change). It
//                                                  costs a load, and a write only if the bit is not set
//   clean, marked --Replace--> dirty, marked       the change, inside the same guard as MarkDirty. Later changes find a
//                                                  delta on the page, and need not mark it
//   any, marked   --TakeDirty, visit--> any        a checkpoint takes the bits (exchange with 0), waits until all
//                                                  guards held then have ended, and visits these pages. A page that it
//                                                  finds dirty gets the mark of a flush, so the next change marks it
//                                                  anew
// So no page is dirty without being marked, unless it is being written. If it cannot be written, the checkpoint keeps
// what it has taken for the next one. Races of a thread that changes a clean page with a checkpoint:
//   mark, take, replace, visit    The checkpoint waits for the thread's guard, and finds the change.
//   take, mark, replace, visit    The checkpoint writes the change, which may be too new for it to need. The bit stays
//                                 for the next one, which finds a clean page.
//   take, visit, mark, replace    The bit stays for the next checkpoint, to which the change belongs.
//   The bit was set, so the thread does not write it, and then it is taken: like the first. The thread has loaded it
//   inside its guard.
//   The head told that the page is marked, and then the page is visited. The visit puts the mark of a flush on that
//   head, so the thread loses its compare-and-swap, and the new head tells it to mark the page.
// A thread whose guard the checkpoint has not waited for sees that the bits were taken (reclamation.h, "Why it is
// safe"). So it does not load an older bit.
// Without the wait, "mark, take, visit, replace" leaves a dirty page without a mark. No later change of it sets one,
// and no checkpoint contains its changes, whatever position it claims.
// Memory order: Replace and Allocate release the contents of the node, Load acquires them. No method needs a
// store-load order.
// Thread-safety: all methods may be called from any thread, latch-free. Load, Replace, Allocate, Free and Image need
// a reclamation guard.
// Ownership: the table owns the address space and the ids, never the nodes. The domain given to Free must end before
// the table.
// Errors: there are at most `capacity` ids. Their address space is reserved at once, and memory backs it as ids are
// used. Allocate returns kNoPage when all ids are live; callers turn that into RESOURCE_EXHAUSTED.
#ifndef DC_BWTREE_MAPPING_TABLE_H_
#define DC_BWTREE_MAPPING_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

class MappingTable {
 public:
  // Bytes of address space for each id; bytes of memory once the id is used. The bits for changed images and for dirty
  // pages come on top.
  static constexpr size_t kBytesPerId = 21;
  // Marks of changed images, and of dirty pages, that are taken together: those of the ids from 64 * i to 64 * i + 63.
  static constexpr uint64_t kMarksPerWord = 64;

  // Returns RESOURCE_EXHAUSTED if the system refuses the address space (kBytesPerId for each id).
  static Result<std::unique_ptr<MappingTable>> Create(uint32_t capacity);
  ~MappingTable();
  MappingTable(const MappingTable&) = delete;
  MappingTable& operator=(const MappingTable&) = delete;

  // REQUIRES: `id` is live.
  PageWord LoadWord(PageId id) const { return PageWord(slots_[id.value].word.load(std::memory_order_acquire)); }
  // Prefetches the id's word.
  void Prefetch(PageId id) const { __builtin_prefetch(&slots_[id.value]); }
  // The head of the page's chain; null if the page is on storage. REQUIRES: `id` is live.
  const Node* Load(PageId id) const { return LoadWord(id).head(); }

  // Replaces `expected` by `desired`. False: another thread was first, and nothing changed.
  [[nodiscard]] bool Replace(PageId id, PageWord expected, PageWord desired) {
    uint64_t word = expected.bits();
    return slots_[id.value].word.compare_exchange_strong(word, desired.bits(), std::memory_order_acq_rel,
                                                         std::memory_order_relaxed);
  }
  [[nodiscard]] bool Replace(PageId id, const Node* expected, const Node* desired) {
    return Replace(id, PageWord::Memory(expected), PageWord::Memory(desired));
  }

  // Second chance: marks the page as used, and as one that stays. It takes one load, and a write only if a mark
  // changes.
  void MarkUsed(PageId id) {
    const uint8_t marks = marks_[id.value].load(std::memory_order_relaxed);
    if ((marks & (kUsed | kTransient)) == kUsed) [[likely]]
      return;
    if ((marks & kTransient) != 0) (void)TestAndClearTransient(id);
    SetMark(id, kUsed);
  }
  // Second chance for a page that was updated. A transient page stays transient: an update does not need its page in
  // memory.
  void MarkUpdated(PageId id) { SetMark(id, kUsed); }
  bool used(PageId id) const { return (marks_[id.value].load(std::memory_order_relaxed) & kUsed) != 0; }
  // Returns whether the page was used since the last call, and clears the mark.
  bool TestAndClearUsed(PageId id) { return TestAndClearMark(id, kUsed); }
  // Marks a page that comes into memory. `transient`: only long scans, a checkpoint or updates use it,
  // until MarkUsed is called.
  void MarkLoaded(PageId id, bool transient) {
    SetMark(id, kUsed);
    if (transient) {
      SetMark(id, kTransient);
    } else {
      (void)TestAndClearTransient(id);
    }
  }
  bool transient(PageId id) const { return (marks_[id.value].load(std::memory_order_relaxed) & kTransient) != 0; }
  // Marks a page of which most was deleted.
  void SetSparse(PageId id) { SetMark(id, kSparse); }
  bool sparse(PageId id) const { return (marks_[id.value].load(std::memory_order_relaxed) & kSparse) != 0; }
  bool TestAndClearSparse(PageId id) { return TestAndClearMark(id, kSparse); }
  // Notes whether a page that leaves memory is too large for a merge, which its image does not tell if it is compressed.
  void NoteLarge(PageId id, bool large) {
    if (large) {
      SetMark(id, kLarge);
    } else {
      (void)TestAndClearMark(id, kLarge);
    }
  }
  bool large(PageId id) const { return (marks_[id.value].load(std::memory_order_relaxed) & kLarge) != 0; }

  // Notes whether a page is loaded for a reader that may need it again. Then fewer parts of its image save device reads
  // (delta_choice.h).
  void NoteRead(PageId id, bool read) {
    if (read) {
      SetMark(id, kRead);
    } else {
      (void)TestAndClearMark(id, kRead);
    }
  }
  bool read(PageId id) const { return (marks_[id.value].load(std::memory_order_relaxed) & kRead) != 0; }

  // Sets the number of records that the leaf counts for in its tree's statistics; returns the number before.
  uint32_t ExchangeRecords(PageId id, uint32_t records) {
    return records_[id.value].exchange(records, std::memory_order_relaxed);
  }
  uint32_t records(PageId id) const { return records_[id.value].load(std::memory_order_relaxed); }

  // Returns the parts of the page's image; none if it was never written. Accepts any id that was ever allocated.
  // REQUIRES: a guard.
  ImageParts Image(PageId id) const;
  bool HasImage(PageId id) const { return (slots_[id.value].image.load(std::memory_order_acquire) & ~kClaimed) != 0; }
  // False: another thread holds the claim, or has just replaced the image. REQUIRES: `id` is live, a guard.
  [[nodiscard]] bool ClaimImage(PageId id);
  // REQUIRES: the claim, a guard. False: the page was freed meanwhile, and nothing changed.
  [[nodiscard]] bool SetImage(PageId id, const ImageParts& parts, ReclamationDomain& domain);
  void ReleaseImage(PageId id);
  // Installs `parts`, which have the same content, in place of the image whose newest part is `newest`. False:
  // nothing changed, because the page has a different image by now, or none, or another thread holds the claim. `id`
  // may be free, or name a different page by now. REQUIRES: a guard.
  [[nodiscard]] bool ReplaceImage(PageId id, PageAddress newest, const ImageParts& parts, ReclamationDomain& domain);
  // *parts: the id's image, which the caller owns from now on. True: the caller frees the id; false: the holder of
  // the claim will. REQUIRES: only the holder of the claim can see the id, besides the threads that read the images
  // of all ids (a checkpoint, the cleaner).
  [[nodiscard]] bool TakeImage(PageId id, ImageParts* parts, ReclamationDomain& domain);

  // Notes that the next checkpoints have to write the id's image, or that it has none.
  void MarkChanged(PageId id) {
    changed_[id.value / kMarksPerWord].fetch_or(uint64_t{1} << (id.value % kMarksPerWord), std::memory_order_acq_rel);
  }
  // Takes all marks of changed images: calls `take(i, marks)` for each word `i` with some, in ascending order.
  template <typename Take>
  void TakeChanged(Take&& take) {
    TakeMarks(changed_, std::forward<Take>(take));
  }

  // Notes that the next checkpoint has to visit the page. Called before the page is changed. REQUIRES: a guard, which
  // the caller holds until it has changed the page.
  void MarkDirty(PageId id) {
    std::atomic<uint64_t>& marks = dirty_[id.value / kMarksPerWord];
    const uint64_t mark = uint64_t{1} << (id.value % kMarksPerWord);
    // Most pages are marked already. All threads share the word, so they only read it then.
    if ((marks.load(std::memory_order_relaxed) & mark) == 0) marks.fetch_or(mark, std::memory_order_acq_rel);
  }
  // Takes all marks of dirty pages, as TakeChanged.
  template <typename Take>
  void TakeDirty(Take&& take) {
    TakeMarks(dirty_, std::forward<Take>(take));
  }

  // Recovery: ids up to `last` will be restored, or were allocated.
  void RestoreUpTo(PageId last);
  // Recovery: makes the id live, on storage, with this image. False: it is live already, and keeps its image. Several
  // threads may restore different ids. If two restore the same one at once, both calls may return true, and a list of
  // parts may leak: the caller gives the table up then. REQUIRES: nothing else has begun.
  bool Restore(PageId id, const ImageParts& parts);
  // Recovery: returns whether the id, which may be any number, has an image.
  bool MayBeRestored(PageId id) const { return id.value <= capacity_ && id != kNoPage && HasImage(id); }
  // Recovery: prefetches what MayBeRestored and MarkNamed need of the id, which may be any number.
  void PrefetchRestored(PageId id) const {
    if (id.value > capacity_) return;
    Prefetch(id);
    __builtin_prefetch(&marks_[id.value], /*rw=*/1);
  }
  // Recovery: notes that a parent names the id, or that it is a root. False: it was named before. May be called from
  // any thread. REQUIRES: MayBeRestored.
  [[nodiscard]] bool MarkNamed(PageId id) {
    return (marks_[id.value].fetch_or(kUsed, std::memory_order_relaxed) & kUsed) == 0;
  }
  // Recovery: returns whether the id was named. Called once for each id, when all names are marked. Several threads may
  // ask for different ids.
  bool TestAndClearNamed(PageId id) {
    // No other thread uses the id, so two accesses are enough, and cost a start less than an exchange.
    const uint8_t marks = marks_[id.value].load(std::memory_order_relaxed);
    if ((marks & kUsed) == 0) return false;
    marks_[id.value].store(static_cast<uint8_t>(marks & ~kUsed), std::memory_order_relaxed);
    return true;
  }
  // Recovery: nothing names the id. The caller owns its image from now on. Several threads may do this for different
  // ids.
  ImageParts RestoreUnnamed(PageId id, ReclamationDomain& domain);
  // Recovery: sets the number of records of a leaf for which ExchangeRecords was not called. As RestoreUnnamed.
  void RestoreRecords(PageId id, uint32_t records) { records_[id.value].store(records, std::memory_order_relaxed); }
  // Ids that are linked in ascending order, to become free.
  struct FreeIds {
    uint32_t first = 0;  // 0: there is none
    uint32_t last = 0;
    uint64_t count = 0;
  };
  // Recovery: links the ids from `first` to the one before `end` that are not live. Several threads may link the ids of
  // different ranges. REQUIRES: end <= capacity() + 1.
  FreeIds LinkUnused(uint64_t first, uint64_t end);
  // Recovery: ids 1 .. `last` were allocated; those of them that are not live become free. `ranges`: the results of
  // LinkUnused for ranges that have them all, in ascending order.
  void RestoreFree(uint64_t last, std::span<const FreeIds> ranges);
  // The same with one range.
  void RestoreFree(uint64_t last) {
    const FreeIds all = LinkUnused(1, last + 1);
    RestoreFree(last, {&all, 1});
  }

  // From now on freed ids wait in limbo. REQUIRES: nothing else has begun.
  void KeepFreedIds() { keep_freed_ = true; }
  // Takes the ids that are in limbo now, as one list for ReuseLimboIds.
  uint32_t TakeLimboIds();
  void ReuseLimboIds(uint32_t list);
  void ReturnLimboIds(uint32_t list);  // back to limbo

  // Returns a live id whose page is `head`, without marks; kNoPage at the limit.
  PageId Allocate(const Node* head);
  // Frees the id once no guard can see it. REQUIRES: nothing reachable names the id.
  void Free(PageId id, ReclamationDomain& domain);
  // Frees the id at once. REQUIRES: no thread can see the id (as in a deleter of the domain), and its image was
  // taken.
  void FreeUnseen(PageId id);

  // Number of ids that are live or on their way to the free list.
  uint64_t used() const;
  // The largest id that was ever allocated.
  uint64_t last_id() const;
  uint64_t capacity() const { return capacity_; }
  // Memory of the ids that were ever allocated, and of lists of parts.
  uint64_t memory_bytes() const;
  // Memory of lists of parts.
  uint64_t list_bytes() const { return lists_.load(std::memory_order_relaxed) * sizeof(ImageParts); }

 private:
  struct Slot {
    std::atomic<uint64_t> word;
    // Either (address of the only part << 2), or a pointer to an ImageParts (8-byte aligned) with kList set. kClaimed
    // may be set in both. kDoomed: see TakeImage.
    std::atomic<uint64_t> image;
  };
  static constexpr uint64_t kClaimed = 1;
  static constexpr uint64_t kList = 2;
  static constexpr uint64_t kDoomed = kClaimed | kList;

  static constexpr uint8_t kUsed = 1;
  static constexpr uint8_t kSparse = 2;
  static constexpr uint8_t kTransient = 4;
  static constexpr uint8_t kLarge = 8;
  static constexpr uint8_t kRead = 16;

  MappingTable(void* memory, uint32_t capacity);

  bool TestAndClearTransient(PageId id) { return TestAndClearMark(id, kTransient); }
  void SetMark(PageId id, uint8_t mark) {
    if ((marks_[id.value].load(std::memory_order_relaxed) & mark) == 0) {
      marks_[id.value].fetch_or(mark, std::memory_order_relaxed);
    }
  }
  bool TestAndClearMark(PageId id, uint8_t mark) {
    if ((marks_[id.value].load(std::memory_order_relaxed) & mark) == 0) return false;
    marks_[id.value].fetch_and(static_cast<uint8_t>(~mark), std::memory_order_relaxed);
    return true;
  }
  static size_t BytesFor(uint64_t capacity);
  static size_t WordsOfMarks(uint64_t capacity) { return capacity / kMarksPerWord + 1; }
  template <typename Take>
  void TakeMarks(std::atomic<uint64_t>* words, Take&& take) {
    for (uint64_t i = 0; i <= last_id() / kMarksPerWord; ++i) {
      if (words[i].load(std::memory_order_relaxed) == 0) continue;
      take(i, words[i].exchange(0, std::memory_order_acq_rel));
    }
  }
  static ImageParts PartsOf(uint64_t image);
  uint64_t ImageOf(const ImageParts& parts);
  // Free the image's list of parts, if it has one. DeleteList: no other thread has seen the list. RetireList: another
  // thread may still see it.
  void DeleteList(uint64_t image);
  void RetireList(uint64_t image, ReclamationDomain& domain);
  PageId PopFree();
  void Push(PageId id, std::atomic<uint32_t>* top);

  Slot* const slots_;
  std::atomic<uint64_t>* const changed_;  // a bit for each id, as in dirty_
  std::atomic<uint64_t>* const dirty_;
  std::atomic<uint32_t>* const records_;
  std::atomic<uint8_t>* const marks_;
  const uint64_t capacity_;  // ids 1 .. capacity_; id 0 names no page
  alignas(64) std::atomic<uint64_t> ever_used_{0};
  alignas(64) std::atomic<uint32_t> free_top_{0};
  std::atomic<uint32_t> limbo_top_{0};
  bool keep_freed_ = false;
  std::atomic<uint64_t> free_count_{0};
  alignas(64) std::atomic<uint64_t> lists_{0};  // lists of parts, of all images
};

}  // namespace deut::dc

#endif  // DC_BWTREE_MAPPING_TABLE_H_
