// Position: a transaction's place in the serial order; and where transactions stand whose timestamp is unknown: those of unknown outcome whose
// writes were read, and committed ones that are untimed.
//
// Such a transaction U must stand behind what it read, behind those that had completed before it began, in front of whoever read its writes,
// in front of those that began after it had completed (if it is known when that was), and such that nobody between U and the next writer
// of a key that U wrote read another value of that key.
// Any place that fits is as good as another. Those that touch the same keys are placed together: a search with taking back, which tries
// places behind what happened to their keys. It finds a way to place them all if there is one, unless it has to look at too many; then
// each is placed by itself, in the order of invocation, and might be placed wrongly.
// Thread-safety: pure functions.
#ifndef INTEGRATION_HISTORY_UNKNOWN_PLACEMENT_H_
#define INTEGRATION_HISTORY_UNKNOWN_PLACEMENT_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "integration/history/history_index.h"

namespace deut::history {

struct Position {
  uint64_t timestamp = 0;  // 0: none
  // 0: a snapshot, which reads below its timestamp; 1: the transaction of this timestamp; from 2 on: those placed behind it.
  uint32_t rank = 0;
  friend constexpr auto operator<=>(const Position&, const Position&) = default;
};

// By place in the history. Transactions without a timestamp that count as committed are placed (committed ones only if they are
// untimed). Where not all of them fit, who does not gets the first place that its interval allows.
std::vector<Position> Positions(const HistoryIndex& index);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_UNKNOWN_PLACEMENT_H_
