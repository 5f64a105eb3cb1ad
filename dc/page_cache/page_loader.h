// PageLoader: brings pages into memory for those who met one that is not there.
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
  // `damaged`: what cannot be read is noted there; may be null.
  PageLoader(TreeSource& trees, ReclamationDomain& domain, SegmentStore& store, DamagedPages* damaged = nullptr)
      : trees_(trees), domain_(domain), store_(store), damaged_(damaged) {}

  // Brings the leaf that the target names into memory. Blocks on the disk. OK: look again: it is there, or was for a moment, or another
  // page is meant by now, or the table is gone. CORRUPTION, IO_ERROR: it cannot be read; nothing is changed.
  // REQUIRES: no guard is held.
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
