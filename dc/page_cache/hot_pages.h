// HotPages: after a start, brings the pages back into memory that were there before. Otherwise each leaf would be read
// by the first request that misses it, one random read after the other.
//
// Recording. After a checkpoint, Record writes the ids of the leaves that are in memory (page_store/hot_page_list.h).
// Fetching. The object's thread reads that list once, at its start, and fetches the pages beside all other work. A
//   second thread helps it. Both take windows of the plan (hot_page_plan.h) and read them (hot_page_reader.h).
// States of the fetch, in this order; `ended` is final:
//   planning   the list is read; the places of the pages are looked up
//   fetching   some windows are not taken yet
//   ended      the last window is done; or memory, descriptors or kernel memory were short; or the object ends; or
//              there is no list
// Memory. A window begins only if it fits below the high mark of the budget (load.hot_room). It counts with twice its
//   bytes, because a page takes more in memory, and beside the window of the other thread. Compressed pages may take
//   still more, so each page must fit, too, when it is known how large it is. So the fetch evicts nothing.
//   If a window or a page does not fit, the fetch ends: from then on the memory belongs to the pages that requests bring in. If
//   the budget is smaller than the list from the start, the pages that had been used come first.
// Recording while fetching. Record does nothing before the fetch has ended (load.hot_list_kept). Otherwise a crash soon
//   after a start would leave a list of the few pages that had come back by then.
// Priority. Requests never wait for the fetch, except at the device: there a read waits behind kRunsInFlight runs of
//   each thread at most.
// Errors. A list that is missing, damaged or of another version means a cold start. A list of another version is never
//   replaced (rule V). A list that cannot be written is logged. Nothing else depends on it.
// Thread-safety: Record by one thread at a time; the others from any thread. Ownership: owns its threads; borrows the
// rest.
#ifndef DC_PAGE_CACHE_HOT_PAGES_H_
#define DC_PAGE_CACHE_HOT_PAGES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/bwtree_environment.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/hot_page_plan.h"
#include "dc/page_cache/hot_page_reader.h"
#include "dc/page_store/hot_page_list.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct HotPagesEnvironment {
  Runtime& runtime;
  Storage& storage;
  std::string directory;  // of the list
  BwTreeEnvironment trees;
  SegmentStore& store;
  TreeSource& source;
  TableList& tables;
  // Bytes that may be brought in without an eviction (PageEvictor::RoomToFetch). Must not block.
  std::function<uint64_t()> room;
};

struct HotPagesStatistics {
  uint64_t listed = 0;        // pages of the list that are on storage under their ids
  uint64_t fetched = 0;       // brought into memory
  uint64_t bytes = 0;         // read for them, with the bytes between them
  uint64_t milliseconds = 0;  // since the beginning, until the last window
};

class HotPages {
 public:
  // The bytes of one window, if the budget is large enough; more are read in longer runs.
  static constexpr uint64_t kWindowBytes = 4 << 20;

  // Starts to fetch. `threads`: 1 or 2.
  explicit HotPages(const HotPagesEnvironment& environment, int threads = 2);
  // Waits for the reads in flight.
  ~HotPages();
  HotPages(const HotPages&) = delete;
  HotPages& operator=(const HotPages&) = delete;

  // Writes the list of the pages that are in memory now, unless the fetch goes on. Blocks on the disk.
  void Record();

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  HotPagesStatistics statistics() const;

 private:
  // The figures, which both threads count.
  struct Figures {
    std::atomic<uint64_t> listed{0}, fetched{0}, bytes{0}, milliseconds{0};
  };

  void Run();
  // Returns the list; an empty one if it cannot be used.
  HotPageList ReadList();
  // Chooses as many pages as there is room for, and notes their places.
  HotPagePlan Plan(const HotPageList& list);
  // Takes windows until none is left, or the fetch has to end.
  void FetchWindows();
  uint64_t Room() const;
  std::span<const HotPage> TakeWindow();
  // Ends the fetch before all windows are taken. `why`: for the log.
  void GiveUp(std::string_view why);
  void LogEnd();
  HotPageList ListPagesInMemory() const;

  const HotPagesEnvironment environment_;
  const int threads_;
  std::atomic<bool> stop_{false};  // no further window is taken, and no further run is begun
  std::atomic<bool> ended_{false};
  std::atomic<bool> may_replace_{true};      // the file is a list of this version, or a damaged one, or not there
  std::atomic<uint64_t> reserved_bytes_{0};  // of the windows in flight, twice
  Figures figures_;
  MonotonicTime begun_;
  uint64_t window_bytes_ = kWindowBytes;
  Mutex mutex_;
  HotPagePlan plan_ DEUT_GUARDED_BY(mutex_);
  std::string_view given_up_ DEUT_GUARDED_BY(mutex_);  // empty: it was not
  std::unique_ptr<Thread> thread_;                     // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_HOT_PAGES_H_
