// BwTreeEnvironment: the objects that all trees share. They outlive the trees.
// Thread-safety: as the objects that it names. Ownership: borrows all of them.
#ifndef DC_BWTREE_BWTREE_ENVIRONMENT_H_
#define DC_BWTREE_BWTREE_ENVIRONMENT_H_

#include <atomic>
#include <cstdint>

#include "common/sync/reclamation.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/smo_gate.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

// FlushedBytes: the bytes that flushes have written, by the lengths that the parts' addresses state. Copies of the
// cleaner do not count.
struct FlushedBytes {
  std::atomic<uint64_t> pages{0};   // base parts: whole pages
  std::atomic<uint64_t> deltas{0};  // delta parts
  // Parts that pages had more, when they left memory unchanged, before their parts were merged.
  std::atomic<uint64_t> merged_parts{0};
};

struct BwTreeEnvironment {
  MappingTable& pages;
  ReclamationDomain& domain;
  // The consolidation timestamp C of rule X1.
  const std::atomic<uint64_t>& consolidation_timestamp;
  // Null: no gate; it counts as always open.
  const SmoGate* gate = nullptr;
  // The store that holds the images; null: the tree has no images.
  SegmentStore* images = nullptr;
  // Null: flushes are not counted.
  FlushedBytes* flushed = nullptr;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_BWTREE_ENVIRONMENT_H_
