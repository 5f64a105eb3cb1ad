// Recovery: restores the mapping table, the page store and the trees from the newest checkpoint that can be read.
// [LLAMA, PVLDB 6(10), 2013, section 4.4] After it the TC's redo continues from the checkpoint's position (X6).
//
// Steps:
// - The newest checkpoint is read completely. If it is damaged, the one before it is read, with a log message (stable
//   positions allow for that: S2). If neither can be read, or they are missing (RecoveryOptions::oldest_required), the
//   result is CORRUPTION.
// - Every segment that the checkpoint names is checked, several at once.
// - All inner pages are loaded, one level of all tables at a time, and compared with one another (inner_pages.h). They
//   determine which pages exist: ids that no inner page names are free. Leaves are compared when they are loaded
//   (page_load.cc).
// Errors. CORRUPTION, with table, page, segment, offset and remedy: an object that the checkpoint names is missing or
// differs.
// CANCELLED: the recovery was given up (RecoveryProgress). After an error nothing on disk is changed.
// Recovery deletes nothing: segments that the checkpoint does not name are removed when the first checkpoint of this
// incarnation is complete.
// Thread-safety: one recovery at a time; it starts its own threads. Ownership: the caller owns the results.
#ifndef DC_CHECKPOINT_RECOVERY_H_
#define DC_CHECKPOINT_RECOVERY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/checkpoint/checkpointer.h"
#include "dc/checkpoint/recovery_progress.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/segment_store.h"
#include "dc/tables/table_registry.h"

namespace deut::dc {

struct RecoveryOptions {
  uint32_t max_pages = 1;
  SegmentStoreOptions store;
  // A checkpoint of this number or a later one must exist, or a reported stable position is lost (S2). 0: none
  // was reported.
  CheckpointNumber oldest_required = {};
  int threads = 16;                      // threads that check segments and load inner pages
  RecoveryProgress* progress = nullptr;  // may be null; outlives the recovery
};

struct RecoveredTable {
  TableId id;
  PageId root;  // kNoPage: the table was dropped, with all ids up to `last_dropped`
  std::string name;
  TableId last_dropped;
  Compression compression = Compression::kNone;
};

// The content of a checkpoint before its trees are built.
struct RecoveredPages {
  RecoveredCheckpoints found;
  std::unique_ptr<MappingTable> pages;
  std::unique_ptr<SegmentStore> store;
  PageId last_page;  // the largest id ever used
  std::vector<RecoveredTable> tables;
};

// Reads the checkpoint. The result is empty if the directory has none.
Result<RecoveredPages> RecoverPages(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc,
                                    const RecoveryOptions& options);

// Builds the tables' trees and loads their inner pages. `recovered` is the result of RecoverPages. Its mapping table
// and its store are those of `environment`, and no other thread uses them yet.
Status RecoverTables(Runtime& runtime, const std::string& directory, const std::vector<RecoveredTable>& recovered,
                     PageId last_page, const RecoveryOptions& options, const BwTreeEnvironment& environment,
                     const BwTreeOptions& tree_options, TableRegistry* tables);

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_RECOVERY_H_
