// SpilledVersion: a spilled run's data about a committed version (rule S9): enough for readers to decide, and the place of the value in the log.
// Thread-safety: a value. Ownership: the key is a view.
#ifndef TC_SPILL_SPILLED_VERSION_H_
#define TC_SPILL_SPILLED_VERSION_H_

#include <compare>
#include <cstdint>
#include <string_view>

#include "common/base/ids.h"

namespace deut::tc {

struct SpilledVersion {
  TableId table = {};
  std::string_view key = {};
  Timestamp timestamp = {};
  uint32_t sequence = 0;
  bool tombstone = false;
  uint32_t value_bytes = 0;
  Lsn commit = {};
  Lsn place = {};  // place of the update in the log

  Version version() const { return Version{timestamp, sequence}; }
};

// The order of a run: by table and key, and for one key the newest version first.
inline std::strong_ordering SpillOrder(const SpilledVersion& a, const SpilledVersion& b) {
  if (const auto order = a.table <=> b.table; order != 0) return order;
  if (const auto order = a.key <=> b.key; order != 0) return order;
  if (const auto order = b.timestamp <=> a.timestamp; order != 0) return order;
  return b.sequence <=> a.sequence;
}

}  // namespace deut::tc

#endif  // TC_SPILL_SPILLED_VERSION_H_
