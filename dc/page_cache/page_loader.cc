#include "dc/page_cache/page_loader.h"

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "dc/bwtree/page_load.h"

namespace deut::dc {

Status PageLoader::Load(TableId table, const Target& target) {
  DEUT_DCHECK(!domain_.guard_held());
  PageLoad load;
  {
    const ReclamationDomain::Guard guard(domain_);
    BwTree* const tree = trees_.FindTree(table);
    if (tree == nullptr || !tree->BeginLoad(target, &load)) return Status::Ok();
  }
  DEUT_IN_FLIGHT("dc.page_load");
  if (damaged_ != nullptr) DEUT_RETURN_IF_ERROR(damaged_->RecentFailure(load.id, table));
  loads_.fetch_add(1, std::memory_order_relaxed);
  const Status read = load.ReadImage(store_);
  const ReclamationDomain::Guard guard(domain_);
  BwTree* const tree = trees_.FindTree(table);
  // The image that was read may have been replaced meanwhile; then its outcome does not count.
  if (tree == nullptr || !tree->StillImage(load)) return Status::Ok();
  // The image still names a file that does not exist. The caller must not take NOT_FOUND for a missing table or
  // record.
  Status status = read == ErrorCode::kNotFound ? DEUT_ERROR(kCorruption, read.message()) : read;
  if (status.ok()) status = tree->FinishLoad(target, &load);
  return damaged_ == nullptr ? status : damaged_->RecordRead(load.id, table, status);
}

}  // namespace deut::dc
