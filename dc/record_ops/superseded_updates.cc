#include "dc/record_ops/superseded_updates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>

#include "absl/hash/hash.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Smaller runs are not examined: applying them costs less than the search saves.
constexpr size_t kFewest = 64;
// A search costs a few hundredths of the cost of applying an update. If it finds fewer than one superseded update in
// kWorthALook, the next kRunsWithout runs are not examined.
constexpr size_t kWorthALook = 16;
constexpr uint32_t kRunsWithout = 16;

// Index + 1 of an update by its key; 0: free.
using Slots = std::array<uint16_t, 2 * SupersededUpdates::kMost>;
static_assert(SupersededUpdates::kMost < UINT16_MAX && std::has_single_bit(SupersededUpdates::kMost));

}  // namespace

size_t SupersededUpdates::MoveBack(std::span<LogEntryView> updates) {
  if (updates.size() < kFewest) return updates.size();
  if (const uint32_t unlooked = unlooked_.load(std::memory_order_relaxed); unlooked > 0) {
    unlooked_.store(unlooked - 1, std::memory_order_relaxed);
    return updates.size();
  }
  const size_t first = updates.size() - std::min(updates.size(), kMost);
  const size_t mask = std::bit_ceil(2 * (updates.size() - first)) - 1;
  Slots slots;
  std::fill_n(slots.begin(), mask + 1, uint16_t{0});
  std::bitset<kMost> superseded;
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
  if ((updates.size() - kept) * kWorthALook < updates.size()) unlooked_.store(kRunsWithout, std::memory_order_relaxed);
  return kept;
}

}  // namespace deut::dc
