// LevelWalk: how far a walk over the pages of a level has come. MergeReport: what one step of merging has done there.
// Values; thread-safe as such.
#ifndef DC_BWTREE_LEVEL_WALK_H_
#define DC_BWTREE_LEVEL_WALK_H_

#include <cstdint>
#include <string>
#include <vector>

namespace deut::dc {

// The part of a level that a walk has still to visit: the pages below `high`. An empty high is above every key.
struct LevelWalk {
  std::string high;
  bool complete = false;
};

// The result of one step of merging, which covers the pages of one parent.
struct MergeReport {
  uint64_t merged = 0;
  bool postponed = false;            // some pages may be merged later
  std::vector<std::string> to_load;  // keys in pages that must be loaded first
};

}  // namespace deut::dc

#endif  // DC_BWTREE_LEVEL_WALK_H_
