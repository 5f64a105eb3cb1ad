// PageLoader: reads pages into memory for callers that found them missing there: many at once, without a thread for
// each (load_thread.h). How a page is loaded, with its races: ../docs/page_loading.md.
//
// A load belongs to one of a few threads, by its page's id. That thread submits the read, reaps it, builds the page,
// installs it and calls the waiters. So no work is handed from thread to thread after the read, and the loads of one
// page meet on one thread, which joins them. Only files that are not open are opened on a thread of their own.
// Thread-safety: all methods from any thread. Ownership: owns its threads; borrows everything else.
#ifndef DC_PAGE_CACHE_PAGE_LOADER_H_
#define DC_PAGE_CACHE_PAGE_LOADER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/file_opener.h"
#include "dc/page_cache/load_thread.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/page_cache/transient_pages.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct PageLoaderOptions {
  // Number of threads that load; each has a queue. 0: the number of this machine's processors, at most kMaxThreads.
  uint32_t threads = 0;
  static constexpr uint32_t kMaxThreads = 4;
  // Number of parts of pages that all threads together are reading, or have read and not installed yet. The threads
  // share it, so there are at most as many threads. The parts of one image are read together: a thread whose share is
  // smaller reads such an image alone. More reads gain little on one device, and each takes a buffer.
  uint32_t reads_in_flight = 64;
};

class PageLoader final : private LoadHost {
 public:
  // `damaged` records the pages that cannot be read; may be null. Returns the error of making a queue.
  static Result<std::unique_ptr<PageLoader>> Create(Runtime& runtime, TreeSource& trees, ReclamationDomain& domain,
                                                    SegmentStore& store, DamagedPages* damaged = nullptr,
                                                    const PageLoaderOptions& options = {});
  // Waits for the reads in flight. Loads that nobody waits for, and that have not begun to read, are given up.
  // REQUIRES: no call is running; no waiter waits.
  ~PageLoader();
  PageLoader(const PageLoader&) = delete;
  PageLoader& operator=(const PageLoader&) = delete;

  // Starts to load the leaf that the target names. Copies the target's key. REQUIRES: no guard is held.
  // true: `waiter`, if not null, is called once. It may have been called already when this returns.
  // false: look up again. The leaf is in memory, or the table is gone; the waiter is not called.
  // CORRUPTION, IO_ERROR: a read of the page has failed a moment ago; the waiter is not called.
  Result<bool> Start(TableId table, const Target& target, LoadUrgency urgency, LoadWaiter* waiter,
                     PageStay stay = PageStay::kLasting);
  // Starts to load the leaves that Target(key, side) names, in this order, as transient pages. Nobody waits for
  // them, so they wait for all other loads, and never for memory: the loader gives them up when memory is short, or
  // when it ends. It logs pages that cannot be read.
  void ReadAhead(TableId table, std::span<const std::string> keys, Side side);

  // For a waiter inside OnLoaded that has more to do: calls waiter->OnLoaded again, with OK, on the same thread. Other
  // loads and waiters have their turns in between.
  static void CallAgain(LoadWaiter* waiter) { LoadThread::CallAgain(waiter); }
  // True on a thread of any loader.
  static bool OwnsThisThread() { return LoadThread::IsCurrent(); }

  // Loads the leaf that the target names into memory. Blocks on the disk, but not on memory.
  // OK: look up again. The leaf is in memory, or was for a moment; or the target is in another page by now; or the
  // table is gone.
  // CORRUPTION, IO_ERROR: the page cannot be read; nothing is changed.
  // REQUIRES: no guard is held; not called by a waiter.
  Status Load(TableId table, const Target& target, PageStay stay = PageStay::kLasting);
  // Loads the leaves that Target(key, side) names, together, by default so that they can be written. Blocks until each
  // was tried. Returns the first error among them, in the order of `keys`; the leaves without an error are as after
  // Load. REQUIRES: as Load.
  Status LoadAll(TableId table, std::span<const std::string> keys, Side side, PageStay stay = PageStay::kToWrite);

  // --- For the thread that keeps the memory budget.
  // `has_memory(loading_bytes, admission)`: true if a page may be loaded, while pages of that size are being loaded
  // already. It must not block. Null: always true. When SetMemoryGate has returned, no thread calls the earlier
  // function any more.
  using MemoryGate = std::function<bool(uint64_t loading_bytes, LoadAdmission admission)>;
  void SetMemoryGate(MemoryGate has_memory);
  // Where the transient pages are that were loaded.
  TransientPages& transient_pages() { return transient_; }
  // Some memory was freed: loads that wait for memory ask again. Cheap if there are none.
  void OnMemoryFreed();

  uint64_t loads() const;

 private:
  class Countdown;

  PageLoader(Runtime& runtime, TreeSource& trees, ReclamationDomain& domain, SegmentStore& store,
             DamagedPages* damaged);
  // Starts threads that share the reads. An error: `threads_` has those for which there is a queue.
  Status StartThreads(uint32_t threads, uint32_t reads_in_flight);

  bool BeginLoad(TableId table, const Target& target, PageLoad* load) override;
  Status FinishLoad(TableId table, const Target& target, PageLoad* load, const Status& read) override;
  bool HasMemory(LoadAdmission admission) override;
  void AddLoading(int64_t bytes) override { loading_bytes_.fetch_add(static_cast<uint64_t>(bytes)); }

  Runtime& runtime_;
  TreeSource& trees_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  DamagedPages* const damaged_;
  // Held while has_memory_ is called. Loads that are urgent, or without a memory budget, take it only for a look.
  Mutex gate_mutex_;
  MemoryGate has_memory_ DEUT_GUARDED_BY(gate_mutex_);
  std::atomic<uint64_t> loading_bytes_{0};  // size of the pages that all threads are reading
  TransientPages transient_;
  FileOpener opener_;
  std::vector<std::unique_ptr<LoadThread>> threads_;  // the last member: they use the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_LOADER_H_
