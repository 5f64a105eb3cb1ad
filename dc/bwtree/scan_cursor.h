// ScanCursor, ScanHint, ScanBudget: the state of a scan between two answers. Values; one thread uses them at a time.
#ifndef DC_BWTREE_SCAN_CURSOR_H_
#define DC_BWTREE_SCAN_CURSOR_H_

#include <cstdint>
#include <string>

#include "dc/bwtree/page_word.h"

namespace deut::dc {

// The key range [low, high) that a scan has still to return; an empty high is above every key. This is the scan's
// whole state, except for `pages`, which decides what stays in memory (page_evictor.h).
struct ScanCursor {
  std::string low;
  std::string high;
  bool complete = false;
  uint64_t pages = 0;  // pages that it has read; one that two answers share counts twice

  // A scan of at most this many pages is likely to be repeated, like a point read: its pages stay in memory.
  static constexpr uint64_t kPagesOfShortScan = 8;
  bool is_long() const { return pages >= kPagesOfShortScan; }
};

// The page where an ascending scan continues, as its left neighbour's fence named it; kNoPage: the scan descends to
// find it. Valid only inside the guard in which it was found.
struct ScanHint {
  PageId page = kNoPage;
};

// The limits of one answer. The answer holds at least one record, whatever its size.
struct ScanBudget {
  uint64_t records = UINT64_MAX;
  uint64_t bytes = UINT64_MAX;  // bytes of the batch, headers included
  bool spent = false;           // set by the scan when the next record did not fit
};

}  // namespace deut::dc

#endif  // DC_BWTREE_SCAN_CURSOR_H_
