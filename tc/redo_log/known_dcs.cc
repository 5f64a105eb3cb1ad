#include "tc/redo_log/known_dcs.h"

#include <algorithm>

#include "common/base/check.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {

KnownDcs::KnownDcs(Runtime& runtime, LogRing& ring, const std::vector<DcId>& recovered) : ring_(ring), mutex_(runtime) {
  DEUT_CHECK(recovered.size() <= kMaxKnownDcs);  // recovery refuses more
  for (const DcId dc : recovered) known_.push_back({.dc = dc, .lsn = std::nullopt});
}

Result<std::optional<Lsn>> KnownDcs::Add(DcId dc) {
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(known_, dc, &KnownDc::dc);
  // The caller that appended the record may have stopped waiting before it was durable. So its LSN is returned again.
  if (found != known_.end()) return found->lsn;
  if (known_.size() >= kMaxKnownDcs) {
    return DEUT_ERROR(kResourceExhausted, "the redo log knows ", kMaxKnownDcs, " data components already, its limit");
  }
  const Lsn lsn = ring_.AppendOwn(RecordType::kKnownDc, EncodeKnownDcBody(dc));
  known_.push_back({.dc = dc, .lsn = lsn});
  return std::optional<Lsn>(lsn);
}

}  // namespace deut::tc
