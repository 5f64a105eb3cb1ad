// Catalogue: the tables of the TC: names to ids to states (rule T1). Ids are never reused; records carry ids, names only resolve to them.
// Look-ups by id are latch-free (the hot path does one per operation). Creating, dropping and look-ups by name take a mutex: cold.
// Thread-safety: any thread. Ownership: owns the table states; a dropped table's state lives on, closed, until the TC ends.
#ifndef TC_CATALOGUE_CATALOGUE_H_
#define TC_CATALOGUE_CATALOGUE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "protocol/data_component.h"
#include "tc/catalogue/table_state.h"

namespace deut::tc {

class Catalogue {
 public:
  static constexpr uint32_t kMaxTables = 1 << 16;

  Catalogue(Runtime& runtime, ReclamationDomain& domain);
  ~Catalogue();

  // What the DC holds, at start. CORRUPTION if two live tables share a name or an id.
  Status Load(const std::vector<TableInfo>& tables);

  // Null if the id names no table, or one that is dropped or being dropped.
  TableState* Find(TableId id) const {
    TableState* const state = FindAlsoDropped(id);
    return state != nullptr && state->open() ? state : nullptr;
  }
  // Null if this TC, since it began, knew no such table.
  TableState* FindAlsoDropped(TableId id) const {
    return id.value < kMaxTables ? states_[id.value].load(std::memory_order_acquire) : nullptr;
  }
  // NOT_FOUND, naming the table.
  Result<TableState*> FindByName(std::string_view name) const;
  static Status NotFound(TableId id);

  // The id for a table about to be created; no other call gets it. ALREADY_EXISTS / RESOURCE_EXHAUSTED.
  Result<TableId> ReserveId(std::string_view name);
  // The creation is committed at `created_at`: the table is there.
  void Add(TableId id, std::string_view name, Position created_at);
  void CancelReservation(std::string_view name);
  // The drop is committed: the name is free again.
  void Forget(TableState* table);

  std::vector<TableState*> tables() const;
  // S9: copies of postings that lie in ranges, of all tables, besides the ones that their transactions have posted themselves.
  uint64_t copied_postings() const { return copied_postings_->load(std::memory_order_relaxed); }

 private:
  Runtime& runtime_;
  ReclamationDomain& domain_;
  // Ranges that are retired count their postings out, when the catalogue may have ended.
  const std::shared_ptr<std::atomic<uint64_t>> copied_postings_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::unique_ptr<std::array<std::atomic<TableState*>, kMaxTables>> states_owner_;
  std::array<std::atomic<TableState*>, kMaxTables>& states_;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, TableId> names_ DEUT_GUARDED_BY(mutex_);  // a reserved name maps to its future id
  std::vector<std::unique_ptr<TableState>> owned_ DEUT_GUARDED_BY(mutex_);
  uint32_t next_id_ DEUT_GUARDED_BY(mutex_) = 1;
};

}  // namespace deut::tc

#endif  // TC_CATALOGUE_CATALOGUE_H_
