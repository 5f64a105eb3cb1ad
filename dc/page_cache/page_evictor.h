// PageEvictor: keeps the data component within its memory budget. [LLAMA, PVLDB 6(10), 2013, section 3.3: swapping
// out]
//
// Its thread walks over the leaves as a clock with a second chance. A page that was used since the last visit loses
// its mark. Otherwise the page is evicted if it is clean; if it is dirty, it is written and then evicted.
// Inner pages, and the root of every table, stay: some thousandths of the data.
// Parts. A clean page that a reader has loaded will probably be loaded again, with a device read for each part. If its
//   image has more than two parts, they are merged before it is evicted (PageFlusher::AddMergedParts). It is written in
//   one batch with dirty pages, and evicted in the same step. A dirty page of that kind is left with as few parts. So
//   each page is merged once for each time that its image gets more than two parts.
//   Other pages keep their parts: those that were last loaded for a long scan or a checkpoint, or to be updated or
//   written, also if they were read afterwards; and those that were never loaded. So a long scan of a cold table merges
//   at most the parts of its first few pages.
//   No parts are merged while a thread waits for memory (above the apply limit), after a failed write until one
//   succeeds, and while the disk is short of space. Then clean pages are evicted as they are.
// Updates without their page. Once they are written they serve nobody, so they are evicted without a second chance. If
//   the page's image has no room for another part, the page must be loaded before they can be written, which takes far
//   more memory and time than they do. The next checkpoint has to do that anyway, with the updates that come until then.
//   So the hand passes them, as long as a round over the other pages frees enough. It also passes them after a failed
//   write while the disk is short of space: the pages could not leave memory again, and may be many times larger.
// Scans. A page that is loaded for a long scan (scan_cursor.h), ahead of a scan, or by a checkpoint that has to write
//   it, is transient until a point read or a short scan uses it. Updates leave it transient, as they do not need their
//   page in memory. Long scans set no marks. Transient pages are evicted first, with a second chance of their
//   own, the oldest of them first (transient_pages.h). The hand leaves its place as long as these are enough. So a scan
//   of any length pushes out nothing but its own pages, and takes the room between the low and the high mark.
//   Pages below the youngest place are visited once in an attempt as long as the older places have enough, so that
//   pages that were read ahead stay until the scan gets there.
//   Other pages that nobody uses any more must go all the same. So each attempt for which transient pages are enough
//   moves the hand by 1/kAttemptsOfRotation of all pages. Such an attempt frees a sixteenth of the budget, so a page
//   that is used again while scans load 16 times the budget stays.
// Tables. The hand goes over one table after the other, and then begins with the first one again. So the pages of all
//   tables have the same time for their second chance.
// Slabs. To evict pages leaves room in the slabs in which they lay, and the next pages fill it. After a change of the
//   workload the next pages may have other sizes, and do not. When this room counts (memory_budget.h), the thread
//   empties the thinnest slabs, as many as bring the used bytes to the low mark. It walks over all pages of the
//   component once, and moves those of which a node lies in these slabs, inner pages and roots included
//   (BwTree::Move). An update whose page is on storage cannot be moved, so such a page is written and evicted. So each
//   page is copied at most once for a sixteenth of the budget that is got back. Bases alone take fewer bytes than that.
//   Nothing may be gained, because other nodes hold the slabs. If it is garbage, it comes free soon. If that is not so
//   after a few attempts, pages of other components hold them. Then a sixteenth of the budget is evicted at each
//   attempt.
// Memory levels (memory_budget.h). The thread begins to work above the high mark, and goes on down to the low mark.
//   Above the budget, besides, threads that bring in data wait (WaitForMemory), if they may block. Loads that no thread
//   waits for wait in the loader, which asks AdmitsLoad. A thread that commits, or that answers from memory, never
//   waits.
// If nothing can be evicted (only inner pages are left, or the disk is full), some waiting threads proceed after each
//   attempt (memory_waiters.h). `exhausted` reports that state; the transaction component then refuses puts (rule X7).
//   While it is retired memory that exceeds the budget, no thread proceeds, because that memory will be freed.
//   Each attempt wakes those that wait, and they wake the thread again. So after an attempt that has freed nothing, the
//   thread pauses for kPauseWithoutProgress in any case.
// The same thread merges pages (page_merger.h), because a page must not be evicted while it is merged. It also makes
// the allocator return freed memory (freed_memory_returner.h).
// Thread-safety: all methods from any thread. Ownership: owns its thread; borrows the rest.
#ifndef DC_PAGE_CACHE_PAGE_EVICTOR_H_
#define DC_PAGE_CACHE_PAGE_EVICTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_memory.h"
#include "dc/page_cache/freed_memory_returner.h"
#include "dc/page_cache/memory_budget.h"
#include "dc/page_cache/memory_waiters.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_cache/page_merger.h"

