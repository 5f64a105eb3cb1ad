// Verify: the offline check of a transaction component's log directory, by the code that recovers it (tc/redo_log/recovery.h).
//
// What is checked
//   files     every segment from the oldest to the newest is there; headers and blocks: magic, version, own place, length, CRC-32C, the chain to
//             the predecessor, epochs that never fall; every record decodes (recovery.h)
//   the end   where the chain breaks and why; that what lies behind the break does not prove that more was durable (rule D2)
//   the       whether the oldest files are missing, by the redo start (recovery.h) and by what the log says of its trims (rule S2)
//   beginning
//   records   what they say agrees with each other (chain_audit.h: D2, D3, D4, S2, X1)
// What a start of tcd refuses is damage, and what it does not is none, but for what the records say, which a start does not look at.
// A torn tail is no damage: nobody was told of what it held. (Rot in the last blocks cannot be told from that, rule D2.)
// Changes nothing (log_directory.h). Any bytes may be there: none crashes it. Memory: about a thirtieth of the log (chain_audit.h).
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
#include "tc/redo_log/block_format.h"
#include "tc/redo_log/log_record.h"
#include "tc/verify/chain_audit.h"

namespace deut::tc {

struct LogVerifyOptions {
  size_t max_findings = 1000;  // more are counted only
};

struct LogFinding {
  std::string rule;  // empty: a start refuses it
  std::string text;  // which file and offset; what is wrong
};

struct LogReport {
  size_t files = 0;  // segments and spares
  ChainCounts counts;
  LogState state;  // as of the last record that was read
  Lsn first_lsn;
  std::optional<Cut> end;       // nothing: it was not found
  std::string why_it_ends;      // with file and offset
  uint64_t unproven_bytes = 0;  // at the end, of which no block says that they were durable: a start writes them again
  bool empty = false;           // there is no log: nothing was ever durable
  std::vector<std::string> notes;  // what is unusual, and no damage
  std::vector<LogFinding> findings;
  uint64_t damages = 0;  // findings, with those that are not kept

  bool clean() const { return damages == 0; }
};

// An error: it cannot be checked. UNAVAILABLE: it is in use; INVALID_ARGUMENT, NOT_FOUND: no such directory; IO_ERROR: it cannot be read.
Result<LogReport> VerifyLog(Storage& storage, const std::string& directory, const LogVerifyOptions& options);

// The report for a person: some lines about what is there; a line for each finding; and at the end one that begins with "tc verify: ".
std::string ReportText(const LogReport& report);
// That line alone, without its end.
std::string VerdictLine(const LogReport& report);

}  // namespace deut::tc

#endif  // TC_VERIFY_VERIFY_H_
