// HotPageReader: reads windows of hot pages, and brings them into memory, on one thread with one RunReader. Internal to
// HotPages.
//
// Steps for a window:
//   look      the thread asks for the image of each page, inside a guard. A page whose base part is another one by now
//             was written anew, so somebody has loaded it: it is left out
//   read      all parts, by runs (run_reader.h), several in flight
//   install   builds the page and calls BwTree::FinishLoad, as a load does. The page itself tells its table and its low
//             key, so the list needs neither. The window ends at the first page for which there is no room: packed parts
//             (page_store/part_compression.h) may be many times larger in memory than on the disk
// Races. FinishLoad decides all of them (bwtree/page_load.h), and the reader of the window is always the loser:
//   - A request or the redo has loaded the page meanwhile: its word is a loaded page, and the bytes are dropped.
//   - Updates came without loading the page (a stub): the page is installed below them.
//   - The page was loaded, changed, written and evicted meanwhile: it has another image, and the bytes are dropped.
//   - The page, or its table, was dropped, and perhaps its id is another page's now: the tree is not there, or its key
//     leads to another page or another image. The bytes are dropped.
//   - The segment was removed before the read: the run is not begun. During the read: the run shares it.
// A page that cannot be read or does not fit is dropped without a word: a request that needs it reads it again, and
// reports what is wrong.
// Thread-safety: one thread, except `stop`. Ownership: owns its RunReader; borrows the rest.
#ifndef DC_PAGE_CACHE_HOT_PAGE_READER_H_
#define DC_PAGE_CACHE_HOT_PAGE_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "dc/bwtree/bwtree_environment.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/hot_page_plan.h"
#include "dc/page_cache/run_reader.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class HotPageReader {
 public:
  // Number of runs in flight of one reader. With kMaxRunBytes it bounds how long a request waits behind them.
  static constexpr size_t kRunsInFlight = 4;

  struct Outcome {
    uint64_t pages = 0;     // installed
    uint64_t bytes = 0;     // read
    bool shortage = false;  // of descriptors or kernel memory
    bool no_room = false;   // there was no room for the next page
  };

  // `stop`: once true, Fetch ends as soon as the runs in flight have ended. `room`: returns the bytes that may be
  // brought in; must not block. Returns the error of making the queue.
  static Result<std::unique_ptr<HotPageReader>> Create(const BwTreeEnvironment& trees, SegmentStore& store,
                                                       TreeSource& source, const std::atomic<bool>& stop,
                                                       std::function<uint64_t()> room);

  // Blocks on the disk. REQUIRES: no guard is held.
  Outcome Fetch(std::span<const HotPage> window);

 private:
  HotPageReader(const BwTreeEnvironment& trees, TreeSource& source, const std::atomic<bool>& stop,
                std::function<uint64_t()> room, std::unique_ptr<RunReader> runs);

  bool stops() const { return stop_.load(std::memory_order_relaxed); }
  void FindImages(std::span<const HotPage> window);
  void ReadAll();
  bool Install(PageLoad* load);

  const BwTreeEnvironment trees_;
  TreeSource& source_;
  const std::atomic<bool>& stop_;
  const std::function<uint64_t()> room_;
  // The next two belong to the present window.
  Outcome outcome_;
  std::vector<PageLoad> loads_;
  // It keeps no buffer for the next window: if each kept the longest run that it has ever read, all together would grow
  // far beyond a window.
  const std::unique_ptr<RunReader> runs_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_HOT_PAGE_READER_H_
