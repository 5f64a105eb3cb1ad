#include "tc/catalogue/catalogue.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// Tables that one call of FreeDropped takes out, and frees, at most: a few hundred microseconds of work.
constexpr size_t kFreedPerRound = 64;

constexpr uint64_t kLastId = UINT32_MAX;

}  // namespace

Catalogue::Catalogue(Runtime& runtime, ReclamationDomain& domain, uint32_t max_tables)
    : runtime_(runtime), domain_(domain), max_tables_(max_tables), mutex_(runtime_) {}

Catalogue::~Catalogue() {
  ReclamationDomain::Guard guard(domain_);
  MutexLock lock(mutex_);
  for (const auto& [id, state] : owned_) {
    state->map().RemoveAllPostings(domain_);
    state->ForgetDropper(domain_);
  }
}

Status Catalogue::LoadFromDc(const std::vector<TableInfo>& tables) {
  MutexLock lock(mutex_);
  for (const TableInfo& table : tables) {
    if (table.id.value == 0) return DEUT_ERROR(kCorruption, "the data component lists a table with id 0");
    next_id_ = std::max(next_id_, uint64_t{table.id.value} + 1);
    if (table.dropped) continue;
    if (owned_.contains(table.id.value) || !names_.emplace(table.name, table.id).second) {
      return DEUT_ERROR(kCorruption, "the data component lists table ", Quoted(table.name), " (id ", table.id.value,
                        ") twice");
    }
    auto state = std::make_shared<TableState>(table.id, table.name, Position{}, copied_postings_);
    if (TableIndex::Replaced array = index_.Insert(state.get())) replaced_.push_back(std::move(array));
    owned_.emplace(table.id.value, std::move(state));
  }
  return Status::Ok();
}

Result<Catalogue::TablePointer> Catalogue::FindByName(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto named = names_.find(std::string(name));
  if (named != names_.end()) {
    const auto owned = owned_.find(named->second.value);
    if (owned != owned_.end() && owned->second->open()) return owned->second;
  }
  return DEUT_ERROR(kNotFound, "there is no table ", Quoted(name));
}

Status Catalogue::NotFound(TableId id) {
  return DEUT_ERROR(kNotFound, "there is no table with id ", id.value, " (never created, or dropped)");
}

Result<std::string> Catalogue::NameOf(TableId id) const {
  std::optional<ReclamationDomain::Guard> guard;
  if (DEUT_STEP("T1.name_guard")) guard.emplace(domain_);
  const TableState* const state = Find(id);
  if (state == nullptr) return NotFound(id);
  return std::string(state->name());
}

Result<TableId> Catalogue::ReserveId(std::string_view name) {
  if (name.empty() || name.size() > kMaxTableNameBytes) {
    return DEUT_ERROR(kInvalidArgument, "a table's name has 1 to ", kMaxTableNameBytes, " bytes; this one has ",
                      name.size());
  }
  MutexLock lock(mutex_);
  if (names_.contains(std::string(name)))
    return DEUT_ERROR(kAlreadyExists, "there is a table ", Quoted(name), " already");
  if (names_.size() >= max_tables_) {
    // Not RESOURCE_EXHAUSTED, which asks for a retry of the same call: live tables stay until a client drops one.
    return DEUT_ERROR(kWrongState, "there are ", names_.size(),
                      " tables, which is the limit: drop one, or start tcd with a larger --max_tables");
  }
  // Bounded, too: a transaction that stays open, or an unreachable DC, keeps all of them.
  if (dropped() >= max_tables_) {
    return DEUT_ERROR(kResourceExhausted, dropped(),
                      " dropped tables are not freed yet, and the limit (--max_tables) is ", max_tables_,
                      ": older transactions are open, or the data component has not applied the drops")
        .WithRetryAfter(100);
  }
  TableId id;
  if (!cancelled_.empty()) {
    id = cancelled_.back();
    cancelled_.pop_back();
  } else if (next_id_ <= kLastId) {
    id = TableId{static_cast<uint32_t>(next_id_++)};
  } else {
    return DEUT_ERROR(kWrongState, "this store has used all ", kLastId,
                      " table ids, which are never reused: tables can be created in a new store only");
  }
  names_.emplace(std::string(name), id);
  return id;
}

void Catalogue::AddCreated(TableId id, std::string_view name, Position created_at) {
  auto state = std::make_shared<TableState>(id, std::string(name), created_at, copied_postings_);
  MutexLock lock(mutex_);
  const auto named = names_.find(state->name());
  DEUT_CHECK(named != names_.end() && named->second == id);  // reserved for this table
  if (TableIndex::Replaced array = index_.Insert(state.get())) replaced_.push_back(std::move(array));
  owned_.emplace(id.value, std::move(state));
}

