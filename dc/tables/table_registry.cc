#include "dc/tables/table_registry.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

auto LowerBound(const std::vector<Table*>& live, TableId id) {
  return std::lower_bound(live.begin(), live.end(), id,
                          [](const Table* table, TableId wanted) { return table->id < wanted; });
}

}  // namespace

TableRegistry::TableRegistry(Runtime& runtime, const BwTreeEnvironment& environment, const BwTreeOptions& options,
                             TableReaper* reaper)
    : environment_(environment), options_(options), reaper_(reaper), mutex_(runtime), snapshot_(new Snapshot) {}

TableRegistry::~TableRegistry() {
  const std::unique_ptr<const Snapshot> last(snapshot_.load(std::memory_order_acquire));
  for (Table* table : last->live) delete table;
}

TableRegistry::Found TableRegistry::Find(TableId id) const {
  DEUT_DCHECK(environment_.domain.guard_held());
  const Snapshot& now = snapshot();
  const auto live = LowerBound(now.live, id);
  if (live != now.live.end() && (*live)->id == id) return {State::kLive, *live};
  if (!now.dropped.Contains(id) || DEUT_OMITTED("T1.dropped_counts_as_applied")) return {};
  return {State::kDropped, nullptr};
}

Result<bool> TableRegistry::Create(TableId id, std::string_view name, const TableOptions& options) {
  const MutexLock lock(mutex_);
  const ReclamationDomain::Guard guard(environment_.domain);
  const Found found = Find(id);
  if (found.state == State::kDropped) return false;
  if (found.state == State::kLive) {
    if (found.table->name == name) return false;
    return DEUT_ERROR(kCorruption, "table ", id.value, " is \"", found.table->name, "\", it cannot be created as \"",
                      name, "\"");
  }
  const Snapshot& old = snapshot();
  for (const Table* table : old.live) {
    if (table->name != name) continue;
    return DEUT_ERROR(kCorruption, "table \"", name, "\" is table ", table->id.value, ", it cannot be created as ",
                      id.value);
  }
  DEUT_IN_FLIGHT("dc.table_create");
  BwTreeOptions of_tree = options_;
  of_tree.compression = options.compression.value_or(options_.compression);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<BwTree> tree, BwTree::Create(environment_, of_tree, id));
  auto next = std::make_unique<Snapshot>(old);
  next->live.insert(LowerBound(next->live, id), new Table{id, std::string(name), std::move(tree), reaper_});
  Publish(std::move(next));
  return true;
}

Result<bool> TableRegistry::Drop(TableId id) {
  const MutexLock lock(mutex_);
  const ReclamationDomain::Guard guard(environment_.domain);
  const Found found = Find(id);
  if (found.state == State::kDropped) return false;
  if (found.state == State::kUnknown)
    return DEUT_ERROR(kCorruption, "table ", id.value, " is dropped but was never created");
  DEUT_IN_FLIGHT("dc.table_drop");
  auto next = std::make_unique<Snapshot>(snapshot());
  const auto dropped = LowerBound(next->live, id);
  DEUT_CHECK(dropped != next->live.end() && *dropped == found.table);
  next->live.erase(dropped);
  // The snapshot without the table is published before the table is retired: no guard that begins later can find it.
  next->dropped.Add(id);
  Publish(std::move(next));
  // The deleter frees no page, because it runs on any thread that retires something. That thread may hold a mutex or
  // be answering a read.
  environment_.domain.Retire(
      found.table,
      [](void* object) {
        Table* const table = static_cast<Table*>(object);
        if (table->reaper == nullptr) {
          delete table;
        } else {
          table->reaper->Add(table);
        }
      },
      found.table->tree->statistics().bytes);
  return true;
}

std::vector<TableId> TableRegistry::LiveTables() {
  std::vector<TableId> tables;
  const ReclamationDomain::Guard guard(environment_.domain);
  for (const Table* table : snapshot().live) tables.push_back(table->id);
  return tables;
}

void TableRegistry::Restore(TableId id, std::string_view name, std::unique_ptr<BwTree> tree) {
  const MutexLock lock(mutex_);
  const ReclamationDomain::Guard guard(environment_.domain);
  auto next = std::make_unique<Snapshot>(snapshot());
  next->live.insert(LowerBound(next->live, id), new Table{id, std::string(name), std::move(tree), reaper_});
  Publish(std::move(next));
}

void TableRegistry::RestoreDropped(TableId first, TableId last) {
  const MutexLock lock(mutex_);
  const ReclamationDomain::Guard guard(environment_.domain);
  auto next = std::make_unique<Snapshot>(snapshot());
  next->dropped.Add(first, last);
  Publish(std::move(next));
}

void TableRegistry::Publish(std::unique_ptr<const Snapshot> next) {
  // Find searches the live tables by their ids.
  const auto out_of_order = [](const Table* a, const Table* b) { return a->id >= b->id; };
  DEUT_DCHECK(std::ranges::adjacent_find(next->live, out_of_order) == next->live.end());
  const Snapshot* old = snapshot_.exchange(next.release(), std::memory_order_acq_rel);
  environment_.domain.RetireObject(const_cast<Snapshot*>(old));
}

}  // namespace deut::dc
