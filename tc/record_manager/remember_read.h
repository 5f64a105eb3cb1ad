// RememberRead: the middle steps of a read of a key without an entry (rule R6). It remembers the read, then looks for
// the entry once more.
//
// Most reads are remembered by the floor of the key's bucket, which allocates nothing. The floor may already remember
//   a read of another key, and an open transaction may be older than that read. Then the key gets an entry of its
//   own, and the collector removes that once low-water has passed it. So reads of other keys do not stop a writer. If
//   the collector already has too many such entries, the floor becomes one of all keys of the bucket.
// Low-water is only as recent as the last round, and where nothing is written there are no rounds. So the reader runs
//   a round itself, at most one for every kTimestampsPerLowWaterRound timestamps.
// Thread-safety: any thread.
#ifndef TC_RECORD_MANAGER_REMEMBER_READ_H_
#define TC_RECORD_MANAGER_REMEMBER_READ_H_

#include <cstdint>
#include <string_view>

#include "common/testing/test_points.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

namespace remember_read {

inline constexpr uint64_t kTimestampsPerLowWaterRound = 1024;

// Out of line, because few reads need it.
RecordEntry* RememberInSharedBucket(Engine& engine, const RecordTable::MissedLookup& absence, uint64_t hash,
                                    TableId table, std::string_view key, Timestamp reader);

}  // namespace remember_read

// Returns the entry that the key has by now, or null: then the DC must be asked. REQUIRES: the guard under which no
// entry was found; the reader is open.
inline RecordEntry* RememberRead(Engine& engine, const RecordTable::MissedLookup& absence, uint64_t hash, TableId table,
                                 std::string_view key, Timestamp reader, bool omitted) {
  if (!omitted && !engine.records.RememberRead(absence, hash, reader)) [[unlikely]]
    return remember_read::RememberInSharedBucket(engine, absence, hash, table, key, reader);
  DEUT_POINT("read.floor_raised");
  if (DEUT_OMITTED("R6.look_again")) return nullptr;
  return engine.records.FindAgain(absence, hash, table, key);
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_REMEMBER_READ_H_
