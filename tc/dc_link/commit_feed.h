// CommitFeed: turns the durable redo log into log batches, in commit-record order, from the position that the DC has applied (S1, X1).
//
// It hands out what is durable (the reader gives nothing else, so LOW_WATER records travel only when durable) and, of commits, what is
// below low-water: one commit at or above it holds back all behind it. A batch may end inside a large commit, at its last update taken.
// Superseded versions are not skipped: every update travels.
// A commit with chunks is read back chunk by chunk; at most one record and one chunk are in memory.
// Thread-safety: one thread. Errors: those of LogReader; after one the feed must be restarted.
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
  // Why Fill took no more.
  enum class Limit { kBatchFull, kNotDurable, kHeldBack };

  // Tells `tracker` of every commit record it reads and `low_water_records` of every commit it hands out. All outlive it.
  CommitFeed(RedoLog& log, const LowWaterSource& low_water, RedoStartTracker& tracker,
             LowWaterRecords& low_water_records)
      : log_(log), low_water_(low_water), tracker_(tracker), low_water_records_(low_water_records) {}

  // Continues behind `applied`.
  void Restart(Position applied);

  // Appends to batch->entries what may be shipped, until they have `batch_bytes`, and moves batch->to. REQUIRES: the batch begins
  // where the last one ended; Restart was called.
  Status Fill(LogBatch* batch, uint64_t batch_bytes, Limit* limit);

  // Every record below has been read.
  Lsn read_position() const { return reader_->position(); }
  // Every commit below `end` has been handed out.
  bool Passed(Lsn end) const;
  // Where the last Fill ended.
  Position position() const { return position_; }
  uint64_t updates() const { return updates_; }

 private:
  // Reads on to the next record that travels. kNotDurable if there is none yet.
  Status ReadRecord(bool* found);
  void AppendLowWater(LogBatch* batch);
  // Appends updates of the commit until it ends (then has_record_ is false) or the batch is full.
  Status AppendCommit(LogBatch* batch, uint64_t batch_bytes);
  // Makes updates_here_ the next non-empty list of the commit's chunks and own updates; false if there is no further.
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
  size_t lists_taken_ = 0;                    // of the commit: chunks, then its own updates
  std::optional<UpdateList::Iterator> here_;  // in the list taken last
  std::optional<UpdateList::Iterator> here_end_;
  uint64_t updates_ = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_COMMIT_FEED_H_
