// DroppedIds: the ids of all tables that were ever dropped (rule T1), as ascending runs of neighbouring ids. The TC
// draws ids in ascending order and never twice, so nearly all dropped ids are neighbours. The number of runs is at
// most one more than the number of live tables and of ids that were never created, however many tables were dropped.
//
// Why runs are needed, and not just the highest id with "an id that is not live was dropped": two concurrent
// creations may be logged in either order. If table 6 is created first, table 5 would count as dropped, and its
// creation would be taken for a repetition.
// Thread-safety: a value. Ownership: owns its runs.
#ifndef DC_TABLES_DROPPED_IDS_H_
#define DC_TABLES_DROPPED_IDS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "common/base/ids.h"

namespace deut::dc {

class DroppedIds {
 public:
  struct Run {
    uint32_t first = 0;
    uint32_t last = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };

  bool Contains(TableId id) const {
    const auto run = FirstEndingAt(id.value);
    return run != runs_.end() && run->first <= id.value;
  }

  // Adds the ids `first` to `last`. REQUIRES: first <= last; none of them is contained.
  void Add(TableId first, TableId last) {
    auto next = FirstEndingAt(first.value);
    const bool joins_previous = next != runs_.begin() && std::prev(next)->last + 1 == first.value;
    const bool joins_next = next != runs_.end() && last.value + 1 == next->first;
    if (joins_previous && joins_next) {
      std::prev(next)->last = next->last;
      runs_.erase(next);
    } else if (joins_previous) {
      std::prev(next)->last = last.value;
    } else if (joins_next) {
      next->first = first.value;
    } else {
      runs_.insert(next, Run{first.value, last.value});
    }
  }
  void Add(TableId id) { Add(id, id); }

  bool empty() const { return runs_.empty(); }
  // REQUIRES: not empty.
  TableId highest() const { return TableId(runs_.back().last); }
  // Ascending; no two are neighbours.
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run>::iterator FirstEndingAt(uint32_t id) { return std::ranges::lower_bound(runs_, id, {}, &Run::last); }
  std::vector<Run>::const_iterator FirstEndingAt(uint32_t id) const {
    return std::ranges::lower_bound(runs_, id, {}, &Run::last);
  }

  std::vector<Run> runs_;
};

}  // namespace deut::dc

#endif  // DC_TABLES_DROPPED_IDS_H_
