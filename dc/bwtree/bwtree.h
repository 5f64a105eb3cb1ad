// BwTree: one table's records in key order; latch-free. It holds one version of each record, and its updates are
// idempotent.
// [Levandoski, Lomet, Sengupta: "The Bw-Tree", ICDE 2013; Wang et al.: "Building a Bw-Tree Takes More Than Buzz
// Words", SIGMOD 2018]. dc/docs/bwtree.md lists which parts of the design come from which paper, and the differences.
//
// Atomic steps. Each step is one compare-and-swap of the word of one page (mapping_table.h). "head" is the head that
// the thread has read:
//   update       head -> delta on head. The loser links the same delta to the new head and retries. It descends again
//                if the page no longer covers the key (the page was split, or the root became an inner page).
//   consolidate  head -> new base page. Tried once; the loser frees the page that it built.
//   split, 1     The right half gets an id that no other thread knows yet. Then head -> split delta that names this
//                id. The loser frees page and id. After this step, every thread that needs the right half reaches it
//                through the left page.
//   split, 2     parent's head -> index term on head. The splitter posts the term. So does every thread that a parent
//                led to the left page and that had to step right (help-along). A thread that finds the term already
//                there is done. So a thread that stops between the two steps delays no other thread, and a page may
//                split again before its term is there.
//   split root   head -> new base page with two children, which get their ids first. This is one step: the root's id
//                never changes.
//   forced       If consolidations keep losing, a leaf's chain or base can grow to kForcedLimitFactor times its limit.
//                From then on every update of the leaf is a consolidation that contains the update. It is also a split
//                if the page is too large (the base then simply ends at the separator). The thread repeats this one
//                compare-and-swap until it wins. All threads then do the same amount of work, so one of them gets
//                through. Chains and pages are therefore bounded, however often the single tries above lose.
//   merge        The right page, its term in the parent, the left page: three steps, in merge.cc. Every thread that
//                meets the right page between them takes the steps that are left.
// The winner of a step retires the chain that it replaced (N2) and no longer owns any of it.
// Every retry is caused by the success of another thread on the same page: the tree is lock-free. Reads and scans
// change nothing, with two exceptions. They help with splits and merges. Now and then a reader consolidates a page
// whose deltas it had to step through (see ConsolidateForReaders).
//
// Idempotence: rules X1 and X2 as in leaf_view.h. An update is blind: it does not check whether the record exists.
// Thread-safety: all methods may be called from any thread. The methods take their guards themselves and hold none
// when they return.
// Ownership: the tree owns its pages' nodes. It borrows everything in BwTreeEnvironment.
// Errors: the number of pages is limited by the MappingTable. An update that needs a page beyond this limit returns
// RESOURCE_EXHAUSTED. That update may or may not have been applied: the caller stops, and repeats the update when it
// resumes (rule X2).
// A tree never loses levels: an emptied tree keeps one page for each level.
#ifndef DC_BWTREE_BWTREE_H_
#define DC_BWTREE_BWTREE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree_environment.h"
#include "dc/bwtree/bwtree_options.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/level_walk.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/node.h"
#include "dc/bwtree/page_bits.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/page_view.h"
#include "dc/bwtree/page_visitor.h"
#include "dc/bwtree/scan_cursor.h"
#include "dc/bwtree/smo_gate.h"
#include "dc/page_store/segment_store.h"
#include "protocol/record_batch.h"

namespace deut::dc {

class BwTree {
 public:
  static Result<std::unique_ptr<BwTree>> Create(const BwTreeEnvironment& environment, const BwTreeOptions& options,
                                                TableId table = TableId());
  // Returns the tree below `root`, all of whose pages are on storage (MappingTable::Restore). The caller must not use
  // it before RestorePage has loaded its root and all other inner pages.
  static std::unique_ptr<BwTree> Restore(const BwTreeEnvironment& environment, const BwTreeOptions& options,
                                         TableId table, PageId root);
  // REQUIRES: no other thread uses the tree or can see its pages (for example in a deleter of the domain).
  ~BwTree();
  // Frees at most `most` pages; *freed is the number. Returns true if no page is left. REQUIRES: as the destructor,
  // which frees the remaining pages. After the first call, only this method and statistics() may be called.
  bool FreePages(size_t most, size_t* freed);
  BwTree(const BwTree&) = delete;
  BwTree& operator=(const BwTree&) = delete;

