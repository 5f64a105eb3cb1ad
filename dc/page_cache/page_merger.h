// PageMerger: reclaims pages that have become small, by merging neighbours (dc/bwtree/merge.cc).
//
// A tree counts the pages that have shrunk. When the count has changed, a round walks over the tree's pages, from the
// leaves upward:
// - a page that is mostly tombstones is consolidated, which drops those that are old enough;
// - a small page is merged into its left neighbour;
// - pages that this needs are loaded if there is room.
// A round that left something for later (deletions too young, a checkpoint running) is followed by another one, at
// growing intervals. A round that was stopped resumes where it was; otherwise no round would reach the tree's end
// while memory is short.
// Thread-safety: one thread, the one that evicts pages. Ownership: borrows everything.
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
  // `interval`: the minimum time between two rounds over a tree. `stop`: called between steps; true ends the round.
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

  // Runs a round over each tree that is due. `has_room`: true if a page may be loaded. REQUIRES: no guard.
  void Run(const std::function<bool()>& has_room);
  // The time at which Run should be called again.
  MonotonicTime next() const { return next_; }

 private:
  // The position of a round, and its findings.
  struct Progress {
    uint64_t small_pages = 0;  // when the round began
    uint8_t level = 0;
    BwTree::Walk walk;
    bool returned = false;  // to the same pages, because some were loaded
    bool merged = false;
    bool postponed = false;
  };
  struct TreeState {
    uint64_t handled_small_pages = 0;  // the value of BwTree::small_pages for which no further round is needed
    MonotonicTime due;
    uint32_t backoff_intervals = 1;    // number of intervals until the next round
    std::optional<Progress> progress;  // of a round that was stopped
  };

  // One step of a round. False: the round has reached its end, or the table is gone.
  bool Step(TableId table, Progress* progress, const std::function<bool()>& has_room);
  void Round(TableId table, TreeState* state, const std::function<bool()>& has_room);

  Runtime& runtime_;
  ReclamationDomain& domain_;
  TreeSource& source_;
  TableList& tables_;
  PageLoader& loader_;
  const Duration interval_;
  const std::function<bool()> stop_;
  absl::flat_hash_map<TableId, TreeState> trees_;
  MonotonicTime next_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_MERGER_H_
