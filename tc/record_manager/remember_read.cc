#include "tc/record_manager/remember_read.h"

namespace deut::tc::remember_read {

RecordEntry* RememberInSharedBucket(Engine& engine, const RecordTable::MissedLookup& absence, uint64_t hash,
                                    TableId table, std::string_view key, Timestamp reader) {
  RecordTable& records = engine.records;
  // The round comes first. After it the floor is mostly free, unless a transaction is open that began before the read
  // of the other key.
  records.FreeFloorsBelow(engine.active.RefreshedLowWater(reader, kTimestampsPerLowWaterRound));
  if (!records.RememberRead(absence, hash, reader)) {
    if (engine.collector.MayDefer()) {
      bool made = false;
      RecordEntry* const entry = records.FindOrCreateDeferred(hash, table, key, &made);
      DEUT_POINT("read.entry_made");
      // Raised before the collector gets the entry, so that it does not remove it at once.
      RecordTable::RaiseLastRead(*entry, reader);
      if (made) engine.collector.Defer(entry);
      return entry;
    }
    engine.counters.shared_floors.fetch_add(1, std::memory_order_relaxed);
    records.RaiseFloor(absence, hash, reader);
  }
  DEUT_POINT("read.floor_raised");
  return DEUT_OMITTED("R6.look_again") ? nullptr : records.FindAgain(absence, hash, table, key);
}

}  // namespace deut::tc::remember_read
