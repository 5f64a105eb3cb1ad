// Spilled versions (rule S9), for a reader that has looked at a chain and found nothing. The order is: look at the
//   chain, then load the list of runs, then ask the DC (tc/spill/spilled_runs.h says why nothing is missed). Normally
//   there are no runs, and this is one load.
// Errors: IO_ERROR and CORRUPTION name file and offset. They fail only this operation, and its transaction aborts.
// A version that is found was durable before it was spilled, so its reader does not depend on its commit (D1).
// Thread-safety: any thread.
#ifndef TC_RECORD_MANAGER_SPILLED_VALUE_H_
#define TC_RECORD_MANAGER_SPILLED_VALUE_H_

#include <optional>
#include <string_view>

#include "common/base/status.h"
#include "common/testing/test_points.h"
#include "tc/log_format/log_record.h"
#include "tc/record_manager/engine.h"
#include "tc/spill/spill_reader.h"

namespace deut::tc {

// The load of the list. REQUIRES: the caller has already looked in memory for everything that it may miss there.
inline bool NothingSpilled(const Engine& engine) {
  DEUT_POINT("spilled.before_look");
  return engine.spilled == nullptr || engine.spilled->empty() || DEUT_OMITTED("S9.look_at_spilled");
}

// Returns the runs. Call it after NothingSpilled has returned false; the runs may have gone since.
inline SpillReader LookAtSpilled(Engine& engine) {
  ReclamationDomain::Guard guard(engine.domain);
  return SpillReader(engine.spilled->PublishedRuns());
}

// Returns where the log has the version's value. REQUIRES: it is no tombstone. The key outlives the answer.
inline LoggedPut LoggedAs(const SpilledVersion& version) {
  return LoggedPut{.place = version.place,
                   .table = version.table,
                   .sequence = version.sequence,
                   .value_bytes = version.value_bytes,
                   .key = version.key};
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SPILLED_VALUE_H_
