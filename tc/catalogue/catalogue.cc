#include "tc/catalogue/catalogue.h"

#include <algorithm>
#include <utility>

#include "common/base/concat.h"

namespace deut::tc {

Catalogue::Catalogue(Runtime& runtime, ReclamationDomain& domain)
    : runtime_(runtime),
      domain_(domain),
      states_owner_(std::make_unique<std::array<std::atomic<TableState*>, kMaxTables>>()),
      states_(*states_owner_),
      mutex_(runtime_) {}

Catalogue::~Catalogue() {
  ReclamationDomain::Guard guard(domain_);
  MutexLock lock(mutex_);
  for (const auto& state : owned_) {
    state->map().RemoveAllPostings(domain_);
    state->ForgetDropper(domain_);
  }
}

Status Catalogue::Load(const std::vector<TableInfo>& tables) {
  MutexLock lock(mutex_);
  for (const TableInfo& table : tables) {
    if (table.id.value == 0 || table.id.value >= kMaxTables) {
      return DEUT_ERROR(kCorruption, "the data component lists a table with id ", table.id.value, ", outside 1..",
                        kMaxTables - 1);
    }
    next_id_ = std::max(next_id_, table.id.value + 1);
    if (table.dropped) continue;
    if (states_[table.id.value].load(std::memory_order_relaxed) != nullptr ||
        !names_.emplace(table.name, table.id).second) {
      return DEUT_ERROR(kCorruption, "the data component lists table ", Quoted(table.name), " (id ", table.id.value,
                        ") twice");
    }
    owned_.push_back(std::make_unique<TableState>(table.id, table.name, Position{}, copied_postings_));
    states_[table.id.value].store(owned_.back().get(), std::memory_order_release);
  }
  return Status::Ok();
}

Result<TableState*> Catalogue::FindByName(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto it = names_.find(std::string(name));
  if (it != names_.end()) {
    TableState* const state = states_[it->second.value].load(std::memory_order_relaxed);
    if (state != nullptr && state->open()) return state;
  }
  return DEUT_ERROR(kNotFound, "there is no table ", Quoted(name));
}

Status Catalogue::NotFound(TableId id) {
  return DEUT_ERROR(kNotFound, "there is no table with id ", id.value, " (never created, or dropped)");
}

Result<TableId> Catalogue::ReserveId(std::string_view name) {
  if (name.empty() || name.size() > kMaxTableNameBytes) {
    return DEUT_ERROR(kInvalidArgument, "a table's name has 1 to ", kMaxTableNameBytes, " bytes; this one has ",
                      name.size());
  }
  MutexLock lock(mutex_);
  if (next_id_ >= kMaxTables) {
    return DEUT_ERROR(kResourceExhausted, "all ", kMaxTables - 1, " table ids have been used; ids are never reused");
  }
  if (!names_.emplace(std::string(name), TableId{next_id_}).second) {
    return DEUT_ERROR(kAlreadyExists, "there is a table ", Quoted(name), " already");
  }
  return TableId{next_id_++};
}

void Catalogue::Add(TableId id, std::string_view name, Position created_at) {
  MutexLock lock(mutex_);
  owned_.push_back(std::make_unique<TableState>(id, std::string(name), created_at, copied_postings_));
  states_[id.value].store(owned_.back().get(), std::memory_order_release);
}

void Catalogue::CancelReservation(std::string_view name) {
  MutexLock lock(mutex_);
  names_.erase(std::string(name));
}

void Catalogue::Forget(TableState* table) {
  MutexLock lock(mutex_);
  const auto it = names_.find(table->name());
  if (it != names_.end() && it->second == table->id()) names_.erase(it);
}

std::vector<TableState*> Catalogue::tables() const {
  MutexLock lock(mutex_);
  std::vector<TableState*> open;
  for (const auto& state : owned_) {
    if (state->open()) open.push_back(state.get());
  }
  return open;
}

}  // namespace deut::tc
