// InnerPages: loads the inner pages of all trees at a start, level by level from the roots. Internal to the recovery.
//
// A level is cut into windows, neighbours in the order of their keys. A thread reads all pages of a window at once
// (RunReader), and then checks and installs one after the other. So the threads are few, and a device with a long
// latency has many reads in flight.
// Checks. Each page is compared with its parent's description of it, is of its table, and names only pages with an
// image that no other page names. It names the page that follows it on its level as its right sibling.
// Errors: of the first page in the order of levels and keys that differs; with table, page, segment and offset. A page
// that cannot be read together with others is read alone before it counts as unreadable. CANCELLED: the recovery was
// given up.
// Thread-safety: one thread; Load starts others. Ownership: borrows everything. Memory: the windows of all threads; for
// each leaf 4 bytes.
#ifndef DC_CHECKPOINT_INNER_PAGES_H_
#define DC_CHECKPOINT_INNER_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/bwtree_environment.h"
#include "dc/bwtree/named_page.h"
#include "dc/checkpoint/recovery_progress.h"
#include "dc/page_cache/run_reader.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class InnerPages {
 public:
  // `progress` may be null. REQUIRES: environment.images is not null; no other thread uses the pages.
  InnerPages(Runtime& runtime, const BwTreeEnvironment& environment, int threads, RecoveryProgress* progress);
  ~InnerPages();
  InnerPages(const InnerPages&) = delete;
  InnerPages& operator=(const InnerPages&) = delete;

  // Adds a tree. REQUIRES: Load was not called yet.
  void Add(BwTree* tree);
  // Loads the inner pages, and estimates the number of records of each tree.
  Status Load();

 private:
  struct Tree {
    BwTree* tree;
    size_t leaves = 0;
    uint64_t records = 0;  // records of the sampled leaves
    uint64_t sampled = 0;
  };
  // The leaves that one inner page names.
  struct Leaves {
    size_t tree;  // index in trees_
    std::vector<PageId> ids;
  };
  struct Page {
    size_t tree;  // index in trees_
    NamedPage named;
  };
  struct Window {
    size_t begin, end;  // indexes in level_
  };

  // Loads the pages of level_. *below: for each, the pages that it names.
  Status LoadLevel(std::vector<BwTree::NamedPages>* below);
  Status LoadWindow(const Window& window, RunReader& reader, std::vector<BwTree::NamedPages>* below);
  // Returns the parts of the pages from index `begin` on that are read together. *end: the index behind the last one; it
  // falls if the pages up to there are too large.
  std::vector<PageAddress> PartsOf(size_t begin, size_t* end) const;
  Status LoadOne(const Page& page, const RunReader& reader, BwTree::NamedPages* below);
  Status CheckSiblings() const;
  void GoDown(std::vector<BwTree::NamedPages>* below);
  // Returns `status`, with the page's table in its message if it is an error.
  Status InTable(const Page& page, const Status& status) const;
  // Returns the leaves of each tree that are read for the estimate, with the index of the tree.
  std::vector<std::pair<size_t, PageId>> Samples() const;
  Status EstimateRecords();

  Runtime& runtime_;
  const BwTreeEnvironment environment_;
  SegmentStore& store_;
  const int threads_;
  RecoveryProgress* const progress_;
  std::vector<Tree> trees_;
  // Those of one tree lie together, in the order of their keys: all leaves of a tree are of one level.
  std::vector<Leaves> leaves_;
  Mutex mutex_;  // guards, while leaves are sampled, the trees' counts
  // The pages that are loaded next: those of one tree lie together, in the order of their keys.
  std::vector<Page> level_;
  std::vector<std::unique_ptr<RunReader>> readers_;  // of each thread; null: it has read nothing yet
};

// The leaves of a tree that a recovery reads to estimate the number of the tree's records: their places among `leaves`
// leaves in the order of their keys, ascending.
std::vector<size_t> SampledLeaves(size_t leaves);

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_INNER_PAGES_H_
