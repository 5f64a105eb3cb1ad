// RememberRead: the middle steps of a read of a key without an entry (rule R6): the read is remembered, then the entry is looked for once more.
//
// Most reads are remembered by the floor of the key's bucket, which allocates nothing. Where that remembers a read of another key which an open
//   transaction may be older than, the key gets an entry of its own, and the collector removes it once low-water has passed. So a writer is not
//   stopped by reads of other keys. Where the collector has too many of these already the floor becomes one of all keys of the bucket.
// Low-water is only as late as the last round, and where nothing is written there are none: so the reader runs one itself, at most one for each
//   kReadsOfARound timestamps.
// Thread-safety: any thread.
#ifndef TC_RECORD_MANAGER_REMEMBER_READ_H_
#define TC_RECORD_MANAGER_REMEMBER_READ_H_

#include <cstdint>
#include <string_view>

#include "common/testing/test_points.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

namespace remember_read {

inline constexpr uint64_t kReadsOfARound = 1024;

// Out of line: few reads come here.
RecordEntry* InBucketOfAnother(Engine& engine, const RecordTable::Absence& absence, uint64_t hash, TableId table,
                               std::string_view key, Timestamp reader);

}  // namespace remember_read

// The entry that the key has now; null: it has none, and the DC must be asked. REQUIRES: the guard of the look that found none; the reader is open.
inline RecordEntry* RememberRead(Engine& engine, const RecordTable::Absence& absence, uint64_t hash, TableId table,
                                 std::string_view key, Timestamp reader, bool omitted) {
  if (!omitted && !engine.records.RememberRead(absence, hash, reader)) [[unlikely]]
    return remember_read::InBucketOfAnother(engine, absence, hash, table, key, reader);
  DEUT_POINT("read.floor_raised");
  if (DEUT_OMITTED("R6.look_again")) return nullptr;
  return engine.records.FindAgain(absence, hash, table, key);
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_REMEMBER_READ_H_
