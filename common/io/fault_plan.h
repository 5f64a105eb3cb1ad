// FaultPlan: the faults of a FaultyDisk that are in force. It decides which operation each fault strikes.
// Thread-safety: none (its disk's mutex).
#ifndef COMMON_IO_FAULT_PLAN_H_
#define COMMON_IO_FAULT_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>

#include "common/io/disk_fault.h"

namespace deut {

class FaultPlan {
 public:
  int Add(DiskFault fault);
  void Remove(int id);
  void RemoveAll();
  uint64_t hits(int id) const;

  // Returns the fault that strikes this operation, if any, and counts it.
  std::optional<DiskFault::Action> FaultFor(const DiskOperation& operation);

 private:
  struct Active {
    DiskFault fault;
    uint64_t matches = 0;
    uint64_t hits = 0;
    bool removed = false;
  };
  static bool Matches(const DiskFault& fault, const DiskOperation& operation);

  std::map<int, Active> faults_;  // in the order of their ids
  int last_id_ = 0;
};

}  // namespace deut

#endif  // COMMON_IO_FAULT_PLAN_H_
