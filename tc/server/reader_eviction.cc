#include "tc/server/reader_eviction.h"

#include "common/testing/test_points.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

// Where no value waits to leave memory, a budget counts as full when so small a part of it is left: before writers are refused.
constexpr uint64_t kPartLeft = 16;

}  // namespace

Timestamp ReaderEviction::Next() const {
  const uint64_t budget = engine_.version_budget_bytes;
  const uint64_t pinned = PinnedBytes(engine_);
  // What large transactions are charged for refuses nobody.
  if (pinned <= budget - budget / kPartLeft + engine_.bulk->held()) return Timestamp{0};
  // Whatever can leaves first; writers that are refused meanwhile try again.
  if (!engine_.collector.stuck()) return Timestamp{0};
  const ActiveTransactions::Oldest oldest = engine_.active.held_back_by();
  if (engine_.runtime.Now() < oldest.since + kLeastHeld) return Timestamp{0};
  if (DEUT_OMITTED("S9.abort_who_holds_back")) return oldest.timestamp;
  if (PinnedByOldest(engine_) < budget / 2 || !dc_is_at_rest_()) return Timestamp{0};
  return oldest.timestamp;
}

}  // namespace deut::tc
