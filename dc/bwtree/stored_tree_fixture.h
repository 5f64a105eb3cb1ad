// StoredTree: a tree whose pages can be written, swapped out, damaged and loaded, with a note of what it must hold. For tests.
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
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class StoredTree final : public TreeSource, public TableList {
 public:
  static constexpr TableId kTable{5};
  // Of the records that Fill puts.
  static constexpr std::string_view kValue = "0123456789012345678901234567890123456789";
  using Records = std::map<std::string, std::string>;
  using Images = std::map<PageId, ImageParts>;

  explicit StoredTree(const BwTreeOptions& options = SmallPages());
  ~StoredTree() override;

  BwTree* FindTree(TableId table) override { return table == kTable ? tree_.get() : nullptr; }
  std::vector<TableId> LiveTables() override { return {kTable}; }
  BwTreeEnvironment environment() { return {*pages_, domain_, consolidation_, nullptr, store_.get()}; }

  // --- Records.
  // Loads the page if that is needed.
  void Put(uint64_t number, std::string_view value);
  void Delete(uint64_t number);
  void Fill(uint64_t first, uint64_t last);
  // Records below `last` in pages without deltas, all written and in memory, none of which is split by updates of the same size.
  void FillSettled(uint64_t last);
  // All records by a scan, and each by a read; loads what is not there.
  void ExpectRight();
  const Records& records() const { return records_; }

  // --- Pages.
  using Visit = std::function<void(const VisitedPage&)>;
  // All pages of a level, from the right to the left, one guard for those of one parent.
  void Walk(uint8_t level, const Visit& visit);
  std::vector<PageId> Pages(uint8_t level);
  // The leaf that the record belongs to. REQUIRES: all splits are posted.
  PageId LeafOf(uint64_t number);
  // The chain's head; null: nothing is in memory. For looking at, by one thread at a time, while nobody else changes the page.
  const Node* HeadOf(PageId id);
  ImageParts ImageOf(PageId id);
  Images AllImages();

  Result<PageFlusher::Added> Add(PageId id) { return Add(*flusher_, id); }
  Result<PageFlusher::Added> Add(PageFlusher& flusher, PageId id);
  // Adds one page and writes it.
  void Flush(PageId id);
  // Writes all pages of all levels, or of the leaves.
  void Flush(bool leaves_only = false);
  // Answers how many leaves were swapped out.
  int Evict();
  bool Evict(PageId leaf);
  Status Load(const Target& target);
  Status Load(uint64_t number);
  // The tree is dropped: its pages are freed.
  void Drop() { tree_.reset(); }

  // What a start would make of these images, or of those that there are: the records of the tree below the root.
  Status Restore(const Images& images, Records* found);
  Status Restore(Records* found) { return Restore(AllImages(), found); }

  // --- Storage.
  // Flips a bit of a part of a page's image, `at` bytes behind its start.
  void FlipBit(const ImageParts& image, size_t part, uint64_t at, int bit);
  // Writes a part made by hand.
  PageAddress Append(const PartHeader& header, std::string_view payload);
  // The page's image is this from now on, whatever there was.
  void SetImage(PageId id, const ImageParts& parts);
  // Bytes of parts that an image names; all others must be dead.
  uint64_t BytesOfImages();
  uint64_t LiveBytes() { return store_->totals().live_bytes; }

  // At the next pass of the point, once: what another thread does meanwhile.
  void AtPoint(std::string name, std::function<void()> then);

  BwTree& tree() { return *tree_; }
  MappingTable& pages() { return *pages_; }
  SegmentStore& store() { return *store_; }
  FaultyDisk& disk() { return disk_; }
  PageFlusher& flusher() { return *flusher_; }
  // Another one, and what was added to the old one is given up.
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
