// LogBatch: a piece of the redo log in commit-record order, as the TC ships it to a DC (rules S1, X1, X2, X3). It
// covers the positions (from, to], including updates that rule S3 skips.
//
// Grammar of `entries` (little-endian):
//   entries    := entry*
//   entry      := kind:u8 commit_lsn:u64 sequence:u32 body
//   body       := update | low_water
//   update     := timestamp:u64 table:u32 key_bytes:u16 value_bytes:u32 key value      kinds 1 put, 2 delete, 3 create table, 4 drop table
//   low_water  := timestamp:u64                                                        kind 5
// For create and drop the key is the table's name. The value of a create is the table's options (table_options.h), and
// empty if there are none; that of a drop is empty. Sequence is both the place in the commit
// (rule S1) and the record's sequence (rule X2). Positions never decrease; those of updates strictly increase. On the
// wire a CRC-32C over from, to, durable and entries goes with the batch.
// Thread-safety: none. Ownership: owns its bytes; views of an Iterator point into the batch.
#ifndef PROTOCOL_LOG_BATCH_H_
#define PROTOCOL_LOG_BATCH_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace deut {

enum class LogEntryKind : uint8_t { kPut = 1, kDelete = 2, kCreateTable = 3, kDropTable = 4, kLowWater = 5 };

struct LogEntryView {
  LogEntryKind kind = LogEntryKind::kPut;
  Position position;
  Timestamp timestamp;  // of the transaction; for kLowWater the low-water itself
  TableId table;
  std::string_view key;
  std::string_view value;
  Version version() const { return Version{timestamp, position.sequence}; }
};

struct LogBatch {
  Position from;  // exclusive
  Position to;    // inclusive
  std::string entries;
  // X4: every byte of the sender's log before this LSN is stable, whether it holds entries or not. The DC remembers it.
  // If a log later ends before it, the DC's answer shows that the log has lost its end. 0: the sender does not say.
  Lsn durable = {};

  void Append(const LogEntryView& entry);
  uint32_t Checksum() const;
  // Checks the grammar, the limits, and that positions lie in (from, to] and do not decrease. Otherwise CORRUPTION
  // names the offset.
  Status Validate() const;

  // REQUIRES: Validate() has returned OK, or the batch was built by Append.
  class Iterator {
   public:
    explicit Iterator(const LogBatch& batch) : rest_(batch.entries) { Read(); }
    bool Valid() const { return valid_; }
    const LogEntryView& entry() const { return entry_; }
    void Next() { Read(); }

   private:
    void Read();
    std::string_view rest_;
    LogEntryView entry_;
    bool valid_ = false;
  };
};

}  // namespace deut

#endif  // PROTOCOL_LOG_BATCH_H_
