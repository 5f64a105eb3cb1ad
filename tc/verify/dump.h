// Dump: prints the records of a transaction component's log, in order, as text. The records come from the code that
// recovers the log (tc/redo_log/recovery.h).
//
// There is a line for each segment, each record and, indented, each update. The last line says where the log ends and
// why:
//   segment log-NNN of epoch 2, from LSN 8 on
//   8 log-NNN:4096 commit of epoch 2, timestamp 17, 2 updates
//     8/1 put, timestamp 17, table 3, key "a" = "value"
// A position is LSN/sequence; for an update in a chunk the LSN is the chunk's. Filters leave lines out, and nothing
// else. Dump changes nothing, and accepts any bytes (log_directory.h, verify.h).
// Thread-safety: one thread. Ownership: the storage and the callbacks outlive the call.
#ifndef TC_VERIFY_DUMP_H_
#define TC_VERIFY_DUMP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut::tc {

struct DumpRequest {
  // Records that begin in [from, to).
  Lsn from;
  Lsn to{UINT64_MAX};
  // Only updates of this table and of this key, and the transactions that contain them.
  std::optional<TableId> table;
  std::optional<std::string> key;
  // Functions that format keys and values, whole or cut to their beginning.
  std::function<std::string(std::string_view key)> show_key;
  std::function<std::string(std::string_view value)> show_value;
};

// Passes whole lines to `out` while it reads. CORRUPTION: a start refuses the log; everything before that place was
// printed, and the message gives the reason with file and offset. Other errors: the log cannot be read, as for
// VerifyLog.
Status DumpLog(Storage& storage, const std::string& directory, const DumpRequest& request,
               const std::function<void(std::string_view text)>& out);

}  // namespace deut::tc

#endif  // TC_VERIFY_DUMP_H_
