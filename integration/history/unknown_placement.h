// Position: a transaction's place in the serial order. Positions also places the transactions without a timestamp:
// those of unknown outcome that count as committed, and committed ones that are untimed.
//
// Such a transaction U must stand
// - behind every transaction that it read from, and every one that had completed before U was invoked;
// - in front of every transaction that read U's writes, and every one that was invoked after U had completed (if that
//   time is known);
// - such that no transaction between U and the next writer of a key that U wrote read another value of that key.
// Any place that fits is as good as another. A backtracking search places transactions that touch the same keys
// together; it tries the places right behind the events of their keys. It finds a way to place all of them if there
// is one, unless it would have to try too many places. Then each transaction is placed by itself, in the order of
// invocation, and may be placed wrongly.
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
  // 0: a snapshot, which reads below its timestamp. 1: the transaction of this timestamp. From 2 on: transactions
  // placed behind it.
  uint32_t rank = 0;
  friend constexpr auto operator<=>(const Position&, const Position&) = default;
};

// Returns positions by index in the history. Every transaction without a timestamp that counts as committed gets a
// place (a committed one only if it is untimed). If no place fits, it gets the first one that its interval allows.
std::vector<Position> Positions(const HistoryIndex& index);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_UNKNOWN_PLACEMENT_H_
