// StoredTree: a tree whose pages can be written, evicted, damaged and loaded, with a record of its expected content.
// For tests. Thread-safety: one thread, except FindTree and the tree's own methods.
#ifndef DC_BWTREE_STORED_TREE_FIXTURE_H_
#define DC_BWTREE_STORED_TREE_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/page_bits.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class StoredTree final : public TreeSource, public TableList {
 public:
  static constexpr TableId kTable{5};
  // Value of the records that Fill puts.
  static constexpr std::string_view kValue = "0123456789012345678901234567890123456789";
  using Records = std::map<std::string, std::string>;
  using Images = std::map<PageId, ImageParts>;

  explicit StoredTree(const BwTreeOptions& options = SmallPages());
  ~StoredTree() override;

  BwTree* FindTree(TableId table) override { return table == kTable ? tree_.get() : nullptr; }
  std::vector<TableId> LiveTables() override { return {kTable}; }
  BwTreeEnvironment environment() { return {*pages_, domain_, consolidation_, nullptr, store_.get()}; }

  // --- Records.
  // Updates the record; loads its page if necessary.
  void Put(uint64_t number, std::string_view value);
  void Delete(uint64_t number);
  void Fill(uint64_t first, uint64_t last);
  // Puts the records below `last` so that their pages have no deltas, are written and in memory, and are not split by
  // updates of the same size.
  void FillSettled(uint64_t last);
  // Checks all records by a scan, and each by a read; loads the pages that are not in memory.
  void ExpectRight();
  const Records& records() const { return records_; }

  // --- Pages.
  using Visit = std::function<void(const VisitedPage&)>;
  // Visits all pages of a level, or those in `only` and the root, from right to left, with one guard for the pages of
  // one parent.
  void Walk(uint8_t level, const Visit& visit, const PageBits* only = nullptr);
  std::vector<PageId> Pages(uint8_t level);
  // Returns the leaf that the record belongs to. REQUIRES: all splits are posted.
  PageId LeafOf(uint64_t number);
  // Returns the chain's head; null: the page is on storage. One thread at a time may read it, while no other thread
  // changes the page.
  const Node* HeadOf(PageId id);
  ImageParts ImageOf(PageId id);
  Images AllImages();

  Result<PageFlusher::Added> Add(PageId id) { return Add(*flusher_, id); }
  Result<PageFlusher::Added> Add(PageFlusher& flusher, PageId id);
  // Adds one page and writes it.
  void Flush(PageId id);
  // Writes all pages of all levels, or only the leaves.
  void Flush(bool leaves_only = false);
  // Returns the number of leaves that were evicted.
  int Evict();
  bool Evict(PageId leaf);
  Status Load(const Target& target);
  Status Load(uint64_t number);
  // Drops the tree and frees its pages.
  void Drop() { tree_.reset(); }

  // Recovers a tree from these images, or from the current ones. *found: the records of the tree below the root, after
  // `then` was called for it.
  Status Restore(const Images& images, Records* found, const std::function<void(BwTree&)>& then = {});
  Status Restore(Records* found) { return Restore(AllImages(), found); }

  // --- Storage.
  // Flips a bit of a part of a page's image, `at` bytes behind the part's start.
  void FlipBit(const ImageParts& image, size_t part, uint64_t at, int bit);
  // Writes a part built by the test.
  PageAddress Append(const PartHeader& header, std::string_view payload);
  // Sets the page's image, whatever it was before.
  void SetImage(PageId id, const ImageParts& parts);
  // Returns the bytes of the parts that images name; all other parts must be dead.
  uint64_t BytesOfImages();
  uint64_t LiveBytes() { return store_->totals().live_bytes; }

  // Calls `then` once, when a thread next passes the point: it plays the part of another thread.
  void AtPoint(std::string name, std::function<void()> then);

  BwTree& tree() { return *tree_; }
  MappingTable& pages() { return *pages_; }
  SegmentStore& store() { return *store_; }
  FaultyDisk& disk() { return disk_; }
  PageFlusher& flusher() { return *flusher_; }
  // Creates a new flusher; the pages that were added to the old one are dropped.
  void NewFlusher();
  ReclamationDomain& domain() { return domain_; }
  void SetConsolidation(uint64_t timestamp) { consolidation_.store(timestamp); }
  uint64_t now() const { return now_; }

 private:
  void Update(uint64_t number, const std::string_view* value);
  Status Scan(BwTree& tree, Records* found);

  const BwTreeOptions options_;
  FaultyDisk disk_;
  const std::unique_ptr<Storage> storage_;
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<MappingTable> pages_;
  ReclamationDomain domain_;
  std::atomic<uint64_t> consolidation_{0};
  std::unique_ptr<BwTree> tree_;
  std::unique_ptr<PageFlusher> flusher_;
  uint64_t now_ = 0;
  Records records_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_STORED_TREE_FIXTURE_H_
