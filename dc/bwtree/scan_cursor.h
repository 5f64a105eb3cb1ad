// The state of a scan between two answers.
#ifndef DC_BWTREE_SCAN_CURSOR_H_
#define DC_BWTREE_SCAN_CURSOR_H_

#include <cstdint>
#include <string>

#include "dc/bwtree/page_word.h"

namespace deut::dc {

// The stretch [low, high) that a scan has still to return; an empty high is above every key. The scan's whole state.
struct ScanCursor {
  std::string low;
  std::string high;
  bool complete = false;
};

// The page where an ascending scan goes on, as its left neighbour's fence named it; kNoPage: to be found by a descent.
// Good inside the guard in which it was found, and no longer.
struct ScanPlace {
  PageId page = kNoPage;
};

// How much one answer may hold. At least one record fits.
struct ScanBudget {
  uint64_t records = UINT64_MAX;
  uint64_t bytes = UINT64_MAX;  // of the batch, headers included
  bool spent = false;           // set by the scan when the next record did not fit
};

}  // namespace deut::dc

#endif  // DC_BWTREE_SCAN_CURSOR_H_
