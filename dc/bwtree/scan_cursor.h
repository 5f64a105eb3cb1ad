// The state of a scan between two answers.
#ifndef DC_BWTREE_SCAN_CURSOR_H_
#define DC_BWTREE_SCAN_CURSOR_H_

#include <cstdint>
#include <string>

namespace deut::dc {

// The stretch [low, high) that a scan has still to return; an empty high is above every key. The scan's whole state.
struct ScanCursor {
  std::string low;
  std::string high;
  bool complete = false;
};

// How much one answer may hold. At least one record fits.
struct ScanBudget {
  uint64_t records = UINT64_MAX;
  uint64_t bytes = UINT64_MAX;  // of the batch, headers included
  bool spent = false;           // set by the scan when the next record did not fit
};

}  // namespace deut::dc

#endif  // DC_BWTREE_SCAN_CURSOR_H_
