// TestTree: a tree with everything that it needs, for the tests of the tree, and several ways to read it back.
// Thread-safety: as BwTree.
#ifndef DC_BWTREE_TREE_FIXTURE_H_
#define DC_BWTREE_TREE_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "protocol/record_batch.h"

namespace deut::dc {

struct TestRecord {
  std::string key;
  std::string value;
  Version version;
  friend bool operator==(const TestRecord&, const TestRecord&) = default;
};

// Prints records in failed expectations.
void PrintTo(const TestRecord& record, std::ostream* out);

// Runs one merge round over all levels.
BwTree::MergeReport MergeOnce(BwTree* tree);

// Returns options with small pages, so that a few thousand records make a tree of several levels.
BwTreeOptions SmallPages();

struct TestTree {
  explicit TestTree(const BwTreeOptions& options = SmallPages(), uint32_t pages = 1 << 20);

  // REQUIRES: the tree has ids left.
  BwTree::Outcome Put(std::string_view key, std::string_view value, Version version);
  BwTree::Outcome Delete(std::string_view key, Version version);

  // Returns null if there is no such record.
  std::unique_ptr<TestRecord> Read(std::string_view key);
  // Runs a whole scan of [low, high) in batches of at most `records` records and `bytes` bytes (0 = no limit). It
  // checks for every batch that it fits its budget, that its keys are in order and inside the remaining range, and
  // that the cursor moves.
  std::vector<TestRecord> Scan(bool ascending, std::string_view low = {}, std::string_view high = {},
                               uint64_t records = 0, uint64_t bytes = 0);

  // Merges until there is nothing left to merge, from the leaves upward. Returns the number of pages that were merged
  // away.
  uint64_t MergeAll();

  std::unique_ptr<MappingTable> table;
  ReclamationDomain domain;
  std::atomic<uint64_t> consolidation{0};
  std::unique_ptr<BwTree> tree;  // destroyed first
};

constexpr Version V(uint64_t timestamp, uint32_t sequence = 1) { return Version{Timestamp(timestamp), sequence}; }

// Returns "k" and the number in 8 digits.
std::string KeyOf(uint64_t number);

}  // namespace deut::dc

#endif  // DC_BWTREE_TREE_FIXTURE_H_
