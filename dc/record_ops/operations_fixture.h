// TestOperations: record operations on new tables, with everything that they need: trees on a storage in memory, a
// loader and an evictor without a budget. It takes no checkpoints. For tests. Thread-safety: as RecordOperations.
#ifndef DC_RECORD_OPS_OPERATIONS_FIXTURE_H_
#define DC_RECORD_OPS_OPERATIONS_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/segment_store.h"
#include "dc/record_ops/record_operations.h"
#include "dc/tables/table_trees.h"

namespace deut::dc {

class TestOperations {
 public:
  TestOperations(const BwTreeOptions& tree, uint32_t helpers)
      : storage_(NewMemoryStorage(RealRuntime())),
        trees_(RealRuntime(), tree, std::move(*MappingTable::Create(1 << 20)),
               std::move(*SegmentStore::Create(*storage_, RealRuntime(), "/pages", DcId(1), SegmentStoreOptions()))),
        loader_(*PageLoader::Create(RealRuntime(), trees_.registry(), trees_.domain(), trees_.segments())) {
    auto evictor = PageEvictor::Create(
        RealRuntime(), trees_.environment(), trees_.segments(), trees_.registry(), trees_.registry(), *loader_,
        PageEvictor::BudgetOfPages([this] { return trees_.memory_bytes(); }, uint64_t{0}),
        /*merge_interval=*/std::chrono::seconds(1), [](const Status& status) { FailStop(status.ToString()); });
    DEUT_CHECK(evictor.ok());
    evictor_ = std::move(*evictor);
    operations_ = std::make_unique<RecordOperations>(
        RealRuntime(), trees_, *loader_, *evictor_,
        RecordOperationsOptions{.leaf_page_bytes = tree.leaf_page_bytes, .apply_helpers = helpers});
  }

  RecordOperations& operator*() const { return *operations_; }
  RecordOperations* operator->() const { return operations_.get(); }
  TableTrees& trees() { return trees_; }

 private:
  const std::unique_ptr<Storage> storage_;
  TableTrees trees_;
  const std::unique_ptr<PageLoader> loader_;
  std::unique_ptr<PageEvictor> evictor_;
  std::unique_ptr<RecordOperations> operations_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_OPERATIONS_FIXTURE_H_
