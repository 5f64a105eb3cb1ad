// CommitFeed: turns the durable redo log into log batches, in commit-record order, from the position that the DC has
// applied (S1, X1).
//
// It returns only durable records, because the reader returns no others. So LOW_WATER records travel only when
// durable. It returns only commits below low-water: a commit at or above it holds back all behind it. A batch may end
// inside a large commit, at its last update taken. Superseded versions are not skipped: every update travels.
// A commit with chunks is read back chunk by chunk; at most one record and one chunk are in memory.
// Thread-safety: one thread. Ownership: owns its reader; log, sources and trackers outlive it. Errors: those of
// LogReader; after an error the feed must be restarted.
#ifndef TC_DC_LINK_COMMIT_FEED_H_
#define TC_DC_LINK_COMMIT_FEED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/log_batch.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/dc_link/redo_start_tracker.h"
#include "tc/redo_log/low_water_records.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class CommitFeed {
 public:
  // The reason why Fill took no more.
  enum class Limit { kBatchFull, kNotDurable, kHeldBack };

  // Reports every commit record that it reads to `tracker`, and every commit that it returns to `low_water_records`.
  // All outlive it.
  CommitFeed(RedoLog& log, const LowWaterSource& low_water, RedoStartTracker& tracker,
             LowWaterRecords& low_water_records)
      : log_(log), low_water_(low_water), tracker_(tracker), low_water_records_(low_water_records) {}

  // Continues behind `applied`.
  void Restart(Position applied);

  // Appends the records that may be shipped to batch->entries, up to `batch_bytes`, and moves batch->to. REQUIRES:
  // the batch begins where the last one ended; Restart was called.
  Status Fill(LogBatch* batch, uint64_t batch_bytes, Limit* limit);

  // Every record below this has been read.
  Lsn read_position() const { return reader_->position(); }
  // True if every commit below `end` has been returned.
  bool Passed(Lsn end) const;
  // The position at which the last Fill ended.
  Position position() const { return position_; }
  uint64_t updates() const { return updates_; }

 private:
  // Reads on to the next record that travels. *found is false if there is no durable one yet.
  Status ReadRecord(bool* found);
  void AppendLowWater(LogBatch* batch);
  // Appends updates of the commit until it ends (then has_record_ is false) or the batch is full.
  Status AppendCommit(LogBatch* batch, uint64_t batch_bytes);
  // Moves here_ to the next non-empty list of the commit: its chunks, then its own updates. *found is false after the
  // last one.
  Status NextList(bool* found);

  RedoLog& log_;
  const LowWaterSource& low_water_;
  RedoStartTracker& tracker_;
  LowWaterRecords& low_water_records_;

  std::unique_ptr<LogReader> reader_;
  Position position_;
  LogRecord record_;  // a commit or low-water record, if has_record_
  bool has_record_ = false;
  LogRecord chunk_;
  size_t lists_taken_ = 0;                    // lists of the commit that were taken: chunks, then its own updates
  std::optional<UpdateList::Iterator> here_;  // next update of the list taken last
  std::optional<UpdateList::Iterator> here_end_;
  uint64_t updates_ = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_COMMIT_FEED_H_
