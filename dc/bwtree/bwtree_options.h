// BwTreeOptions: the parameters of a tree. BwTreeStatistics: its counters. Plain values; thread-safe as such.
#ifndef DC_BWTREE_BWTREE_OPTIONS_H_
#define DC_BWTREE_BWTREE_OPTIONS_H_

#include <cstdint>

#include "common/base/compression.h"

namespace deut::dc {

struct BwTreeOptions {
  // A page above this size is split. A page with a single record may be larger. Large leaves make reads and scans
  // faster (fewer pages, longer copies). Longer chains make up for their cost to updates.
  uint32_t leaf_page_bytes = 32 << 10;
  uint32_t inner_page_bytes = 8 << 10;
  // Number of deltas in a chain before it is consolidated. A leaf is also consolidated when its deltas outweigh
  // leaf_page_bytes.
  uint16_t leaf_chain_length = 20;
  uint16_t inner_chain_length = 4;
  // How the parts of its pages are compressed on storage.
  Compression compression = Compression::kNone;
};

struct BwTreeStatistics {
  uint64_t records = 0;  // as of the last consolidation of each page
  uint64_t bytes = 0;    // memory of live nodes
  uint64_t consolidations = 0;
  uint64_t lost_consolidations = 0;
  uint64_t splits = 0;
  uint64_t helped_splits = 0;
  uint64_t merges = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_BWTREE_OPTIONS_H_