namespace deut::dc {

class PageEvictor {
 public:
  // `budget`: see MemoryBudget; without a limit nothing is evicted. `merge_interval`: see PageMerger.
  // `on_error`: called on the evictor's thread with the reason why pages cannot be written.
  static Result<std::unique_ptr<PageEvictor>> Create(Runtime& runtime, const BwTreeEnvironment& trees,
                                                     SegmentStore& store, TreeSource& source, TableList& tables,
                                                     PageLoader& loader, MemoryBudget budget, Duration merge_interval,
                                                     std::function<void(const Status&)> on_error);
  // The budget of pages in the process's slabs. `limit`: a number of bytes, or a function that returns it.
  template <typename Limit>
  static MemoryBudget BudgetOfPages(std::function<uint64_t()> accounted, Limit limit) {
    return MemoryBudget(std::move(accounted), std::move(limit), PageMemory::FreeBytesOf);
  }
  ~PageEvictor();
  PageEvictor(const PageEvictor&) = delete;
  PageEvictor& operator=(const PageEvictor&) = delete;

  // Called after data was brought in. Cheap.
  void WakeIfOverHighMark();
  // Blocks while the budget is exceeded and the evictor makes progress. A thread that applies the log (kToApply)
  // leaves a sixteenth of the budget to readers, because their pages are the first to be needed again. It does so for
  // at most kMaxApplyWait, because readers that miss all the time would block it for ever. REQUIRES: no guard.
  enum class Purpose : uint8_t { kToRead, kToApply };
  static constexpr Duration kMaxApplyWait = std::chrono::milliseconds(50);
  static constexpr Duration kPauseWithoutProgress = std::chrono::milliseconds(5);
  // A cleared mark is a second chance only if there is time to use the page. Without this pause a page larger than the
  // budget may be evicted again and again before the thread that waited for it runs. The pause follows a round that has
  // evicted nothing. So it guarantees nothing to a thread that loses to rounds that evict other pages, or that does not
  // run within the pause. Such a thread loads the page again.
  static constexpr Duration kSecondChance = std::chrono::milliseconds(1);
  void WaitForMemory(Purpose purpose);
  // The same for the loader, without blocking: true if a page may be loaded now, beside `loading_bytes` of pages that
  // it is loading already. False: the loader asks again when one of those is loaded, or when it is told of freed memory
  // (PageLoader::OnMemoryFreed). A speculative load is only admitted into free room. An overdue one is admitted like a
  // blocked thread, which does not count the pages that are being loaded.
  bool AdmitsLoad(uint64_t loading_bytes, LoadAdmission admission);
  // Bytes that may be brought in without an eviction, for pages that nobody waits for. Cheap.
  uint64_t RoomToFetch() const { return budget_.room_below_high_mark(); }
  // True if nothing more can be evicted, and the budget is exceeded.
  bool exhausted() const { return waiters_.exhausted(); }

  // The bytes that count against the budget.
  uint64_t used_bytes() const { return budget_.used(); }
  // Their limit at this moment; 0: there is none.
  uint64_t limit_bytes() const { return budget_.limit(); }

  uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }
  // Pages that got new memory, so that their slabs could be emptied.
  uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }
  uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }

 private:
  class LeafVisitor;
  class MoveVisitor;
  class FlushVisitor;
  class EvictVisitor;
  static constexpr uint64_t kAttemptsOfRotation = 256;
  using PageSet = absl::flat_hash_set<PageId>;

  PageEvictor(Runtime& runtime, const BwTreeEnvironment& trees, TreeSource& source, TableList& tables,
              PageLoader& loader, MemoryBudget budget, Duration merge_interval,
              std::function<void(const Status&)> on_error, std::unique_ptr<PageFlusher> flusher);

  // Which pages a walk treats: those that were not used since the last visit, the transient ones among these, or those
  // in slabs that are to be emptied.
  enum class Mode : uint8_t { kClock, kTransient, kDrain };
  // The result of a step over the leaves of one parent.
  struct Stepped {
    uint64_t evicted = 0;
    uint64_t visited = 0;
    // A page that the mode treats has lost its mark, is being written by another thread, or found no room in the batch.
    bool kept = false;
  };
  // The clock's hand.
  struct Hand {
    TableId table;                                  // where the next round begins: at this id, or the next larger one
    absl::flat_hash_map<TableId, BwTree::Walk> at;  // where it ended in each table
    int64_t owed = 0;                               // pages that it has to visit although no page must be evicted
    int short_rounds = 0;                           // the last rounds that have not freed enough
  };

  void Run();
  // Returns the number of pages that were evicted or moved.
  uint64_t FreeSome();
  // Pauses after a round that has only cleared marks, for kSecondChance.
  void LeaveSecondChance();
  // Empties slabs if their room counts. Returns the number of pages that were evicted or moved.
  uint64_t DrainSlabs();
  uint64_t DrainTable(TableId table);
  // Evicts transient pages until the accounted bytes are at most `target`. Returns the number of evicted pages.
  uint64_t EvictTransient(uint64_t target);
  // Moves the hand on because transient pages alone were evicted. Returns the number of evicted pages.
  uint64_t AgeOthers();
  // A round over all tables, or until the accounted bytes are at most `target`. Returns the number of evicted pages.
  uint64_t Round(uint64_t target);
  // Moves the hand over the rest of its table and over all others, or until it is `done`.
  uint64_t Sweep(absl::FunctionRef<bool()> done);
  uint64_t SweepTable(TableId table, absl::FunctionRef<bool()> done);
  void NoteEvicted(uint64_t pages);
  // Visits the leaves of one parent, below the walk's bound.
  Stepped Step(TableId table, Mode mode, BwTree::Walk* walk);
  uint64_t EvictWritten(TableId table, BwTree::Walk walk, const PageSet& written);
  // Loads the pages with these upper bounds and hands them to the flusher. They are update chains of pages that are
  // not in memory, too long to be written as one more part. At most kMaxLoadedPerBatch are loaded before they are
  // written and evicted: the evictor must not fill the memory that it frees. Returns the pages that were handed over.
  PageSet LoadSome(TableId table, BwTree::Walk walk, std::span<const std::string> upper_bounds);
  bool stops() const { return stop_.load(std::memory_order_relaxed) != 0; }
  bool ShouldStop(uint64_t target) const { return stops() || budget_.accounted() <= target; }
  // False: the last write has failed, and the next one probably would, too.
  bool HasRoomToWrite() const;
  // True if pages may be loaded to be written.
  bool MayLoad(Mode mode) const;
  // True if no thread waits for memory, and pages can be written.
  bool MayMergeParts() const;
  // Moved pages take twice their memory until no guard sees the old one.
  bool MustStopMoving() const;

  Runtime& runtime_;
  const BwTreeEnvironment trees_;
  TreeSource& source_;
  TableList& tables_;
  PageLoader& loader_;
  const MemoryBudget budget_;
  const std::function<void(const Status&)> on_error_;
  const std::unique_ptr<PageFlusher> flusher_;
  std::atomic<uint32_t> stop_{0};  // 1: the thread ends; a change wakes it
  // Only the evictor's thread uses these.
  PageMerger merger_;
  FreedMemoryReturner returner_;
  Hand hand_;
  bool failing_ = false;
  int idle_drains_ = 0;  // the last drains that have gained nothing

  std::atomic<uint32_t> wakes_{0};  // changes wake the thread
  MemoryWaiters waiters_;
  std::atomic<uint64_t> evictions_{0};
  std::atomic<uint64_t> moves_{0};
  std::atomic<uint64_t> rounds_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_EVICTOR_H_