  using NamedPages = dc::NamedPages;
  // Recovery (restore.cc): reads an inner page, or the root, into memory. *below: the pages that it names, in the order
  // of their keys. CORRUPTION, with page, segment and offset: the page differs from the description in `named`, is of
  // another table, or names a page that does not exist. `read` builds the page from its parts, which are set. Several
  // threads may restore different pages.
  Status RestorePage(const NamedPage& named, absl::FunctionRef<Status(PageLoad*)> read, NamedPages* below);
  // The same; the page is read from the store.
  Status RestorePage(const NamedPage& named, SegmentStore& store, NamedPages* below) {
    return RestorePage(named, [&store](PageLoad* load) { return load->ReadImage(store); }, below);
  }
  // Recovery: CORRUPTION, as above, if the restored page names another right sibling than `next` (kNoPage: none).
  Status CheckSibling(PageId id, PageId next) const;
  // Recovery: reads a leaf that is on storage and returns its number of records.
  Result<uint32_t> RecordsOfStored(PageId id, SegmentStore& store);
  // Sets the number of records that the leaf counts for in the statistics.
  void CountRecords(PageId id, uint32_t live);
  // Recovery: the same for leaves on storage that count for none yet. Several threads may count different leaves.
  void CountStoredRecords(std::span<const PageId> leaves, uint32_t live_of_each);

  using LeafHint = dc::LeafHint;
  // Finds the leaves of several keys, at most kMaxLeavesPerCall. The searches run side by side, so that their cache
  // misses overlap. They read inner pages only, and mark the leaves as updated. REQUIRES: a guard, which the caller
  // holds until it has used the hints.
  static constexpr size_t kMaxLeavesPerCall = 8;
  void FindLeaves(std::span<const std::string_view> keys, LeafHint* hints);
  // Prefetches the memory that an update of this leaf will write to. The caller calls it some time after FindLeaves.
  void PrefetchRoom(const LeafHint& hint) const;

  // kGateClosed: nothing happened. The page has reached the largest size that it may have while the gate is closed.
  enum class Outcome : uint8_t { kApplied, kDuplicate, kNotLoaded, kGateClosed };
  // `hint`: the result of FindLeaves. The update is correct regardless of later changes to the page.
  Result<Outcome> Put(std::string_view key, std::string_view value, Version version, const LeafHint& hint);
  Result<Outcome> Put(std::string_view key, std::string_view value, Version version);
  Result<Outcome> Delete(std::string_view key, Version version, const LeafHint& hint);
  Result<Outcome> Delete(std::string_view key, Version version);

  // Appends the record to `answer` if there is one. kNotLoaded: the caller must load the page first.
  enum class Found : uint8_t { kNo, kYes, kNotLoaded };
  Found Read(std::string_view key, RecordBatch* answer);
  // The same in steps, for a caller that reads several keys. Each step prefetches the memory that the next step of
  // the same read needs, while the caller takes the same step of the other reads. REQUIRES: one guard for all steps
  // of a read; the key outlives them.
  using Lookup = dc::Lookup;
  static constexpr int kReadSteps = 2;
  Lookup BeginRead(std::string_view key);
  // The caller calls ContinueRead exactly kReadSteps times between BeginRead and EndRead.
  void ContinueRead(Lookup* lookup);
  Found EndRead(const Lookup& lookup, RecordBatch* answer);

