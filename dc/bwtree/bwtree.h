// BwTree: one table's records in key order; latch-free. One version of each record, idempotent updates.
// [Levandoski, Lomet, Sengupta: "The Bw-Tree", ICDE 2013; Wang et al.: "Building a Bw-Tree Takes More Than Buzz Words",
// SIGMOD 2018]. What is taken from where, and what differs: dc/docs/bwtree.md.
//
// Atomic steps, each one compare-and-swap of the word of one page (mapping_table.h); "head" is the head the thread looked at:
//   update       head -> delta on head. Loser: links the same delta to the new head and tries again, or descends again when the
//                page no longer covers the key (it was split, or the root became an inner page).
//   consolidate  head -> new base page. Tried once; the loser frees what it built.
//   split, 1     the right half gets an id (nobody knows it yet), then head -> split delta that names it. The loser frees
//                page and id. From the winner's step on, everybody who needs the right half goes through the left page.
//   split, 2     parent's head -> index term on head. Done by the splitter, and by whoever was led by a parent to the left page
//                and had to step right (help-along); who finds the term there is done. Thus a thread that stops between
//                the steps delays nobody, and a page may split again before the term is there.
//   split root   head -> new base page with two children, which get ids first. One step: the root's id never changes.
//   forced       When a leaf's chain or base has grown to kForced times its limit, because others kept winning, every update of it
//                is a consolidation that contains the update, and a split if that is what the page needs (the base then
//                simply ends at the separator): one compare-and-swap, repeated until it wins. Since all do the same amount of
//                work, somebody gets through, and chains and pages are bounded however badly the tries above lose.
//   merge        right page, its term in the parent, left page: three steps, in merge.cc. Whoever meets the right page between them
//                takes the steps that are left.
// Winner of a step: retires the chain it replaced (N2), and owns nothing of it any more.
// Every retry is caused by somebody's success on the same page: lock-free. Reads and scans change nothing, except that they help,
// and that now and then one of them consolidates a page whose deltas it had to step through (see ConsolidateForReaders).
//
// Idempotence: rules X1 and X2 as in leaf_view.h. An update is blind: it does not look whether the record is there.
// Thread-safety: all methods from any thread. Guards are taken inside; none is held when a method returns.
// Limits: pages as MappingTable says; RESOURCE_EXHAUSTED then comes with the update that needed one, which may be applied or
//   not: the caller stops, and repeats it when it goes on (rule X2).
// A tree does not lose levels: one that was emptied keeps one page a level.
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

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree_options.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/node.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/page_visitor.h"
#include "dc/bwtree/scan_cursor.h"
#include "dc/bwtree/structure_gate.h"
#include "dc/page_store/segment_store.h"
#include "protocol/record_batch.h"

namespace deut::dc {

// What trees share. All of it outlives them.
struct BwTreeEnvironment {
  MappingTable& pages;
  ReclamationDomain& domain;
  // The consolidation timestamp C of rule X1.
  const std::atomic<uint64_t>& consolidation_timestamp;
  // Null: never closed.
  const StructureGate* gate = nullptr;
  // Where images lie; null: there are none.
  SegmentStore* images = nullptr;
};

class BwTree {
 public:
  static Result<std::unique_ptr<BwTree>> Create(const BwTreeEnvironment& environment, const BwTreeOptions& options,
                                                TableId table = TableId());
  // The tree below `root`, whose pages are all on storage (MappingTable::Restore). Nothing may be done with it before RestorePage has
  // brought in its root and all other inner pages.
  static std::unique_ptr<BwTree> Restore(const BwTreeEnvironment& environment, const BwTreeOptions& options,
                                         TableId table, PageId root);
  // REQUIRES: no other thread uses the tree or can see its pages (in a deleter of the domain, or when the owner ends).
  ~BwTree();
  // Frees `most` pages, or those that are left; *freed tells how many. True: none is left. REQUIRES: as the destructor, which frees what
  // is left; after the first call nothing else is called but this and statistics().
  bool FreePages(size_t most, size_t* freed);
  BwTree(const BwTree&) = delete;
  BwTree& operator=(const BwTree&) = delete;

