// PageMerger: gives back pages of which little is left, by merging neighbours (dc/bwtree/merge.cc).
//
// A tree counts the pages that have shrunk. When the count has moved, a round walks over the tree's pages, from the leaves upward: what is mostly
// tombstones is thinned, what is small goes into its left neighbour, and what has to be loaded for that is loaded if there is room. A round
// that left something for later (deletions too young, a checkpoint at work) is followed by another one, less and less often. A round that was
// stopped goes on where it was: where memory is always short no round would come to the tree's end otherwise.
// Thread-safety: one thread, the one that swaps pages out. Ownership: borrows everything.
#ifndef DC_PAGE_CACHE_PAGE_MERGER_H_
#define DC_PAGE_CACHE_PAGE_MERGER_H_

#include <cstdint>
#include <functional>
#include <optional>

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
  // How far a round has come, and what it has found.
  struct Progress {
    uint64_t small_pages = 0;  // at its beginning
    uint8_t level = 0;
    BwTree::Walk walk;
    bool returned = false;  // to the same pages, because some were loaded
    bool merged = false;
    bool postponed = false;
  };
  struct Tree {
    uint64_t seen = 0;  // BwTree::small_pages
    MonotonicTime due;
    uint32_t pauses = 1;               // intervals to the next round
    std::optional<Progress> progress;  // of a round that was stopped
  };

  // One step of a round. False: the round has come to its end, or the table is gone.
  bool Step(TableId table, Progress* progress, const std::function<bool()>& has_room);
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
