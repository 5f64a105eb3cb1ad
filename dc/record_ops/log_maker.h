// LogMaker: builds batches of a log with one entry for each commit and ascending timestamps. For tests.
// Thread-safety: one thread.
#ifndef DC_RECORD_OPS_LOG_MAKER_H_
#define DC_RECORD_OPS_LOG_MAKER_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "common/base/ids.h"
#include "protocol/log_batch.h"

namespace deut::dc {

class LogMaker {
 public:
  // Appends an entry. A low-water entry states that everything before it was sent.
  void Add(LogEntryKind kind, TableId table, std::string_view key, std::string_view value) {
    LogEntryView entry;
    entry.kind = kind;
    entry.position = Position{Lsn(lsn_ += 100), 1};
    entry.timestamp = Timestamp(kind == LogEntryKind::kLowWater ? now_ : ++now_);
    entry.table = table;
    entry.key = key;
    entry.value = value;
    batch_.Append(entry);
    batch_.to = entry.position;
  }
  // Returns the entries that were added since the last call.
  LogBatch Take() {
    LogBatch taken = std::exchange(batch_, LogBatch());
    batch_.from = batch_.to = taken.to;
    return taken;
  }
  Lsn end() const { return Lsn(lsn_); }
  // Makes all later entries follow `lsn`, in position and in time.
  void GoOnAfter(Lsn lsn) {
    lsn_ = std::max(lsn_, lsn.value);
    now_ = std::max(now_, lsn_);
  }

 private:
  uint64_t lsn_ = 0;
  uint64_t now_ = 1;
  LogBatch batch_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_LOG_MAKER_H_