void Catalogue::CancelReservation(std::string_view name) {
  MutexLock lock(mutex_);
  const auto named = names_.find(std::string(name));
  DEUT_CHECK(named != names_.end());
  DEUT_CHECK(!owned_.contains(named->second.value));  // the id of a table that was created is never used again
  // No log record and no client has seen the id. If it is reused, the DC need not remember a gap (dc/tables/dropped_ids.h).
  cancelled_.push_back(named->second);
  names_.erase(named);
}

void Catalogue::MarkDropped(const TablePointer& table, Position dropped_at) {
  DEUT_CHECK(!table->open());  // no later transaction may still write to it
  MutexLock lock(mutex_);
  const auto named = names_.find(table->name());
  if (named != names_.end() && named->second == table->id()) names_.erase(named);
  newly_dropped_.push_back({table, dropped_at});
  dropped_count_.fetch_add(1, std::memory_order_relaxed);
}

bool Catalogue::FreeDropped(const Freeing& freeing, Collector::Access& collector) {
  {
    MutexLock lock(mutex_);
    std::ranges::move(std::exchange(newly_dropped_, {}), std::back_inserter(waiting_));
    if (waiting_.empty() && unindexed_.empty() && replaced_.empty()) return false;
  }
  // The value of the last call. Every transaction below it was handed to the collector before that call, and the collector has taken over all
  // finished transactions since. The present value would miss a transaction that has ended just now: the collector would go through its postings
  // for the ranges of a table that is freed.
  const Timestamp passed = std::exchange(low_water_, freeing.low_water());
  DEUT_CHECK(passed <= low_water_);
  size_t left = kFreedPerRound;
  while (!unindexed_.empty() && left > 0) {
    Unindexed& out = unindexed_.front();
    if (!out.drawn.has_value() || (*out.drawn >= passed && DEUT_STEP("T1.free_below_low_water"))) break;
    const size_t before = out.tables.size();
    std::erase_if(out.tables, [&](const Dropped& dropped) {
      if (left == 0 || !Free(dropped, collector)) return false;
      --left;
      return true;
    });
    if (!out.tables.empty() && out.tables.size() == before) break;  // all still in use; the next round retries
    if (!out.tables.empty()) continue;
    ReclamationDomain::Guard guard(domain_);
    for (TableIndex::Replaced& array : out.arrays) domain_.RetireObject(new TableIndex::Replaced(std::move(array)));
    unindexed_.pop_front();
  }
  UnindexApplied(freeing.applied());
  for (auto out = unindexed_.rbegin(); out != unindexed_.rend() && !out->drawn.has_value(); ++out) {
    out->drawn = freeing.draw();
  }
  return !waiting_.empty() || !unindexed_.empty();
}

void Catalogue::UnindexApplied(Position applied) {
  Unindexed out;
  MutexLock lock(mutex_);
  out.arrays = std::exchange(replaced_, {});
  while (!waiting_.empty() && out.tables.size() < kFreedPerRound && waiting_.front().dropped_at <= applied) {
    index_.Erase(waiting_.front().table->id());
    out.tables.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (!out.tables.empty() || !out.arrays.empty()) unindexed_.push_back(std::move(out));
  DEUT_POINT("catalogue.taken_out");
}

bool Catalogue::Free(const Dropped& dropped, Collector::Access& collector) {
  {
    MutexLock lock(mutex_);
    // References: the map's and this one. No thread can get another, because only tables in the map are handed out.
    if (dropped.table.use_count() != 2) return false;
  }
  if (!collector.ForgetTable(dropped.table->id(), dropped.dropped_at.commit, dropped.table->ranges())) return false;
  {
    MutexLock lock(mutex_);
    const size_t erased = owned_.erase(dropped.table->id().value);
    DEUT_CHECK(erased == 1);
  }
  ReclamationDomain::Guard guard(domain_);
  dropped.table->map().RemoveAllPostings(domain_);
  dropped.table->ForgetDropper(domain_);
  domain_.RetireObject(new TablePointer(dropped.table), sizeof(TableState));
  dropped_count_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

std::vector<Catalogue::TablePointer> Catalogue::tables() const {
  MutexLock lock(mutex_);
  std::vector<TablePointer> open;
  for (const auto& [id, state] : owned_) {
    if (state->open()) open.push_back(state);
  }
  std::ranges::sort(open, {}, [](const TablePointer& table) { return table->id(); });
  return open;
}

}  // namespace deut::tc