  // Appends records of one page, in ascending (or descending) order, up to the page's border or the budget. Then it
  // moves the cursor: the returned records, and the empty key range behind them, are no longer in [low, high). False:
  // nothing happened. The caller must first load the page at cursor->low (or the page below cursor->high).
  // `hint`: the hint that the last call for this scan returned, inside the same guard. With it, the scan need not
  // search for the page again.
  [[nodiscard]] bool ScanAscending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer, ScanHint* hint);
  [[nodiscard]] bool ScanAscending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer) {
    ScanHint hint;
    return ScanAscending(cursor, budget, answer, &hint);
  }
  [[nodiscard]] bool ScanDescending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer);

  // A page is loaded in three steps: BeginLoad, PageLoad::ReadImage without a guard, FinishLoad (page_load.h).
  // BeginLoad returns false if the page is already loaded.
  bool BeginLoad(const Target& target, PageLoad* load);
  // False: the page has a different image by now, or the id names a different page. REQUIRES: a guard.
  bool StillImage(const PageLoad& load) const { return pages_.Image(load.id).newest() == load.parts.newest(); }
  // CORRUPTION: the image is of another table or level, or contradicts the bounds or the right neighbour that the tree
  // knows for the page. OK: the page was installed, or there is no longer anything to do.
  Status FinishLoad(const Target& target, PageLoad* load);

  // Returns at most n - 1 ascending keys that cut the tree into about equal pieces. It reads inner pages only.
  std::vector<std::string> Partition(uint32_t n);

  // neighbours.cc: returns the low keys of the leaves that are not in memory, among the leaf that `target` names and
  // its next `count` neighbours. It looks below one parent only (the result is advice). A scan in this direction ends at
  // the key `end`, so it needs no leaf beyond it. An empty `end` is no limit.
  std::vector<std::string> FindUnloadedLeaves(const Target& target, bool ascending, size_t count,
                                              std::string_view end = {});
  // walk.cc: a walk visits the children of one inner page at a time, from right to left.
  using Walk = LevelWalk;
  // Visits the pages of `level` that have one common parent, and moves the walk. If `only` is not null, pages
  // outside it are passed over, except the root. VisitedPage::parent is kNoPage for the root. A page whose
  // split has no index term yet is not visited.
  void VisitPages(uint8_t level, Walk* walk, PageVisitor* visitor, const PageBits* only = nullptr);
  uint8_t root_level();

  // evict.cc: evicts the page if it is a leaf, is clean, and its parent has the terms of all its splits. Only the
  // thread that merges pages may call this. REQUIRES: a guard.
  bool Evict(const VisitedPage& page);
  // consolidate.cc: gives the page new memory, so that a slab which holds a node of it can be emptied (page_memory.h).
  // Returns false if another thread has changed the page first, or if its content is on storage. REQUIRES: a guard.
  bool Move(const VisitedPage& page);

  // merge.cc
  using MergeReport = dc::MergeReport;
  // Merges neighbouring small pages of `level` that have one common parent, and moves the walk. One thread at a time.
  void MergePages(uint8_t level, Walk* walk, MergeReport* report);
  // Takes the remaining steps of a merge, or undoes the merge if it cannot be completed. A thread that meets a
  // removed page calls this. REQUIRES: a guard.
  void FinishMerge(PageId id, const Node* removed);
  // Notes that most of the page was deleted, but that it cannot be made smaller now: the page is not loaded, or the
  // deletions are too recent.
  void MarkSparse(PageId id) {
    pages_.SetSparse(id);
    small_pages_.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts the pages that have become small. While this number has not changed, there is nothing new to merge.
  uint64_t small_pages() const { return small_pages_.load(std::memory_order_relaxed); }

  TableId table() const { return table_; }
  PageId root() const { return root_; }
  Compression compression() const { return options_.compression; }
  // Counts the bytes of a node that has become part of a page. For the classes that put nodes on pages
  // (page_flusher.h).
  void CountPublished(size_t bytes) { bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed); }

  BwTreeStatistics statistics() const;
  // Returns the number of records. If the tree is a single page it counts them there, else it returns
  // statistics().records.
  uint64_t ApproximateRecords();

 private:
  // A page that has an id but that no other thread knows. Its destructor gives both back unless it was published.
  class UnpublishedPage;

  using PageView = dc::PageView;

  static constexpr uint32_t kForcedLimitFactor = 4;

  BwTree(const BwTreeEnvironment& environment, const BwTreeOptions& options, TableId table, PageId root);

  // Replaces the page. It marks the page as dirty first, unless the new one is clean or the page is marked already
  // (mapping_table.h). REQUIRES: a guard, in which `expected` was read. False: another thread was first.
  [[nodiscard]] bool Change(PageId id, PageWord expected, const Node* desired) {
    if (!IsMarkedDirty(expected.head()) && !IsClean(desired) && DEUT_STEP("checkpoint.mark_dirty"))
      pages_.MarkDirty(id);
    DEUT_POINT("bwtree.change.before_cas");
    return pages_.Replace(id, expected, PageWord::Memory(desired));
  }
  bool MayRestructure() const { return gate_ == nullptr || !gate_->closed(); }

  // descend.cc
  PageView Descend(uint8_t level, const Target& target);
  // The same for a point read of the leaf, or for an update: marks it as used.
  PageView DescendToUse(const Target& target);
  PageView DescendToUpdate(const Target& target);
  // The same without reading the leaf. Returns kNoPage if the root is a leaf, or if a page on
  // the way is removed, lies left of the target or is not loaded. REQUIRES: a guard.
  PageView FindLeaf(const Target& target);
  // read.cc
  Found ReadPage(const PageView& page, std::string_view key, RecordBatch* answer);
  // scan.cc
  PageView PageOf(const ScanCursor& cursor, ScanHint hint);
  void NoteScanned(PageId id, ScanCursor* cursor);
  // page_load.cc
  // How an image compares with what the tree says of its page. kUnclear: another thread has changed the tree meanwhile,
  // so the caller descends again.
  enum class Agreement : uint8_t { kAgrees, kDiffers, kUnclear };
  Agreement CompareBounds(const BasePage& image, const PageView& page) const;
  // REQUIRES: CompareBounds has agreed.
  Agreement CompareSibling(const BasePage& image, const PageView& page);
  // update.cc
  Result<Outcome> Update(NodeKind kind, std::string_view key, std::string_view value, Version version,
                         const LeafHint& hint);
  // Puts the delta on a page that is entirely on storage. REQUIRES: a guard. False: nothing happened.
  bool PutOnStored(const PageView& page, Owned<RecordDelta>* delta);
  // consolidate.cc. All REQUIRE a guard.
  bool NeedsConsolidation(const Node* head) const;
  bool MustConsolidate(const Node* head) const;
  Owned<BasePage> BuildConsolidated(const Node* head) const;
  bool ReplaceByBase(PageId id, const Node* expected, Owned<BasePage> page);
  Status Consolidate(PageId id, const Node* head);
  // A reader stepped through the page's deltas, which cost it about `work` cache misses. The method consolidates the
  // page once the readers of this thread have spent about as much on deltas as a consolidation costs. For any
  // sequence of reads, this at most doubles the cost.
  void ConsolidateForReaders(const PageView& page, size_t work);
  // A scan met `dead` tombstones, the latest of them with timestamp `newest`, and `live` records in the page. The
  // method consolidates the page if most of it is tombstones that rule X1 no longer needs.
  void DropTombstones(const PageView& page, size_t dead, Timestamp newest, size_t live);
  // partition.cc
  std::vector<std::string> Separators(uint8_t level);
  // split.cc. All REQUIRE a guard.
  bool IsLarge(const BasePage& page) const;
  Status NoPageId() const;
  Status SplitIfLarge(PageId id, const BasePage* page);
  // Replaces `expected` by `page` in one step, split in two if `page` is large. *won: whether this thread won the
  // compare-and-swap.
  Status ReplaceAndSplitIfLarge(PageId id, const Node* expected, Owned<BasePage> page, bool* won);
  Status SplitRoot(const Node* expected, const BasePage& page, bool* won);
  enum class PostRetry : uint8_t { kOnce, kUntilPosted };
  Status PostIndexTerm(uint8_t level, std::string_view separator, PageId child, PostRetry retry);
  // merge.cc. All REQUIRE a guard.
  size_t PageLimit(uint8_t level) const;
  // `page` has replaced a base of `before` bytes.
  void CountIfSmall(size_t before, const BasePage& page);
  // Size of the page as far as a merge is concerned. It is an estimate if the page is not loaded.
  size_t SizeOf(PageId id, PageWord word) const;
  // The leaf `page` leaves memory.
  void NoteSizeOfEvicted(PageId id, const BasePage& page);
  // Estimate of the bytes of a page that is not loaded, by its image. Too small only if its parts are compressed to less
  // than an eighth.
  size_t ImageBytes(PageId id) const;
  // Drops the leaf's tombstones if they are most of it.
  void ConsolidateIfMostlyTombstones(PageId id, std::string_view key, MergeReport* report);
  bool Merge(PageId left, PageId right, std::string_view left_key, std::string_view right_key, MergeReport* report);
  // False: the merge was undone.
  bool Unlink(PageId id, const Node* removed);
  void Absorb(PageId id, const Node* removed);
  void MarkParentDirty(uint8_t level, std::string_view key);
  // bwtree.cc
  // This thread has replaced `head`.
  void Retire(const Node* head);
  // Frees the page and appends the pages below it to to_free_. REQUIRES: no other thread can see them.
  void FreePage(PageId id);

  MappingTable& pages_;
  ReclamationDomain& domain_;
  const std::atomic<uint64_t>& consolidation_timestamp_;
  const SmoGate* const gate_;
  SegmentStore* const images_;
  const BwTreeOptions options_;
  const TableId table_;
  const PageId root_;
  // Used only by the thread that frees the tree: the pages that it has still to free, each with everything below it.
  bool freeing_ = false;
  std::vector<PageId> to_free_;

  alignas(64) std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> records_{0};
  std::atomic<uint64_t> consolidations_{0};
  std::atomic<uint64_t> lost_consolidations_{0};
  std::atomic<uint64_t> splits_{0};
  std::atomic<uint64_t> helped_splits_{0};
  std::atomic<uint64_t> merges_{0};
  std::atomic<uint64_t> small_pages_{1};  // starts at one: the first merge pass looks at all pages
};

}  // namespace deut::dc

#endif  // DC_BWTREE_BWTREE_H_
