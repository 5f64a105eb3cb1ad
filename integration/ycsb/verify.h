// The checks of verify_journal: they compare a store with a journal (journal_reader.h), and the store's two ways of
// reading with each other.
// Thread-safety: free functions; each uses its own transactions.
#ifndef INTEGRATION_YCSB_VERIFY_H_
#define INTEGRATION_YCSB_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/ycsb/journal_reader.h"
#include "tc/client/client.h"

namespace deut::ycsb {

struct JournalCheck {
  uint64_t acknowledged = 0;              // writes of the journal
  uint64_t checked = 0;                   // those of them whose record was read
  uint64_t missing = 0;                   // records with an acknowledged write that the store does not have
  uint64_t wrong = 0;                     // records whose value is none of the allowed ones
  uint64_t unknown = 0;                   // writes of unknown outcome
  std::vector<std::string> details = {};  // about the first records that are missing or wrong

  // "acknowledged N, checked N, missing 0, wrong 0, unknown K"
  std::string Summary() const;
};

// Reads every record of the journal. An error means that a read failed; missing or wrong records are in the result.
Result<JournalCheck> CheckAgainstJournal(Client& client, TableId table, const JournalContents& journal,
                                         Duration deadline);

// Returns OK if each time (microseconds since 1970) lies between the first and the last acknowledgement of the run
// phase.
Status CheckKillTimes(const JournalContents& journal, const std::vector<int64_t>& kills_us);

struct ReadCheck {
  uint64_t scanned_ascending = 0;
  uint64_t scanned_descending = 0;
  uint64_t points = 0;
  uint64_t disagreements = 0;
  std::vector<std::string> details = {};
};

// Reads `records` records by scans (half from the low end upwards, half from the high end downwards), and each of
// them again by a point read. It drops the transaction component's caches before both. NOT_FOUND if the table has
// fewer records. REQUIRES: no client writes meanwhile.
Result<ReadCheck> CheckReads(Client& client, TableId table, uint64_t records, Duration deadline);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_VERIFY_H_
