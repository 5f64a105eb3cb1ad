// KnownDcs: the data components that the log knows as those of its TC (X4). At most kMaxKnownDcs.
// Thread-safety: any thread. The mutex is held while a record is appended, never over a wait for the disk.
// Ownership: runtime and ring outlive it.
#ifndef TC_REDO_LOG_KNOWN_DCS_H_
#define TC_REDO_LOG_KNOWN_DCS_H_

#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "tc/redo_log/log_ring.h"

namespace deut::tc {

class KnownDcs {
 public:
  // `recovered`: those that earlier processes have logged.
  KnownDcs(Runtime& runtime, LogRing& ring, const std::vector<DcId>& recovered);

  // Appends that the DC belongs to the TC, unless the log says so already. Returns the LSN of the record, which may not
  // be durable yet, also if another call has appended it; nothing if an earlier process has.
  //   RESOURCE_EXHAUSTED: the log knows kMaxKnownDcs others.
  Result<std::optional<Lsn>> Add(DcId dc);

 private:
  struct KnownDc {
    DcId dc;
    std::optional<Lsn> lsn;  // the record of this process; none: an earlier process has logged the DC
  };

  LogRing& ring_;
  Mutex mutex_;
  std::vector<KnownDc> known_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_KNOWN_DCS_H_
