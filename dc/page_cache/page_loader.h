// PageLoader: reads pages into memory for callers that found them missing there: many at once, without a thread for
// each (load_thread.h). How a page is loaded, with its races: ../docs/page_loading.md.
//
// A load belongs to one of a few threads, by its page's id. That thread submits the read, reaps it, builds the page,
// installs it and calls the waiters. So no work is handed from thread to thread after the read, and the loads of one
// page meet on one thread, which joins them.
// Thread-safety: all methods from any thread. Ownership: owns its threads; borrows everything else.
#ifndef DC_PAGE_CACHE_PAGE_LOADER_H_
#define DC_PAGE_CACHE_PAGE_LOADER_H_

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
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/load_thread.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct PageLoaderOptions {
  // Number of threads that load; each has a queue. 0: the number of this machine's processors, at most kMaxThreads.
  uint32_t threads = 0;
  static constexpr uint32_t kMaxThreads = 4;
  // Number of reads in flight of all threads together. (Each thread has at least one, and reads the parts of one image
  // together.) More gain little on one device, and each takes a buffer.
  uint32_t reads_in_flight = 64;
};

class PageLoader final : private LoadHost {
 public:
  // `damaged` records the pages that cannot be read; may be null. Returns the error of making a queue.
  static Result<std::unique_ptr<PageLoader>> Create(Runtime& runtime, TreeSource& trees, ReclamationDomain& domain,
                                                    SegmentStore& store, DamagedPages* damaged = nullptr,
                                                    const PageLoaderOptions& options = {});
  // Waits for the loads in flight. REQUIRES: no call is running; no waiter waits.
  ~PageLoader();
  PageLoader(const PageLoader&) = delete;
  PageLoader& operator=(const PageLoader&) = delete;

  // Starts to load the leaf that the target names. Copies the target's key. REQUIRES: no guard is held.
  // true: `waiter`, if not null, is called once. It may have been called already when this returns.
  // false: look up again. The leaf is in memory, or the table is gone; the waiter is not called.
  // CORRUPTION, IO_ERROR: a read of the page has failed a moment ago; the waiter is not called.
  Result<bool> Start(TableId table, const Target& target, LoadUrgency urgency, LoadWaiter* waiter);
  // Starts to load the leaves that Target(key, side) names, in this order, as far as there is memory. None waits for
  // them. The loader logs pages that cannot be read.
  void ReadAhead(TableId table, std::span<const std::string> keys, Side side);

  // Loads the leaf that the target names into memory. Blocks on the disk, but not on memory.
  // OK: look up again. The leaf is in memory, or was for a moment; or the target is in another page by now; or the
  // table is gone.
  // CORRUPTION, IO_ERROR: the page cannot be read; nothing is changed.
  // REQUIRES: no guard is held; not called by a waiter.
  Status Load(TableId table, const Target& target);
  // Loads the leaves that Target(key, side) names, together. Blocks until each was tried. REQUIRES: as Load.
  void LoadAll(TableId table, std::span<const std::string> keys, Side side);

  // --- For the thread that keeps the memory budget.
  // `has_memory(loading_bytes)`: true if a page may be loaded, while pages of that size are being loaded already. It
  // must not block. Null: always true. When SetMemoryGate has returned, no thread calls the earlier function any more.
  void SetMemoryGate(std::function<bool(uint64_t loading_bytes)> has_memory);
  // Some memory was freed: loads that wait for memory ask again. Cheap if there are none.
  void OnMemoryFreed();

  uint64_t loads() const;

 private:
  class Countdown;

  PageLoader(Runtime& runtime, TreeSource& trees, ReclamationDomain& domain, SegmentStore& store,
             DamagedPages* damaged);

  bool BeginLoad(TableId table, const Target& target, PageLoad* load) override;
  Status FinishLoad(TableId table, const Target& target, PageLoad* load, const Status& read) override;
  bool HasMemory(uint64_t loading_bytes) override;

  Runtime& runtime_;
  TreeSource& trees_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  DamagedPages* const damaged_;
  // Held while has_memory_ is called. Loads that are urgent, or without a memory budget, take it only for a look.
  Mutex gate_mutex_;
  std::function<bool(uint64_t)> has_memory_ DEUT_GUARDED_BY(gate_mutex_);
  std::vector<std::unique_ptr<LoadThread>> threads_;  // the last member: they use the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_LOADER_H_
