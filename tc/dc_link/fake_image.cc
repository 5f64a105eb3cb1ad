#include "tc/dc_link/fake_image.h"

#include <algorithm>
#include <iterator>

namespace deut::tc {

bool FakeImage::Apply(const LogEntryView& entry) {
  if (entry.kind == LogEntryKind::kLowWater) Consolidate(entry.timestamp);
  if (entry.kind == LogEntryKind::kCreateTable) tables[entry.table.value] = entry.key;
  if (entry.kind == LogEntryKind::kDropTable) tables.erase(entry.table.value);
  if (entry.kind != LogEntryKind::kPut && entry.kind != LogEntryKind::kDelete) return true;
  const Key key(entry.table.value, std::string(entry.key));
  const auto found = records.find(key);
  const Version held = found == records.end() ? flat : VersionOf(found->second);
  if (entry.version() <= held) return false;
  records[key] = Record{entry.version(), std::string(entry.value), entry.kind == LogEntryKind::kDelete};
  return true;
}

void FakeImage::Consolidate(Timestamp low_water) {
  // X1: every record of the one page below C loses its own version. Flat rises to the highest dropped one, never to C.
  for (auto it = records.begin(); it != records.end();) {
    Record& record = it->second;
    if (record.version && record.version->timestamp < low_water) {
      flat = std::max(flat, *record.version);
      record.version.reset();
    }
    it = record.tombstone && !record.version ? records.erase(it) : std::next(it);
  }
}

const FakeImage::Record* FakeImage::Find(TableId table, std::string_view key) const {
  const auto found = records.find(Key(table.value, key));
  return found == records.end() || found->second.tombstone ? nullptr : &found->second;
}

void FakeImage::Scan(TableId table, std::string_view low, std::string_view high, Direction direction,
                     uint64_t limit_records, uint64_t limit_bytes, RecordBatch* answer, bool* complete,
                     std::string* covered) const {
  const bool ascending = direction == Direction::kAscending;
  auto begin = records.lower_bound(Key(table.value, low));
  auto end = high.empty() ? records.lower_bound(Key(table.value + 1, "")) : records.lower_bound(Key(table.value, high));
  *complete = false;
  while (begin != end) {
    const auto at = ascending ? begin : std::prev(end);
    const Record& record = at->second;
    if (!record.tombstone) {
      const bool full =
          (limit_records != 0 && answer->size() >= limit_records) || answer->bytes().size() >= limit_bytes;
      if (full && !answer->empty()) return;
      answer->Append(at->first.second, record.value, VersionOf(record));
    }
    // Ascending: everything below the next key is covered. Descending: everything from this key on.
    *covered = ascending ? at->first.second + '\0' : at->first.second;
    if (ascending) {
      ++begin;
    } else {
      end = at;
    }
  }
  *complete = true;
}

}  // namespace deut::tc
