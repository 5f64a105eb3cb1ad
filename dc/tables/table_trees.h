// TableTrees: the trees of all tables, with everything that they share: page ids, the store of their images, retired
// memory, the gate of structure changes, and the consolidation timestamp.
//
// Order of destruction. The domain ends after the live trees. It frees dropped trees and page ids, and its garbage
// marks parts dead. So it ends before the reaper, the mapping table and the segment store. The destructor stops the
// reaper first, because the trees that it frees need the domain.
// Thread-safety: all methods from any thread. Ownership: owns all of it; borrows the runtime.
#ifndef DC_TABLES_TABLE_TREES_H_
#define DC_TABLES_TABLE_TREES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/smo_gate.h"
#include "dc/page_store/segment_store.h"
#include "dc/tables/table_reaper.h"
#include "dc/tables/table_registry.h"
#include "protocol/data_component.h"

namespace deut::dc {

class TableTrees {
 public:
  // `pages` and `segments` may already hold what a recovery has found; the registry is empty at first.
  TableTrees(Runtime& runtime, const BwTreeOptions& options, std::unique_ptr<MappingTable> pages,
             std::unique_ptr<SegmentStore> segments);
  // REQUIRES: no other thread uses the object.
  ~TableTrees();
  TableTrees(const TableTrees&) = delete;
  TableTrees& operator=(const TableTrees&) = delete;

  // The objects that all trees use.
  BwTreeEnvironment environment();
  TableRegistry& registry() { return registry_; }
  ReclamationDomain& domain() { return domain_; }
  MappingTable& pages() { return *pages_; }
  const MappingTable& pages() const { return *pages_; }
  SegmentStore& segments() { return *segments_; }
  const SegmentStore& segments() const { return *segments_; }
  SmoGate& gate() { return gate_; }
  const TableReaper& reaper() const { return reaper_; }
  const FlushedBytes& flushed() const { return flushed_; }
  // C of rule X1; 0: the stream of batches has sent no low-water yet.
  std::atomic<uint64_t>& consolidation_timestamp() { return consolidation_timestamp_; }

  // Returns the live tables by id, then the dropped table with the highest id.
  std::vector<TableInfo> List();
  struct Sum {
    uint64_t tables = 0;
    BwTreeStatistics trees;
  };
  // Sums over the live tables.
  Sum Statistics();
  // Bytes of the live trees. If there are many, the figure is up to one millisecond old.
  uint64_t TreeBytes();
  // Bytes of all that grows with the number of records, pages, segments and tables: also retired memory, dropped
  // tables, the mapping table and the table of segments.
  uint64_t memory_bytes();

 private:
  Runtime& runtime_;
  SmoGate gate_;
  std::atomic<uint64_t> consolidation_timestamp_{0};
  const std::unique_ptr<SegmentStore> segments_;
  const std::unique_ptr<MappingTable> pages_;
  TableReaper reaper_;  // declared before the domain, which hands dropped tables to it until the domain ends
  ReclamationDomain domain_;
  TableRegistry registry_;
  // The last sum of TreeBytes, and until when it is valid.
  // Not on the line of the members above, which every operation loads.
  alignas(64) std::atomic<uint64_t> tree_bytes_{0};
  std::atomic<int64_t> tree_bytes_until_{0};
  FlushedBytes flushed_;
};

}  // namespace deut::dc

#endif  // DC_TABLES_TABLE_TREES_H_
