#include "dc/tables/table_trees.h"

#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// With more than kMaxTablesSummedExactly tables, the sum of their bytes is reused for kSumValidFor. The sum takes some
// microseconds for a hundred tables, and every load of a page asks for it.
constexpr size_t kMaxTablesSummedExactly = 64;
constexpr Duration kSumValidFor = std::chrono::milliseconds(1);

}  // namespace

TableTrees::TableTrees(Runtime& runtime, const BwTreeOptions& options, std::unique_ptr<MappingTable> pages,
                       std::unique_ptr<SegmentStore> segments)
    : runtime_(runtime),
      segments_(std::move(segments)),
      pages_(std::move(pages)),
      reaper_(runtime),
      registry_(runtime, environment(), options, &reaper_) {}

TableTrees::~TableTrees() {
  reaper_.Stop();
  DEUT_CHECK(reaper_.tables() == 0);
}

BwTreeEnvironment TableTrees::environment() {
  return BwTreeEnvironment{*pages_, domain_, consolidation_timestamp_, &gate_, segments_.get(), &flushed_};
}

std::vector<TableInfo> TableTrees::List() {
  std::vector<TableInfo> infos;
  const ReclamationDomain::Guard guard(domain_);
  const TableRegistry::Snapshot& now = registry_.snapshot();
  for (Table* table : now.live) {
    TableInfo info;
    info.id = table->id;
    info.name = table->name;
    info.records = table->tree->ApproximateRecords();
    info.bytes = table->tree->statistics().bytes;
    infos.push_back(std::move(info));
  }
  // T1: ids are drawn above the highest that was ever used. The other dropped ids add no information, and their
  // number is unlimited.
  if (!now.dropped.empty() && DEUT_STEP("T1.list_last_dropped")) {
    TableInfo info;
    info.id = now.dropped.highest();
    info.dropped = true;
    infos.push_back(std::move(info));
  }
  return infos;
}

TableTrees::Sum TableTrees::Statistics() {
  Sum sum;
  const ReclamationDomain::Guard guard(domain_);
  for (const Table* table : registry_.snapshot().live) {
    const BwTreeStatistics of_tree = table->tree->statistics();
    ++sum.tables;
    sum.trees.records += of_tree.records;
    sum.trees.bytes += of_tree.bytes;
    sum.trees.consolidations += of_tree.consolidations;
    sum.trees.lost_consolidations += of_tree.lost_consolidations;
    sum.trees.splits += of_tree.splits;
    sum.trees.helped_splits += of_tree.helped_splits;
    sum.trees.merges += of_tree.merges;
  }
  return sum;
}

uint64_t TableTrees::TreeBytes() {
  const ReclamationDomain::Guard guard(domain_);
  const std::vector<Table*>& live = registry_.snapshot().live;
  const bool many = live.size() > kMaxTablesSummedExactly;
  const int64_t now = many ? runtime_.Now().time_since_epoch().count() : 0;
  if (many && now < tree_bytes_until_.load(std::memory_order_acquire)) {
    return tree_bytes_.load(std::memory_order_relaxed);
  }
  uint64_t bytes = 0;
  for (const Table* table : live) bytes += table->tree->statistics().bytes;
  if (many) {
    // The sum is stored before its time: a thread that finds the time finds this sum, or a later one.
    tree_bytes_.store(bytes, std::memory_order_relaxed);
    tree_bytes_until_.store(now + Duration(kSumValidFor).count(), std::memory_order_release);
  }
  return bytes;
}

uint64_t TableTrees::memory_bytes() {
  return domain_.pending_bytes() + TreeBytes() + reaper_.bytes() + pages_->memory_bytes() + segments_->table_bytes();
}

}  // namespace deut::dc
