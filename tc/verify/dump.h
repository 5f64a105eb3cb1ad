// Dump: the records of a transaction component's log, in order, for a person, by the code that recovers it (tc/redo_log/recovery.h).
//
// A line for each segment, each record and, indented, each update, and at the end one that says where the log ends and why:
//   segment log-NNN of epoch 2, from LSN 8 on
//   8 log-NNN:4096 commit of epoch 2, timestamp 17, 2 updates
//     8/1 put, timestamp 17, table 3, key "a" = "value"
// A position is LSN/sequence; of an update in a chunk the LSN is the chunk's. Filters leave lines out, and nothing else.
// Changes nothing; any bytes may be there (log_directory.h, verify.h). Thread-safety: one thread.
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
  // Only updates of this table, of this key, and the transactions they are in.
  std::optional<TableId> table;
  std::optional<std::string> key;
  // How keys and values are shown, whole or the beginning of them.
  std::function<std::string(std::string_view key)> show_key;
  std::function<std::string(std::string_view value)> show_value;
};

// Hands out whole lines as they come. CORRUPTION: it was shown up to there; a start refuses it, and the message says why, with file and offset.
// Other errors: it cannot be looked at, as for VerifyLog.
Status DumpLog(Storage& storage, const std::string& directory, const DumpRequest& request,
               const std::function<void(std::string_view text)>& out);

}  // namespace deut::tc

#endif  // TC_VERIFY_DUMP_H_
