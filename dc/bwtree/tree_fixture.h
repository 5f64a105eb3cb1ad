// What the tests of the tree share: a tree with all it stands on, and reading it back in several ways.
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

// One round over all levels.
BwTree::MergeReport MergeOnce(BwTree* tree);

// Small pages, so that a few thousand records make a tree of several levels.
BwTreeOptions SmallPages();

struct TestTree {
  explicit TestTree(const BwTreeOptions& options = SmallPages(), uint32_t pages = 1 << 20);

  // REQUIRES: the tree has ids left.
  BwTree::Outcome Put(std::string_view key, std::string_view value, Version version);
  BwTree::Outcome Delete(std::string_view key, Version version);

  // No value if there is no such record.
  std::unique_ptr<TestRecord> Read(std::string_view key);
  // A whole scan of [low, high) in batches of at most so many records and bytes (0 = no limit). Checks of every batch that it fits
  // its budget, that its keys are inside what was left and in order, and that the cursor moves.
  std::vector<TestRecord> Scan(bool ascending, std::string_view low = {}, std::string_view high = {},
                               uint64_t records = 0, uint64_t bytes = 0);

  // Merges until there is nothing left to merge, levels from the leaves upward. Answers how many pages went.
  uint64_t MergeAll();

  std::unique_ptr<MappingTable> table;
  ReclamationDomain domain;
  std::atomic<uint64_t> consolidation{0};
  std::unique_ptr<BwTree> tree;  // ends first
};

constexpr Version V(uint64_t timestamp, uint32_t sequence = 1) { return Version{Timestamp(timestamp), sequence}; }

// "k" and the number in 8 digits.
std::string KeyOf(uint64_t number);

}  // namespace deut::dc

#endif  // DC_BWTREE_TREE_FIXTURE_H_