  struct NamedPages {
    std::vector<NamedPage> inner;
    std::vector<PageId> leaves;
  };
  // Recovery (restore.cc): reads an inner page, or the root, into memory. *below: what it names. CORRUPTION naming page, segment and offset if it
  // is not as it is named, or names what is not there. Several threads may restore different pages.
  Status RestorePage(const NamedPage& named, SegmentStore& store, NamedPages* below);
  // Recovery: how many records a leaf holds that is on storage; reads it.
  Result<uint32_t> RecordsOfStored(PageId id, SegmentStore& store);
  // The leaf holds so many, as far as is known; for the statistics.
  void CountRecords(PageId id, uint32_t live);

  // Where an update of a key belongs, as of some moment. Finding the places of several updates before the first of them is made lets what they
  // will touch come into the cache for all of them at once.
  class Place;
  // Those of several keys, at most kPlacesAtOnce: what the searches look at comes into the cache for all of them at once, too. They look at inner
  // pages only. REQUIRES: a guard, which is held until the places were used.
  static constexpr size_t kPlacesAtOnce = 8;
  void FindPlaces(std::span<const std::string_view> keys, Place* places);
  // So does what an update there will write to. A hint; some time after the place was found.
  void FetchRoom(const Place& place) const;

  // kHeld: nothing happened, the page has grown as far as it may while the gate is closed.
  enum class Outcome : uint8_t { kApplied, kDuplicate, kNotLoaded, kHeld };
  // `place`: if it was found before (nothing depends on what has happened there meanwhile).
  // REQUIRES: key of 1 to kMaxKeyBytes bytes, value of at most kMaxValueBytes.
  Result<Outcome> Put(std::string_view key, std::string_view value, Version version, const Place& place);
  Result<Outcome> Put(std::string_view key, std::string_view value, Version version);
  Result<Outcome> Delete(std::string_view key, Version version, const Place& place);
  Result<Outcome> Delete(std::string_view key, Version version);

  // Appends the record to `answer` if there is one. kNotLoaded: first its page has to be loaded.
  enum class Found : uint8_t { kNo, kYes, kNotLoaded };
  Found Read(std::string_view key, RecordBatch* answer);
  // The same in steps, for who has several keys to read: what each step of one read touches comes into the cache while the same step of the
  // others is done. REQUIRES: a guard, the same for all steps of a read; the key stays.
  class Lookup;
  static constexpr int kContinueReads = 2;
  Lookup BeginRead(std::string_view key);
  // So many times.
  void ContinueRead(Lookup* lookup);
  Found EndRead(const Lookup& lookup, RecordBatch* answer);

