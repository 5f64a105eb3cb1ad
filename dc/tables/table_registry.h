// TableRegistry: the live and the dropped tables (rule T1). Each table is a Bw-tree of its own, so dropping one does
// not touch the others.
//
// States of a table id: unknown -> live (Create) -> dropped (Drop). Ids are never used again. The memory for the
// dropped ids does not grow with their number (dropped_ids.h).
// A lookup reads an immutable snapshot behind one atomic pointer. Create and Drop (rare, one at a time under a mutex)
// publish a new snapshot. They retire the old one, and a dropped table, through the reclamation domain: readers
// inside a guard finish on the snapshot that they found. The thread that collects a dropped table hands it to the
// reaper, which frees the tree in the background.
// Thread-safety: all methods from any thread; Find requires a guard of the domain, and its answer lives as long as
// that guard. Ownership: owns the live tables.
#ifndef DC_TABLES_TABLE_REGISTRY_H_
#define DC_TABLES_TABLE_REGISTRY_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_source.h"
#include "dc/tables/dropped_ids.h"
#include "dc/tables/table_reaper.h"
#include "protocol/table_options.h"

namespace deut::dc {

class TableRegistry final : public TreeSource, public TableList {
 public:
  enum class State : uint8_t { kUnknown, kLive, kDropped };
  struct Found {
    State state = State::kUnknown;
    Table* table = nullptr;  // set if the table is live
  };

  // `reaper`: frees dropped tables; outlives the domain. Null: the thread that collects a table frees it.
  TableRegistry(Runtime& runtime, const BwTreeEnvironment& environment, const BwTreeOptions& options,
                TableReaper* reaper = nullptr);
  // REQUIRES: no other thread uses the registry.
  ~TableRegistry() override;
  TableRegistry(const TableRegistry&) = delete;
  TableRegistry& operator=(const TableRegistry&) = delete;

  // HOT PATH. REQUIRES: a guard.
  Found Find(TableId id) const;
  BwTree* FindTree(TableId id) override {
    Table* const table = Find(id).table;
    return table == nullptr ? nullptr : table->tree.get();
  }

  std::vector<TableId> LiveTables() override;

  // Recovery, one thread, before anything else: adds a live table with its tree, or the ids of dropped tables.
  void Restore(TableId id, std::string_view name, std::unique_ptr<BwTree> tree);
  void RestoreDropped(TableId first, TableId last);

  // While this object lives, no table is created or dropped; a thread that wants to do so blocks.
  class Pause {
   public:
    explicit Pause(TableRegistry& registry) : lock_(registry.mutex_) {}

   private:
    const MutexLock lock_;
  };

  // Creates a table. Options that are not given are those of the registry. False: it was created (and perhaps dropped)
  // before. CORRUPTION if the id or the name belongs to another live table.
  Result<bool> Create(TableId id, std::string_view name, const TableOptions& options = {});
  // Drops a table. False: it was dropped before. CORRUPTION if the id is unknown.
  Result<bool> Drop(TableId id);

  struct Snapshot {
    std::vector<Table*> live;  // sorted by id
    DroppedIds dropped;
  };

  // The live tables and the dropped ids. REQUIRES: a guard; the snapshot and its tables live as long as the guard.
  const Snapshot& snapshot() const { return *snapshot_.load(std::memory_order_acquire); }

 private:
  void Publish(std::unique_ptr<const Snapshot> next);

  const BwTreeEnvironment environment_;
  const BwTreeOptions options_;
  TableReaper* const reaper_;
  Mutex mutex_;
  std::atomic<const Snapshot*> snapshot_;
};

}  // namespace deut::dc

#endif  // DC_TABLES_TABLE_REGISTRY_H_
