// Reads a journal (journal.h) and derives the content that the store must have.
//
// For each record, the store must hold one of these:
// - the value of the acknowledged write with the highest commit timestamp;
// - the value of a write of unknown outcome, because it may have been committed later;
// - nothing, if no write of the record was acknowledged.
// Thread-safety: values.
#ifndef INTEGRATION_YCSB_JOURNAL_READER_H_
#define INTEGRATION_YCSB_JOURNAL_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "integration/ycsb/record.h"

namespace deut::ycsb {

struct RecordHistory {
  bool acknowledged = false;
  WriteId newest;       // the acknowledged write with the highest commit timestamp
  Timestamp timestamp;  // the commit timestamp of `newest`
  uint32_t acknowledged_writes = 0;
  std::vector<WriteId> unknown;  // writes that were tried and neither acknowledged nor failed

  // True if the store may hold the value of this write.
  bool Allows(const WriteId& id) const;
};

struct JournalContents {
  // Every record that some write of the journal covers.
  absl::flat_hash_map<uint64_t, RecordHistory> records;
  absl::flat_hash_set<uint64_t> writers;
  uint64_t acknowledged = 0;  // writes of single records
  uint64_t unknown = 0;
  uint64_t torn_lines = 0;
  uint64_t processes = 0;
  // These count the phase "run" only.
  uint64_t run_acknowledged = 0;
  int64_t first_run_ack_us = 0;  // 0 if there is none
  int64_t last_run_ack_us = 0;
};

// CORRUPTION, with line and reason, for a damaged line that may not be torn, or for one that contradicts earlier
// lines.
Result<JournalContents> ReadJournal(const std::string& path);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_JOURNAL_READER_H_
