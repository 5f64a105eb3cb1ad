// PageMerger: gives back pages of which little is left, by merging neighbours (dc/bwtree/merge.cc).
//
// A tree counts the pages that have shrunk. When the count has moved, a round walks over the tree's pages, from the leaves upward: what is mostly
// tombstones is thinned, what is small goes into its left neighbour, and what has to be loaded for that is loaded if there is room. A round
// that left something for later (deletions too young, a checkpoint at work) is followed by another one, less and less often.
// Thread-safety: one thread, the one that swaps pages out. Ownership: borrows everything.
#ifndef DC_PAGE_CACHE_PAGE_MERGER_H_
#define DC_PAGE_CACHE_PAGE_MERGER_H_

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/page_loader.h"

namespace deut::dc {

class PageMerger {
 public:
  // `interval`: between two rounds over a tree, at least. `stop`: asked between steps whether to end the round.
  PageMerger(Runtime& runtime, ReclamationDomain& domain, TreeSource& source, TableList& tables, PageLoader& loader,
             Duration interval, std::function<bool()> stop)
      : runtime_(runtime),
        domain_(domain),
        source_(source),
        tables_(tables),
        loader_(loader),
        interval_(interval),
        stop_(std::move(stop)),
        next_(runtime.Now() + interval) {}

  // Rounds over the trees whose time has come. `has_room`: whether a page may be loaded. REQUIRES: no guard.
  void Run(const std::function<bool()>& has_room);
  // When Run should be called again.
  MonotonicTime next() const { return next_; }

 private:
  struct Tree {
    uint64_t seen = 0;  // BwTree::small_pages
    MonotonicTime due;
    uint32_t pauses = 1;  // intervals to the next round
  };

  void Round(TableId table, Tree* tree, const std::function<bool()>& has_room);

  Runtime& runtime_;
  ReclamationDomain& domain_;
  TreeSource& source_;
  TableList& tables_;
  PageLoader& loader_;
  const Duration interval_;
  const std::function<bool()> stop_;
  absl::flat_hash_map<TableId, Tree> trees_;
  MonotonicTime next_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_MERGER_H_
