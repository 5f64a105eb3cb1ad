// Reads a journal (journal.h) and works out what the store must hold.
//
// For a record the store must hold the value of the acknowledged write with the highest commit timestamp; or that of a write whose
// outcome is unknown, because it may have been committed later; or, if no write of it was acknowledged, nothing.
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
  WriteId newest;       // of the acknowledged writes, that with the highest commit timestamp
  Timestamp timestamp;  // its commit timestamp
  uint32_t acknowledged_writes = 0;
  std::vector<WriteId> unknown;  // tried, never acknowledged

  // Whether the store may hold the value of this write.
  bool Allows(const WriteId& id) const;
};

struct JournalContents {
  // Every record that was ever tried to be written.
  absl::flat_hash_map<uint64_t, RecordHistory> records;
  absl::flat_hash_set<uint64_t> writers;
  uint64_t acknowledged = 0;  // writes of single records
  uint64_t unknown = 0;
  uint64_t torn_lines = 0;
  uint64_t processes = 0;
  // Of the phase "run" alone.
  uint64_t run_acknowledged = 0;
  int64_t first_run_ack_us = 0;  // 0 if there is none
  int64_t last_run_ack_us = 0;
};

// CORRUPTION, naming line and reason, for a line that is damaged where none may be, or that contradicts those before it.
Result<JournalContents> ReadJournal(const std::string& path);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_JOURNAL_READER_H_
