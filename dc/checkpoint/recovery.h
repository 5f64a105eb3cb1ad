// Recovery: the mapping table, the page store and the trees as the newest checkpoint that can be read has them.
// [LLAMA, PVLDB 6(10), 2013, section 4.4] After it the transaction component's redo goes on from the checkpoint's position (X6).
//
// Steps: the newest checkpoint is read whole; if it is damaged the one before it, with a message (stable positions allow for that: S2);
//   if neither can be read, or they are missing (RecoveryOptions::at_least): CORRUPTION, nothing is changed. Every segment that it names is looked
//   at, several at once. Then all inner pages are loaded, a level of all tables at a time, and with them it is known which pages there are: ids
//   that no inner page names are free.
// CORRUPTION naming page, file and offset whenever something that the checkpoint promises is not there exactly so, and what can be done.
// CANCELLED when it was given up (RecoveryProgress).
// Deletes nothing: segments that the checkpoint does not name go when the first checkpoint of this life is complete.
#ifndef DC_CHECKPOINT_RECOVERY_H_
#define DC_CHECKPOINT_RECOVERY_H_

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
#include "dc/record_ops/table_registry.h"

namespace deut::dc {

struct RecoveryOptions {
  uint32_t max_pages = 1;
  SegmentStoreOptions store;
  // Of this number or a later one a checkpoint is there, or what was told stable is lost (S2). 0: nothing was.
  CheckpointNumber at_least = {};
  int threads = 16;                      // that look at segments and load inner pages
  RecoveryProgress* progress = nullptr;  // may be null; outlives the recovery
};

struct RecoveredTable {
  TableId id;
  PageId root;  // kNoPage: dropped, with all others up to `last_dropped`
  std::string name;
  TableId last_dropped;
};

// What a checkpoint holds, before trees are made of it.
struct RecoveredPages {
  CheckpointsFound found;
  std::unique_ptr<MappingTable> pages;
  std::unique_ptr<SegmentStore> store;
  PageId last_page;  // the largest id ever used
  std::vector<RecoveredTable> tables;
};

// An empty one if there is no checkpoint in the directory.
Result<RecoveredPages> RecoverPages(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc,
                                    const RecoveryOptions& options);

// Makes the tables' trees and loads their inner pages. `recovered`: what RecoverPages gave; its mapping table and its store are
// those of `environment`, and nobody else uses them yet.
Status RecoverTables(Runtime& runtime, const std::string& directory, const std::vector<RecoveredTable>& recovered,
                     PageId last_page, const RecoveryOptions& options, const BwTreeEnvironment& environment,
                     const BwTreeOptions& tree_options, TableRegistry* tables);

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_RECOVERY_H_
