// FindSpillMerge: chooses the spilled runs that are merged next.
//
// Levels. A spill makes a run of level 0; a merge of kMergedRuns neighbours of one level makes a run of the next level. So a version is written once
//   more for each level: after N spills at most log8(N) times, whatever the sizes of the runs are. (A choice by size alone can merge a large run with
//   each small one beside it; then the bytes written grow with the square of the number of runs.)
// When. Nothing is merged while there are at most kUnmergedRuns runs. Runs are dropped in commit order when the DC
//   has applied them, so a short backlog would be merged in vain. Filters make many runs cheap for point reads, and
//   scans pay for each run.
// Which. The lowest level that has kMergedRuns neighbours: its merge writes least for the runs that it saves. Within
//   a level it is the latest ones, because they are dropped last.
// Bound. Fewer than kMergedRuns of each level stay behind the last run of a higher level, and fewer before the first one. So there are at most
//   2 * (kMergedRuns - 1) runs per level; after 9,000 spills without a drop there are fewer than 40.
// Thread-safety: a pure function.
#ifndef TC_SPILL_SPILL_LEVELS_H_
#define TC_SPILL_SPILL_LEVELS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace deut::tc {

constexpr size_t kMergedRuns = 8;
constexpr size_t kUnmergedRuns = 16;

struct LeveledRun {
  uint32_t level = 0;
  bool merging = false;  // a merge that is not finished has it
};

// `runs`: all runs in commit order. Returns the index of the first of the kMergedRuns neighbours, whose level is less than `below`; or none.
std::optional<size_t> FindSpillMerge(absl::Span<const LeveledRun> runs, uint32_t below);

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_LEVELS_H_
