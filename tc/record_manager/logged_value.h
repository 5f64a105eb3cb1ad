// Values that are paged out (rule S9): a look at a chain, under its guard, takes down where the log has the value; it is read when the guard is gone.
// S2: NOT_FOUND means that the log was let go there. Then the commit is stable at the DC, hence applied and below low-water: for the reader that has
//   found it, which counts in the low-water, the DC's record is this very version. (Nothing newer that it could see was installed since it
//   raised last_read, and nothing that it must not see is at the DC: S1.)
// Errors: IO_ERROR and CORRUPTION with file and offset are the operation's alone; its transaction aborts.
#ifndef TC_RECORD_MANAGER_LOGGED_VALUE_H_
#define TC_RECORD_MANAGER_LOGGED_VALUE_H_

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/record_version.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

// REQUIRES: it is paged out. The key outlives the answer.
inline LoggedPut LoggedAs(const RecordVersion& version, TableId table, std::string_view key) {
  return LoggedPut{.place = version.place,
                   .table = table,
                   .sequence = version.sequence,
                   .value_bytes = version.value_bytes,
                   .key = key};
}

// REQUIRES: no guard is held.
inline Status ReadLogged(Engine& engine, const LoggedPut& put, std::string* value) {
  DEUT_POINT("logged_value.before_read");
  engine.counters.log_reads.fetch_add(1, std::memory_order_relaxed);
  return engine.log.ReadValue(put, value);
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_LOGGED_VALUE_H_