  // Appends records of one page, in ascending (or descending) order, up to the page's border or the budget, and moves
  // the cursor: what was returned, and the empty space behind it, is no longer in [low, high). False: nothing happened, first the
  // page at cursor->low (or below cursor->high) has to be loaded.
  // `place`: of the last call for this scan, inside the same guard; then the page need not be found again.
  [[nodiscard]] bool ScanAscending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer, ScanPlace* place);
  [[nodiscard]] bool ScanAscending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer) {
    ScanPlace place;
    return ScanAscending(cursor, budget, answer, &place);
  }
  [[nodiscard]] bool ScanDescending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer);

  // Loading a page, in three steps: BeginLoad, PageLoad::ReadImage without a guard, FinishLoad (page_load.h). False: it is there.
  bool BeginLoad(const Target& target, PageLoad* load);
  // False: the page has another image by now, or is another page. REQUIRES: a guard.
  bool StillImage(const PageLoad& load) const { return pages_.Image(load.id).newest() == load.parts.newest(); }
  // CORRUPTION: what was read contradicts what is known of the page. OK: it was put in, or there is nothing to do any more.
  Status FinishLoad(const Target& target, PageLoad* load);

  // At most n - 1 ascending keys that cut the tree into pieces of about equal size; looks at inner pages only.
  std::vector<std::string> Partition(uint32_t n);

  // neighbours.cc: low keys of the leaf that `target` names and of the next `count` beside it, those not in memory; of one parent (advice).
  std::vector<std::string> NotLoaded(const Target& target, bool ascending, size_t count);
  // walk.cc: one inner page's children at a time, from the right to the left.
  // What a walk has still to visit of a level: pages below `high`; an empty high is above every key.
  struct Walk {
    std::string high;
    bool complete = false;
  };
  // Visits pages of `level` that have one parent, and moves the walk. The root has no parent, nor has a page whose split's term is not posted yet.
  void VisitPages(uint8_t level, Walk* walk, PageVisitor* visitor);
  uint8_t root_level();

  // evict.cc: swaps the page out if it is a leaf, clean, and its parent has the terms of all its splits.
  // REQUIRES: a guard; only by the thread that merges pages.
  bool Evict(const VisitedPage& page);

  // merge.cc: what a step over one parent's pages found.
  struct MergeReport {
    uint64_t merged = 0;
    bool postponed = false;            // something may be merged later
    std::vector<std::string> to_load;  // keys in pages that have to be loaded first
  };
  // Merges neighbouring small pages of `level` that have one parent, and moves the walk. One thread at a time.
  void MergePages(uint8_t level, Walk* walk, MergeReport* report);
  // Takes the steps of a merge that are left to take, or undoes it if it cannot be completed. For who meets a removed page. REQUIRES: a guard.
  void FinishMerge(PageId id, const Node* removed);
  // Most of the page was deleted, but it cannot be made smaller now: it is not loaded, or the deletions are too young.
  void NoteSparse(PageId id) {
    pages_.SetSparse(id);
    small_pages_.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts pages that have become small: if it has not moved there is nothing new to merge.
  uint64_t small_pages() const { return small_pages_.load(std::memory_order_relaxed); }

  TableId table() const { return table_; }
  PageId root() const { return root_; }
  // A node that is part of a page from now on. For those who put nodes on pages (page_flusher.h).
  void CountPublished(size_t bytes) { bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed); }

  BwTreeStatistics statistics() const;
  // Records by looking at the page if the tree is a single one, else statistics().records.
  uint64_t ApproximateRecords();

 private:
  // A page, what its word was, and the inner page that led to it, if it was not reached from its left neighbour.
  struct PageView {
    PageId id;
    PageWord word;
    PageId parent = kNoPage;
    const Node* parent_head = nullptr;

    // Null: on storage.
    const Node* head() const { return word.head(); }
    // Its records are in memory.
    bool loaded() const { return head() != nullptr && !head()->base->stub(); }
  };
  // A page that has an id but that nobody else knows; gives both back unless published.
  class UnpublishedPage;

  static constexpr uint32_t kForced = 4;

  BwTree(const BwTreeEnvironment& environment, const BwTreeOptions& options, TableId table, PageId root)
      : pages_(environment.pages),
        domain_(environment.domain),
        consolidation_timestamp_(environment.consolidation_timestamp),
        gate_(environment.gate),
        images_(environment.images),
        options_(options),
        table_(table),
        root_(root) {}

  bool MayRestructure() const { return gate_ == nullptr || !gate_->closed(); }

  // descend.cc
  PageView Descend(uint8_t level, const Target& target);
  // The leaf on the way to which there is nothing but inner pages as they should be; else kNoPage. Does not look at the leaf. REQUIRES: a guard.
  PageView FindLeaf(const Target& target);
  // read.cc
  Found ReadPage(const PageView& page, std::string_view key, RecordBatch* answer);
  // scan.cc
  PageView PageOf(const ScanCursor& cursor, ScanPlace place);
  // page_load.cc
  bool HasBoundsOf(const BasePage& image, const PageView& page) const;
  // update.cc
  Result<Outcome> Update(NodeKind kind, std::string_view key, std::string_view value, Version version,
                         const Place& place);
  // Puts the delta on a page of which nothing is in memory. REQUIRES: a guard. False: nothing happened.
  bool PutOnStored(const PageView& page, Owned<RecordDelta>* delta);
  // walk.cc: visits pages that were split off `left`, up to `high`, and are not posted yet, from the right to the left; they have no parent.
  bool VisitUnposted(PageId left, const Node* head, bool bounded, std::string_view high, PageVisitor* visitor);
  // consolidate.cc. All REQUIRE a guard.
  bool NeedsConsolidation(const Node* head) const;
  bool MustConsolidate(const Node* head) const;
  Owned<BasePage> BuildConsolidated(const Node* head) const;
  bool ReplaceByBase(PageId id, const Node* expected, Owned<BasePage> page);
  Status Consolidate(PageId id, const Node* head);
  // A reader stepped through the page's deltas, which took it about `work` cache misses. Consolidates the page once the thread's readers
  // have spent about as much on deltas as a consolidation costs: whatever is read, that at most doubles the cost.
  void ConsolidateForReaders(const PageView& page, size_t work);
  // A scan met `dead` tombstones, the latest of `newest`, and `live` records in the page: consolidates it if most of it is
  // tombstones that rule X1 no longer needs.
  void DropTombstones(const PageView& page, size_t dead, Timestamp newest, size_t live);
  // partition.cc
  std::vector<std::string> Separators(uint8_t level);
  // split.cc. All REQUIRE a guard.
  bool IsLarge(const BasePage& page) const;
  Status NoPageId() const;
  Status SplitIfLarge(PageId id, const BasePage* page);
  // Replaces `expected` by `page` in one step, split in two if it is large. *won tells whether it happened.
  Status ReplaceByHalves(PageId id, const Node* expected, Owned<BasePage> page, bool* won);
  Status SplitRoot(const Node* expected, const BasePage& page, bool* won);
  enum class Insistence : uint8_t { kOnce, kUntilThere };
  Status PostIndexTerm(uint8_t level, std::string_view separator, PageId child, Insistence insistence);
  // merge.cc. All REQUIRE a guard.
  size_t PageLimit(uint8_t level) const;
  // `page` has replaced one of so many bytes.
  void NoteShrunk(size_t before, const BasePage& page);
  size_t SizeOf(PageId id, PageWord word) const;
  // About what the page takes on storage.
  size_t ImageBytes(PageId id) const {
    size_t bytes = 0;
    const ImageParts image = pages_.Image(id);
    for (const PageAddress part : image.all()) bytes += part.length_bound();
    return bytes;
  }
  // Gives up the leaf's tombstones if they are most of it.
  void Thin(PageId id, std::string_view key, MergeReport* report);
  bool Merge(PageId left, PageId right, std::string_view left_key, std::string_view right_key, MergeReport* report);
  // False: undone.
  bool Unlink(PageId id, const Node* removed);
  void Absorb(PageId id, const Node* removed);
  void TouchParent(uint8_t level, std::string_view key);
  // bwtree.cc
  // `head` was replaced by this thread.
  void Retire(const Node* head);
  // The page is gone; notes the pages below it. REQUIRES: nobody can see them.
  void FreePage(PageId id);

  MappingTable& pages_;
  ReclamationDomain& domain_;
  const std::atomic<uint64_t>& consolidation_timestamp_;
  const StructureGate* const gate_;
  SegmentStore* const images_;
  const BwTreeOptions options_;
  const TableId table_;
  const PageId root_;
  // Of who frees the tree: pages that are still to be freed, with all that is below them.
  bool freeing_ = false;
  std::vector<PageId> to_free_;

  alignas(64) std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> records_{0};
  std::atomic<uint64_t> consolidations_{0};
  std::atomic<uint64_t> lost_consolidations_{0};
  std::atomic<uint64_t> splits_{0};
  std::atomic<uint64_t> helped_splits_{0};
  std::atomic<uint64_t> merges_{0};
  std::atomic<uint64_t> small_pages_{1};  // one: what a start finds was never looked at
};

class BwTree::Place {
 public:
  Place() = default;  // not known
  // A page that cannot be read takes as many updates, blindly, as one part of an image holds.
  static Place Unreadable() {
    Place place;
    place.unreadable_ = true;
    return place;
  }

 private:
  friend class BwTree;
  explicit Place(const PageView& page) : page_(page) {}
  PageView page_{kNoPage, PageWord()};
  bool unreadable_ = false;
};

class BwTree::Lookup {
 public:
  Lookup() : Lookup(Target({}, Side::kAt), PageView{kNoPage, PageWord()}) {}

 private:
  friend class BwTree;
  Lookup(const Target& target, const PageView& page) : target_(target), page_(page) {}
  Target target_;
  PageView page_;
  int step_ = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_BWTREE_H_
