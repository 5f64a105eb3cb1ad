// SparseTree: the pages of a table as an ordered load leaves them, for a store that is made without a load
// (sparse_store.h). Any page can be built alone, from its level and its place on that level, so no memory follows the
// number of pages.
//
// Fill: a page that is too large splits, and the last one of its level keeps 7/8 of its bytes (dc/bwtree/split.cc). So
// each page has 7/8 of the entries of the first page that is too large, and the last one of a level has the rest.
// Keys have 20 bytes: the record's number as 12 hexadecimal digits, and 8 letters. Separators are the 12 digits. Values
// are those of bench_records.h, with 100 bytes.
// Ids: the root has 1, as the first page of a table. The others ascend in the order in which they lie in the store:
// each inner page is behind the last leaf below it.
// Thread-safety: immutable. Ownership: a built page is the caller's.
#ifndef DC_BENCH_SPARSE_TREE_H_
#define DC_BENCH_SPARSE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "dc/bench/bench_records.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/bwtree_options.h"
#include "dc/page_store/page_id.h"

namespace deut::dc::bench {

// The version of all records.
constexpr Version kSparseVersion{BenchTimestamp(1), 1};

std::string SparseKey(uint64_t record);

// The entries that pages have after an ordered load.
struct SparseFill {
  explicit SparseFill(const BwTreeOptions& options);
  uint64_t records = 0;     // of a leaf
  uint64_t children = 0;    // of an inner page
  uint64_t leaf_bytes = 0;  // of the image of a leaf, without its bounds
};

class SparseTree {
 public:
  static constexpr PageId kRoot{1};

  // REQUIRES: leaves >= 2.
  SparseTree(const SparseFill& fill, uint64_t leaves);

  uint8_t root_level() const { return static_cast<uint8_t>(pages_.size() - 1); }
  uint64_t leaves() const { return pages_[0]; }
  uint64_t inner_pages() const;
  uint64_t records() const { return leaves() * fill_.records; }
  // Above all ids.
  PageId next_page() const { return PageId(IdOf(0, leaves() - 1).value + root_level()); }

  // A page is named by its level and its place on it, in the order of keys.
  PageId IdOf(uint8_t level, uint64_t page) const;
  // True if this leaf is the last one below the inner page of `level` that has it.
  bool EndsPage(uint8_t level, uint64_t leaf) const;
  // The inner page of `level` that has this leaf.
  uint64_t PageOver(uint8_t level, uint64_t leaf) const { return leaf / LeavesBelow(level); }
  Owned<BasePage> Build(uint8_t level, uint64_t page) const;
  // Bytes of the image of a leaf.
  uint64_t LeafImageBytes(uint64_t leaf) const;

 private:
  // Leaves below an inner page of `level` that is not the last one.
  uint64_t LeavesBelow(uint8_t level) const;
  // Empty for the first page.
  std::string LowOf(uint8_t level, uint64_t page) const;
  // Empty for the last page.
  std::string HighOf(uint8_t level, uint64_t page) const;

  const SparseFill fill_;
  std::vector<uint64_t> pages_;  // number of pages of each level
};

}  // namespace deut::dc::bench

#endif  // DC_BENCH_SPARSE_TREE_H_
