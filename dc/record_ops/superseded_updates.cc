#include "dc/record_ops/superseded_updates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>

#include "absl/hash/hash.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Smaller runs are not examined: applying them costs less than the search saves.
constexpr size_t kMinRunSize = 64;
// A search costs a few hundredths of the cost of applying an update. If it finds fewer than one superseded update in
// kMinYieldDivisor, the next kRunsToSkip runs are not examined.
constexpr size_t kMinYieldDivisor = 16;
constexpr uint32_t kRunsToSkip = 16;

// Index + 1 of an update by its key; 0: free.
using Slots = std::array<uint16_t, 2 * SupersededUpdates::kMaxExamined>;
static_assert(SupersededUpdates::kMaxExamined < UINT16_MAX && std::has_single_bit(SupersededUpdates::kMaxExamined));

}  // namespace

size_t SupersededUpdates::MoveNeededToFront(std::span<LogEntryView> updates) {
  if (updates.size() < kMinRunSize) return updates.size();
  if (const uint32_t to_skip = runs_to_skip_.load(std::memory_order_relaxed); to_skip > 0) {
    runs_to_skip_.store(to_skip - 1, std::memory_order_relaxed);
    return updates.size();
  }
  const size_t first = updates.size() - std::min(updates.size(), kMaxExamined);
  const size_t mask = std::bit_ceil(2 * (updates.size() - first)) - 1;
  Slots slots;
  std::fill_n(slots.begin(), mask + 1, uint16_t{0});
  std::bitset<kMaxExamined> superseded;
  for (size_t i = updates.size(); i-- > first;) {
    const LogEntryView& update = updates[i];
    size_t slot = absl::HashOf(update.table.value, update.key) & mask;
    while (slots[slot] != 0) {
      const LogEntryView& later = updates[first + slots[slot] - 1];
      if (later.key == update.key && later.table == update.table) break;
      slot = (slot + 1) & mask;
    }
    if (slots[slot] == 0) {
      slots[slot] = static_cast<uint16_t>(i - first + 1);
    } else if (DEUT_OMITTED("S3.later_one_stays")) {
      superseded.set(slots[slot] - 1);
      slots[slot] = static_cast<uint16_t>(i - first + 1);
    } else if (updates[first + slots[slot] - 1].version() > update.version()) {
      superseded.set(i - first);
    }
  }
  size_t kept = first;
  for (size_t i = first; i < updates.size(); ++i) {
    if (!superseded.test(i - first)) updates[kept++] = updates[i];
  }
  DEUT_DCHECK(kept > first);  // the newest update of a key supersedes the others
  if ((updates.size() - kept) * kMinYieldDivisor < updates.size())
    runs_to_skip_.store(kRunsToSkip, std::memory_order_relaxed);
  return kept;
}

}  // namespace deut::dc
