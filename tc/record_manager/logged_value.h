// Values that are paged out (rule S9). A look at a chain, under its guard, notes where the log has the value. The
//   value is read back after the guard is released.
// S2: NOT_FOUND means that the log was trimmed there. Then the commit is stable at the DC, hence applied and below
//   low-water. The reader that found the version counts in the low-water, so for it the DC's record is this very
//   version. (Nothing newer that it could see was installed since it raised last_read, and nothing that it must not
//   see is at the DC: S1.)
// Errors: IO_ERROR and CORRUPTION name file and offset. They fail only this operation, and its transaction aborts.
// Thread-safety: any thread.
#ifndef TC_RECORD_MANAGER_LOGGED_VALUE_H_
#define TC_RECORD_MANAGER_LOGGED_VALUE_H_

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/record_version.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

// Returns where the log has the version's value. REQUIRES: the version is paged out. `key` outlives the answer.
inline LoggedPut LoggedAs(const RecordVersion& version, TableId table, std::string_view key) {
  return LoggedPut{.place = version.place,
                   .table = table,
                   .sequence = version.sequence,
                   .value_bytes = version.value_bytes,
                   .key = key};
}

// Reads the value back. REQUIRES: the thread holds no guard.
inline Status ReadLogged(Engine& engine, const LoggedPut& put, std::string* value) {
  DEUT_POINT("logged_value.before_read");
  engine.counters.log_reads.fetch_add(1, std::memory_order_relaxed);
  return engine.log.ReadValue(put, value);
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_LOGGED_VALUE_H_
