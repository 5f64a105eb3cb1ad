// RecordOperations: what the DC does with records: applies a redo log to its tables, reads and scans them. Knows tables, versions and
// idempotence; knows nothing of transactions, peers or positions of a stream (dc/server) and nothing of pages (dc/bwtree).
//
// Idempotence: any entry may be applied again, late, or out of order with entries of other keys (rules X1, X2, T1). The one thing that
// has to stand in its place is a low-water entry: everything below it that is in the log was applied before (rule X1).
// Thread-safety: all methods from any thread, latch-free but for creating and dropping tables. Answers are copies.
// Ownership: owns trees, mapping table and reclamation domain.
#ifndef DC_RECORD_OPS_RECORD_OPERATIONS_H_
#define DC_RECORD_OPS_RECORD_OPERATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/record_ops/striped_counter.h"
#include "dc/record_ops/table_registry.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::dc {

struct RecordOperationsOptions {
  BwTreeOptions tree;
  // Pages of all tables together; 8 bytes of address space each. With pages of 32 KiB the default is 8 TiB of data.
  uint32_t max_pages = uint32_t{1} << 28;
};

class RecordOperations {
 public:
  static Result<std::unique_ptr<RecordOperations>> Create(Runtime& runtime, const RecordOperationsOptions& options);
  // REQUIRES: no other thread uses it.
  ~RecordOperations();

  // A new stream of batches begins: the consolidation timestamp starts at 0 (rule X1).
  void BeginStream();
  // Applies the batch's entries behind `applied`, in order. CORRUPTION: an entry contradicts what was applied (unknown table);
  // RESOURCE_EXHAUSTED: no more pages. Entries before the one at fault are applied.
  // REQUIRES: batch.Validate() is OK. One thread at a time (rule X1 needs the order).
  Status ApplyBatch(const LogBatch& batch, Position applied);

  // Appends the record to `answer` if there is one. NOT_FOUND: no such table.
  // REQUIRES: a key of 1 to kMaxKeyBytes bytes.
  Status Read(TableId table, std::string_view key, RecordBatch* answer);

  // Appends records of the cursor's stretch to `answer`, until the stretch or the budget is used up or `max_pages` pages were
  // looked at, and moves the cursor behind them. No guard is held between pages. NOT_FOUND: no such table (any more).
  Status Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t max_pages,
              RecordBatch* answer);

  // NOT_FOUND: no such table.
  Result<std::vector<std::string>> Partition(TableId table, uint32_t n);
  Status CheckTable(TableId table);
  // Live ones by id, then dropped ones by id.
  std::vector<TableInfo> Tables();

  // Memory of live pages and of what waits to be freed.
  uint64_t memory_bytes();
  // Names: dc/README.md.
  void AppendCounters(std::vector<CounterValue>* counters);

 private:
  RecordOperations(Runtime& runtime, const RecordOperationsOptions& options, std::unique_ptr<MappingTable> pages);

  Status ApplyEntry(const LogEntryView& entry);
  void ApplyLowWater(Timestamp low_water);

  // The domain ends before the table whose ids it gives back, and after the trees.
  const std::unique_ptr<MappingTable> pages_;
  ReclamationDomain domain_;
  std::atomic<uint64_t> consolidation_timestamp_{0};
  TableRegistry tables_;

  StripedCounter reads_;
  StripedCounter scans_;
  StripedCounter records_returned_;
  StripedCounter applied_;
  StripedCounter duplicates_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_RECORD_OPERATIONS_H_
