#include "common/io/fault_plan.h"

#include <utility>

namespace deut {

int FaultPlan::Add(DiskFault fault) {
  faults_[++last_id_].fault = std::move(fault);
  return last_id_;
}

void FaultPlan::Remove(int id) {
  const auto found = faults_.find(id);
  if (found != faults_.end()) found->second.removed = true;
}

void FaultPlan::RemoveAll() {
  for (auto& [id, active] : faults_) active.removed = true;
}

uint64_t FaultPlan::hits(int id) const {
  const auto found = faults_.find(id);
  return found == faults_.end() ? 0 : found->second.hits;
}

bool FaultPlan::Matches(const DiskFault& fault, const DiskOperation& operation) {
  const bool transfers = operation.kind == kDiskRead || operation.kind == kDiskWrite;
  if ((fault.kinds & operation.kind) == 0) return false;
  if (!transfers && (fault.action == DiskFault::Action::kShort || fault.action == DiskFault::Action::kFlipBit))
    return false;
  const bool passes = (operation.kind & (kDiskOpen | kDiskName | kDiskRead | kDiskSyncDirectory)) != 0;
  if (!passes && fault.action == DiskFault::Action::kShortage) return false;
  if (operation.path.find(fault.path_contains) == std::string::npos) return false;
  if (transfers && (operation.offset >= fault.offset_to || operation.offset + operation.bytes <= fault.offset_from)) {
    return false;
  }
  return !fault.predicate || fault.predicate(operation);
}

std::optional<DiskFault::Action> FaultPlan::FaultFor(const DiskOperation& operation) {
  for (auto& [id, active] : faults_) {
    if (active.removed || active.hits == active.fault.count || !Matches(active.fault, operation)) continue;
    if (++active.matches <= active.fault.skip) continue;
    ++active.hits;
    return active.fault.action;
  }
  return std::nullopt;
}

}  // namespace deut
