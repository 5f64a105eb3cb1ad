// Catalogue: the tables of the TC: names to ids to states (rule T1). Ids are never reused; records carry ids, names only resolve to them.
// Look-ups by id are latch-free (the hot path does one per operation). Creating, dropping and look-ups by name take a mutex: cold path.
//
// States of a table: reserved (a name and an id), present (AddCreated), dropped (MarkDropped), taken out of the index, freed. FreeDropped takes the
//   last two steps, on the collector's thread, at the end of a round:
//   take out   once the DC has applied the drop. The DC has only updates below low-water (S1), so every transaction that is earlier than
//              the drop has ended. Later ones find no table, now as before. Then FreeDropped draws a timestamp.
//   free       once low-water has passed that timestamp before the collector took over the finished transactions, the collector needs nothing of
//              the table (Collector::Access::ForgetTable), and no other thread holds it.
//   Why no transaction can still use it: one that looked the table up before it was taken out had its timestamp, or as a snapshot its slot,
//   before the draw (both sides are sequentially consistent). Low-water passes it only when it has ended (L1, L2). Its postings in the table's
//   ranges were handed to the collector before that.
// Thread-safety: any thread; FreeDropped by one at a time.
// Ownership: shared with background threads that got a state from `tables` or FindByName. A result of Find stays valid while the calling
//   transaction is open (it had its timestamp before the call), and under a guard held at the call. So a caller without a transaction takes a
//   guard first (NameOf). States, and replaced arrays of the index, are retired to the domain.
// Limits: `max_tables` tables (WRONG_STATE for the creation of one more), and as many dropped ones that are not freed yet (RESOURCE_EXHAUSTED):
//   an older transaction is open, or the DC is unreachable. 2^32 - 1 ids, ever (WRONG_STATE): 49 days at a thousand creations a second. (Ids are
//   not reused: the DC tells an update of a dropped table from one of an unknown table by the id alone, rule T1.)
#ifndef TC_CATALOGUE_CATALOGUE_H_
#define TC_CATALOGUE_CATALOGUE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "protocol/data_component.h"
#include "tc/catalogue/table_index.h"
#include "tc/catalogue/table_state.h"
#include "tc/mvcc/collector.h"

namespace deut::tc {

class Catalogue {
 public:
  static constexpr uint32_t kDefaultMaxTables = 1 << 16;
  using TablePointer = std::shared_ptr<TableState>;

  Catalogue(Runtime& runtime, ReclamationDomain& domain, uint32_t max_tables = kDefaultMaxTables);
  ~Catalogue();

  // Loads the tables that the DC holds, at start. CORRUPTION if two live tables share a name or an id.
  Status LoadFromDc(const std::vector<TableInfo>& tables);

  // Null if the id names no table, or one that is dropped or being dropped.
  TableState* Find(TableId id) const {
    TableState* const state = FindAlsoDropped(id);
    return state != nullptr && state->open() ? state : nullptr;
  }
  // Null if this TC has known no such table since it started, or if the DC has applied its drop.
  TableState* FindAlsoDropped(TableId id) const { return index_.Find(id); }
  // NOT_FOUND, naming the table, if there is none.
  Result<TablePointer> FindByName(std::string_view name) const;
  static Status NotFound(TableId id);
  // The name of a present table; else NOT_FOUND. For callers without a transaction.
  Result<std::string> NameOf(TableId id) const;

  // Reserves an id for a table about to be created. INVALID_ARGUMENT: the length of the name. ALREADY_EXISTS. WRONG_STATE: there are max_tables
  // tables, or all ids are used. RESOURCE_EXHAUSTED: too many dropped tables are not freed yet.
  Result<TableId> ReserveId(std::string_view name);
  // The creation is committed at `created_at`: makes the table present.
  void AddCreated(TableId id, std::string_view name, Position created_at);
  // The creation was not logged: frees the name, and the id for another table.
  void CancelReservation(std::string_view name);
  // The drop is committed at `dropped_at`: frees the name.
  void MarkDropped(const TablePointer& table, Position dropped_at);

  struct Freeing {
    // The DC's applied position as the collector's round used it: the collector has collected every commit up to it, or treats it as applied. *Else:*
    // the DC applies the drop during the round, the table is taken out, the DC restarts, and the collector folds a commit of a table that is gone.
    std::function<Position()> applied;
    std::function<Timestamp()> low_water;            // may run a round of low-water
    std::function<std::optional<Timestamp>()> draw;  // a timestamp that no transaction has; nothing: none now
  };
  // Takes the steps that are possible now, for a bounded number of tables. True: some tables are left.
  bool FreeDropped(const Freeing& freeing, Collector::Access& collector);

  std::vector<TablePointer> tables() const;
  uint32_t max_tables() const { return max_tables_; }
  // Tables that are dropped and not freed yet.
  uint64_t dropped() const { return dropped_count_.load(std::memory_order_relaxed); }
  // S9: copied postings (P) in the ranges of all tables; those that transactions have posted themselves do not count.
  uint64_t copied_postings() const { return copied_postings_->load(std::memory_order_relaxed); }

 private:
  struct Dropped {
    TablePointer table;
    Position dropped_at;
  };
  // The tables and arrays that one call took out of the index.
  struct Unindexed {
    std::vector<Dropped> tables;
    std::vector<TableIndex::Replaced> arrays;
    std::optional<Timestamp> drawn;  // drawn after they were taken out
  };

  // False: the table is still needed.
  bool Free(const Dropped& dropped, Collector::Access& collector);
  void UnindexApplied(Position applied);

  Runtime& runtime_;
  ReclamationDomain& domain_;
  const uint32_t max_tables_;
  // Shared with the ranges: a retired range subtracts its postings, perhaps after the catalogue is destroyed.
  const std::shared_ptr<std::atomic<uint64_t>> copied_postings_ = std::make_shared<std::atomic<uint64_t>>(0);
  TableIndex index_;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, TableId> names_ DEUT_GUARDED_BY(mutex_);  // a reserved name maps to its future id
  absl::flat_hash_map<uint32_t, TablePointer> owned_ DEUT_GUARDED_BY(mutex_);
  std::vector<TableId> cancelled_ DEUT_GUARDED_BY(mutex_);  // ids that were reserved and never logged
  uint64_t next_id_ DEUT_GUARDED_BY(mutex_) = 1;
  std::vector<Dropped> newly_dropped_ DEUT_GUARDED_BY(mutex_);          // on their way to waiting_
  std::vector<TableIndex::Replaced> replaced_ DEUT_GUARDED_BY(mutex_);  // on their way to unindexed_
  std::atomic<uint64_t> dropped_count_{0};

  // Used by FreeDropped only.
  std::deque<Dropped> waiting_;  // tables whose drop the DC has not applied; in the order of MarkDropped
  std::deque<Unindexed> unindexed_;
  Timestamp low_water_;  // at the last call
};

}  // namespace deut::tc

#endif  // TC_CATALOGUE_CATALOGUE_H_
