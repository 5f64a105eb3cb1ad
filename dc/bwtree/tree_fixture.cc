#include "dc/bwtree/tree_fixture.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"

namespace deut::dc {

void PrintTo(const TestRecord& record, std::ostream* out) {
  *out << "(" << record.key << ", " << record.value.substr(0, 20) << ", " << record.version.timestamp.value << "."
       << record.version.sequence << ")";
}

BwTreeOptions SmallPages() {
  BwTreeOptions options;
  options.leaf_page_bytes = 1024;
  options.inner_page_bytes = 512;
  options.leaf_chain_length = 4;
  options.inner_chain_length = 2;
  return options;
}

BwTree::MergeReport MergeOnce(BwTree* tree) {
  BwTree::MergeReport report;
  for (uint8_t level = 0; level < tree->root_level(); ++level) {
    for (BwTree::Walk walk; !walk.complete;) tree->MergePages(level, &walk, &report);
  }
  return report;
}

uint64_t TestTree::MergeAll() {
  uint64_t merged = 0;
  for (uint64_t now = 1; now != 0; merged += now) {
    now = MergeOnce(tree.get()).merged;
    domain.Collect();
  }
  return merged;
}

TestTree::TestTree(const BwTreeOptions& options, uint32_t pages) {
  auto created = MappingTable::Create(pages);
  DEUT_CHECK(created.ok());
  table = std::move(*created);
  auto made = BwTree::Create(BwTreeEnvironment{*table, domain, consolidation}, options);
  DEUT_CHECK(made.ok());
  tree = std::move(*made);
}

BwTree::Outcome TestTree::Put(std::string_view key, std::string_view value, Version version) {
  const auto outcome = tree->Put(key, value, version);
  DEUT_CHECK(outcome.ok());
  return *outcome;
}

BwTree::Outcome TestTree::Delete(std::string_view key, Version version) {
  const auto outcome = tree->Delete(key, version);
  DEUT_CHECK(outcome.ok());
  return *outcome;
}

std::unique_ptr<TestRecord> TestTree::Read(std::string_view key) {
  RecordBatch batch;
  const BwTree::Found found = tree->Read(key, &batch);
  DEUT_CHECK(found != BwTree::Found::kNotLoaded);
  if (found == BwTree::Found::kNo) {
    DEUT_CHECK(batch.empty());
    return nullptr;
  }
  DEUT_CHECK(batch.size() == 1);
  const RecordView record = RecordBatch::Iterator(batch).record();
  DEUT_CHECK(record.key == key);
  return std::make_unique<TestRecord>(TestRecord{std::string(record.key), std::string(record.value), record.version});
}

std::vector<TestRecord> TestTree::Scan(bool ascending, std::string_view low, std::string_view high, uint64_t records,
                                       uint64_t bytes) {
  std::vector<TestRecord> all;
  ScanCursor cursor;
  cursor.low = low;
  cursor.high = high;
  RecordBatch batch;
  while (!cursor.complete) {
    batch.Clear();
    ScanBudget budget;
    if (records != 0) budget.records = records;
    if (bytes != 0) budget.bytes = bytes;
    const std::string low_before = cursor.low;
    const std::string high_before = cursor.high;
    if (ascending) {
      DEUT_CHECK(tree->ScanAscending(&cursor, &budget, &batch));
    } else {
      DEUT_CHECK(tree->ScanDescending(&cursor, &budget, &batch));
    }
    DEUT_CHECK(batch.size() <= budget.records);
    DEUT_CHECK(batch.size() <= 1 || batch.bytes().size() <= budget.bytes);
    DEUT_CHECK(!budget.spent || !batch.empty());
    // The cursor moves only on the side from which the scan comes.
    DEUT_CHECK(ascending ? cursor.high == high_before : cursor.low == low_before);
    DEUT_CHECK(cursor.complete ||
               (ascending ? cursor.low > low_before : (high_before.empty() || cursor.high < high_before)));
    for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) {
      const RecordView& record = it.record();
      DEUT_CHECK(record.key >= low_before && (high_before.empty() || record.key < high_before));
      if (!cursor.complete) DEUT_CHECK(ascending ? record.key < cursor.low : record.key >= cursor.high);
      if (!all.empty()) DEUT_CHECK(ascending ? all.back().key < record.key : all.back().key > record.key);
      all.push_back(TestRecord{std::string(record.key), std::string(record.value), record.version});
    }
  }
  return all;
}

std::string KeyOf(uint64_t number) {
  std::string digits = Concat(number);
  return Concat("k", std::string(8 - std::min<size_t>(digits.size(), 8), '0'), digits);
}

}  // namespace deut::dc
