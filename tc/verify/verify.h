// Verify: the offline check of a transaction component's log directory. It uses the code that recovers the log
// (tc/redo_log/recovery.h).
//
// Checks:
//   files       every segment from the oldest to the newest is there; headers and blocks: magic, version, own place,
//               length, CRC-32C, the chain to the predecessor, epochs that never fall; every record decodes
//               (recovery.h)
//   the end     where the chain breaks and why; that no block behind the break proves that more was durable (rule D2)
//   beginning   whether the oldest files are missing, by the redo start (recovery.h) and by the log's own records of
//               its trims (rule S2)
//   records     the contents of the records agree with each other (chain_audit.h: D2, D3, D4, S2, X1)
// Every log that recovery refuses as CORRUPTION is damaged. A log that recovery accepts is not, except for a
// contradiction between records, which recovery does not look for. A format that this program does not know is an error
// (VERSION_MISMATCH), and no damage.
// A torn tail is no damage: its records were acknowledged to nobody. (Rot in the last blocks cannot be told from a torn
// tail, rule D2.)
// Changes nothing, except that the file LOCK gets the number of this process (log_directory.h). The files may hold any
// bytes; none crash the check. Memory: about a thirtieth of the log (chain_audit.h).
// Thread-safety: one thread.
#ifndef TC_VERIFY_VERIFY_H_
#define TC_VERIFY_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/verify/chain_audit.h"

namespace deut::tc {

struct LogVerifyOptions {
  size_t max_findings = 1000;  // further findings are only counted
};

struct LogFinding {
  std::string rule;  // the rule that is broken; empty: a start refuses the log because of this finding
  std::string text;  // the file, the offset and the fault
};

struct LogReport {
  size_t files = 0;  // segments and spares
  ChainCounts counts;
  LogState state;  // the state after the last record that was read
  Lsn first_lsn;
  std::optional<Cut> end;          // nothing: the end was not found
  std::string end_reason;          // the reason, with file and offset
  uint64_t unproven_bytes = 0;     // size of the last blocks, not proven durable; a start writes them again
  bool empty = false;              // there is no log: nothing was ever durable
  std::vector<std::string> notes;  // unusual facts that are no damage
  std::vector<LogFinding> findings;
  uint64_t damages = 0;  // number of findings, including those that are not kept

  bool clean() const { return damages == 0; }
};

// Checks the log. An error means that it cannot be checked:
//   UNAVAILABLE           the log is in use
//   NOT_FOUND             there is no such directory
//   INVALID_ARGUMENT      the directory is not that of a transaction component
//   VERSION_MISMATCH      a segment has a format that this program does not know
//   IO_ERROR and others   a file cannot be read
Result<LogReport> VerifyLog(Storage& storage, const std::string& directory, const LogVerifyOptions& options);

// Returns the report as text: some lines about the content of the log, a line for each finding, and a last line that begins with "tc verify: ".
std::string ReportText(const LogReport& report);
// Returns that last line alone, without its newline.
std::string VerdictLine(const LogReport& report);

}  // namespace deut::tc

#endif  // TC_VERIFY_VERIFY_H_
