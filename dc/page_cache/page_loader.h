// PageLoader: loads a page into memory for a thread that found it missing there.
// Thread-safety: all methods from any thread. Ownership: borrows everything.
#ifndef DC_PAGE_CACHE_PAGE_LOADER_H_
#define DC_PAGE_CACHE_PAGE_LOADER_H_

#include <atomic>
#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class PageLoader {
 public:
  // `damaged` records the pages that cannot be read; may be null.
  PageLoader(TreeSource& trees, ReclamationDomain& domain, SegmentStore& store, DamagedPages* damaged = nullptr)
      : trees_(trees), domain_(domain), store_(store), damaged_(damaged) {}

  // Loads the leaf that the target names into memory. Blocks on the disk.
  // OK: look up again. The leaf is in memory, or was for a moment; or the target is in another page by now; or the
  // table is gone.
  // CORRUPTION, IO_ERROR: the page cannot be read; nothing is changed. REQUIRES: no guard is held.
  Status Load(TableId table, const Target& target);

  uint64_t loads() const { return loads_.load(std::memory_order_relaxed); }

 private:
  TreeSource& trees_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  DamagedPages* const damaged_;
  std::atomic<uint64_t> loads_{0};
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_LOADER_H_
