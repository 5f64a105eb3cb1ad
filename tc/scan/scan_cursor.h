// ScanCursor: where a scan is in its range, and up to where the TC has gathered (S4). A pure value.
//
// [low, high) is the rest of the requested range. In scan order the scan has reached one end of it, `position`, and goes
//   on to the other, `far_end`. The part from the position up to `bound` is gathered. Ascending, `bound` is exclusive;
//   descending, inclusive; empty, it is the end of all keys in that direction.
// Thread-safety: one thread at a time.
#ifndef TC_SCAN_SCAN_CURSOR_H_
#define TC_SCAN_SCAN_CURSOR_H_

#include <string>
#include <string_view>
#include <utility>

#include "protocol/data_component.h"

namespace deut::tc {

// Returns whether `a` comes before `b` in the order of a scan.
inline bool ComesBefore(Direction direction, std::string_view a, std::string_view b) {
  return direction == Direction::kAscending ? a < b : b < a;
}

// Returns the smallest key above `key`.
inline std::string KeyBehind(std::string_view key) {
  std::string behind(key);
  behind.push_back('\0');
  return behind;
}

struct ScanCursor {
  bool ascending() const { return direction == Direction::kAscending; }
  bool Before(std::string_view a, std::string_view b) const { return ComesBefore(direction, a, b); }

  std::string& position() { return ascending() ? low : high; }
  const std::string& position() const { return ascending() ? low : high; }
  const std::string& far_end() const { return ascending() ? high : low; }

  // Returns whether nothing of the requested range is left.
  bool AtEnd() const { return reached_last_key || (!high.empty() && low >= high); }
  // Returns whether the scan has reached the end of the gathered part.
  bool AtBound() const { return !gathered || (!bound.empty() && position() == bound); }
  // Returns whether the whole rest of the range is gathered.
  bool GatheredToTheEnd() const { return gathered && (bound.empty() || bound == far_end()); }

  // Moves behind the key. REQUIRES: it is in the rest of the range.
  void MoveBehind(std::string_view key) {
    if (ascending()) {
      position() = KeyBehind(key);
    } else {
      position().assign(key);
    }
  }
  // Moves to the bound, or, if the answer of the DC ends before, to *covered, which is moved from.
  void MoveTo(bool to_the_bound, std::string* covered) {
    if (to_the_bound) {
      position() = bound;
    } else {
      position() = std::move(*covered);
    }
    if (position().empty()) reached_last_key = true;
  }
  // Returns whether an answer that ends at `covered` is a step ahead in [low, high).
  bool IsProgress(std::string_view covered, std::string_view from_low, std::string_view from_high) const {
    return ascending() ? covered > from_low : from_high.empty() || covered < from_high;
  }

  void Reset() {
    gathered = reached_last_key = false;
    bound.clear();
  }

  Direction direction = Direction::kAscending;
  std::string low = {}, high = {};
  bool gathered = false;  // false: nothing is, and `bound` says nothing
  std::string bound = {};
  bool reached_last_key = false;  // the end of all keys in this direction is reached
};

}  // namespace deut::tc

#endif  // TC_SCAN_SCAN_CURSOR_H_
