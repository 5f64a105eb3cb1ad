#include "tc/spill/spill_levels.h"

namespace deut::tc {

std::optional<size_t> FindSpillMerge(absl::Span<const LeveledRun> runs, uint32_t below) {
  if (runs.size() <= kUnmergedRuns) return std::nullopt;
  std::optional<size_t> found;
  // From the latest to the earliest. `neighbours`: free runs of the level of runs[i], from it on.
  size_t neighbours = 0;
  for (size_t i = runs.size(); i-- > 0;) {
    const bool continues = neighbours > 0 && runs[i].level == runs[i + 1].level;
    neighbours = runs[i].busy ? 0 : (continues ? neighbours : 0) + 1;
    if (neighbours < kMergedRuns || runs[i].level >= below) continue;
    const bool before_found = continues && found == i + 1;
    if (!found || runs[i].level < runs[*found].level || before_found) found = i;
  }
  if (found == size_t{0}) found = neighbours - kMergedRuns;
  return found;
}

}  // namespace deut::tc
