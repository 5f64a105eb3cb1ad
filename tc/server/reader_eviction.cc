#include "tc/server/reader_eviction.h"

#include "common/testing/test_points.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

// The budget counts as full when only this part of it is left and nothing more can leave memory. That is before
// writers are refused.
constexpr uint64_t kHeadroomDivisor = 16;

}  // namespace

Timestamp ReaderEviction::Next() const {
  const uint64_t budget = engine_.version_budget();
  const uint64_t pinned = PinnedBytes(engine_);
  // Bytes charged to large transactions refuse no other writer.
  if (pinned <= budget - budget / kHeadroomDivisor + engine_.bulk->held()) return Timestamp{0};
  // Everything that can leave memory leaves first. Writers that are refused meanwhile retry.
  if (!engine_.collector.nothing_can_leave()) return Timestamp{0};
  const ActiveTransactions::Oldest oldest = engine_.active.held_back_by();
  if (engine_.runtime.Now() < oldest.since + kMinHeld) return Timestamp{0};
  if (DEUT_OMITTED("S9.abort_who_holds_back")) return oldest.timestamp;
  if (PinnedByOldest(engine_) < budget / 2 || !dc_is_at_rest_()) return Timestamp{0};
  return oldest.timestamp;
}

}  // namespace deut::tc
