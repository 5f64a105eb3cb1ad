// FakeImage: the data of a FakeDataComponent, in memory or stable: a single-version map that applies updates if they are
// newer (X2), and consolidates at LOW_WATER records as rule X1 allows. It has one page, and so one flat version.
// Thread-safety: none. A plain value: a copy is a checkpoint.
#ifndef TC_DC_LINK_FAKE_IMAGE_H_
#define TC_DC_LINK_FAKE_IMAGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/ids.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::tc {

struct FakeImage {
  struct Record {
    std::optional<Version> version;  // none: consolidated, at or below flat
    std::string value;
    bool tombstone = false;
  };
  using Key = std::pair<uint32_t, std::string>;

  // Returns false if the entry is an update that does not count: a duplicate, or older than what the key has.
  bool Apply(const LogEntryView& entry);

  // Null: there is no such record.
  const Record* Find(TableId table, std::string_view key) const;
  Version VersionOf(const Record& record) const { return record.version.value_or(flat); }
  // Reads [low, high) up to a limit (0 = none on records), and says how far it came (DataRequest).
  void Scan(TableId table, std::string_view low, std::string_view high, Direction direction, uint64_t limit_records,
            uint64_t limit_bytes, RecordBatch* answer, bool* complete, std::string* covered) const;

  std::map<Key, Record> records;
  std::map<uint32_t, std::string> tables;
  Version flat;
  Position applied;

 private:
  void Consolidate(Timestamp low_water);
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_FAKE_IMAGE_H_
