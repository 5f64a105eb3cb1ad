// FindSpillMerge: chooses the spilled runs that are merged next.
//
// Levels. A spill makes a run of level 0; a merge of kMergedRuns neighbours of one level makes a run of the next level. So a version is written once
//   more for each level: after N spills at most log8(N) times, whatever the sizes of the runs are. (A choice by size alone can merge a large run with
//   each small one beside it; then the bytes written grow with the square of the number of runs.)
// When. Nothing is merged while there are at most kUnmergedRuns runs. Runs are dropped in commit order when the DC
//   has applied them, so a short backlog would be merged in vain. Filters make many runs cheap for point reads, and
//   scans pay for each run.
// Which. The lowest level that has kMergedRuns neighbours: its merge writes least for the runs that it saves. If these
//   neighbours are the first runs of all, the latest of them are merged, because the others are dropped first.
//   Elsewhere the earliest ones are merged, so that the new run lies beside those of its level. Otherwise slow merges
//   could leave levels such as 2 1111111 2 1111111 2, where eight neighbours of one level never come together.
// Bound. The first runs are of one level. Behind them levels never rise from a run to the next one. So kMergedRuns of a
//   level are always neighbours, also if merges are slow and after any drop, unless a damaged run lies between them.
//   If no merge is in progress or possible, there are at most kMergedRuns - 1 runs of each level, and as many at the
//   front: after 9,000 spills fewer than 40.
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
  bool busy = false;  // it cannot be merged now: a merge that is not finished has it, or it is damaged
};

// `runs`: all runs in commit order. Returns the index of the first of the kMergedRuns neighbours, whose level is less than `below`; or none.
std::optional<size_t> FindSpillMerge(absl::Span<const LeveledRun> runs, uint32_t below);

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_LEVELS_H_
