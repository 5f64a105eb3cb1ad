// SegmentSet: the files of the redo log. A helper thread keeps spare segments allocated ahead of the log thread. It
// also frees segments below the redo start (S2): it recycles them as spares, or removes them. No commit waits for any
// of this.
//
// Files are numbered without gaps, oldest first; the newest ones may be spares. The directory is synced after every
// create, rename and remove and before the next one, so that the numbers have no gap after any crash. A segment of an
// earlier process is never written to again: a write of that process could still be in flight to it.
// Shortage of descriptors or kernel memory (common/io/shortage.h): as for a full disk below. A renamed file that
// could not be opened for that reason is opened at a later attempt, before the next file number is used.
// Disk full: the spares run down, disk_full() is true, and the helper retries until there is space, perhaps given
// back by trimming. The first segment of a start may then be a short one. It takes the log's own records until
// trimming has given space back.
// Demand: while a large commit waits for room (rule D5) or is appended, more segments are kept allocated. The helper
// removes those that turn out not to be needed.
// Thread-safety: all methods from any thread, except where one is named. The mutex is held briefly, once a segment,
// never over input or output.
// Ownership: shares the segments with the readers that hold them; storage and runtime outlive it.
#ifndef TC_REDO_LOG_SEGMENT_SET_H_
#define TC_REDO_LOG_SEGMENT_SET_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/observe/episode_log.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "tc/redo_log/segment.h"
#include "tc/redo_log/segment_demand.h"

namespace deut::tc {

struct SegmentSetOptions {
  std::string directory;
  uint64_t segment_bytes = 0;
  size_t spares = 0;
};

class SegmentSet {
 public:
  // A short segment has room, several times over, for the blocks that begin a log and for the records that let
  // segments be freed.
  static constexpr uint64_t kShortestSegment = uint64_t{64} << 10;

  // `live` are the segments that recovery found, oldest first. All files with higher numbers are gone. `on_change` is
  // called whenever a spare was added or could not be, `on_failure` at the first error that is not a shortage. Both
  // are called on the helper's thread.
  SegmentSet(SegmentSetOptions options, Runtime& runtime, Storage& storage, std::vector<std::shared_ptr<Segment>> live,
             uint64_t next_number, std::function<void()> on_change, std::function<void(const Status&)> on_failure);
  ~SegmentSet();

  // Create one spare on the calling thread, before Start. RESOURCE_EXHAUSTED: no space. The short one is as long as
  // the free space allows.
  Status CreateSpare();
  Status CreateShortSpare();
  // `demand` is called on the helper's thread. REQUIRES: called before Start; `demand` outlives this object.
  void SetDemand(SegmentDemand* demand) { demand_ = demand; }
  void Start();
  void Stop();

  // --- The log thread.
  // Returns the next spare, or null if there is none yet.
  std::shared_ptr<Segment> TakeSpare();
  // `segment` (from TakeSpare) holds the records from `first_lsn` on; its predecessor ends there.
  void Open(std::shared_ptr<Segment> segment, Lsn first_lsn);

  // --- Any thread.
  // Returns the segment with the record at `lsn`, or null if it was trimmed. REQUIRES: lsn is below the durable LSN.
  std::shared_ptr<Segment> Find(Lsn lsn);
  // Returns where the log begins after a trim to `lsn`: the first LSN of the segment that holds `lsn`.
  Lsn FirstLsnAfterTrimTo(Lsn lsn);
  // Returns where the newest `count` segments in use begin.
  Lsn FirstLsnOfNewest(uint64_t count);
  // Lets the helper free the segments below `redo_start`. A segment stays if it holds records beyond `durable`, or
  // the newest durable segment header.
  void TrimTo(Lsn redo_start, Lsn durable);
  Lsn first_lsn() const { return Lsn(first_lsn_.load(std::memory_order_seq_cst)); }

  // Tells the helper that the demand has changed.
  void DemandChanged() { Notify(); }
  size_t spares() const { return options_.spares; }
  // The number of times that the demand could not be met because of a full disk or another shortage that ends by
  // itself.
  uint64_t shortages() const { return shortages_.load(std::memory_order_seq_cst); }

  // The last attempt found no space, or no descriptor, for one of the spares.
  bool disk_full() const { return disk_full_.load(std::memory_order_relaxed); }
  uint64_t spare_bytes() const { return spare_count() * (options_.segment_bytes - kSegmentHeaderBytes); }
  // Acquire: a thread that has seen a segment opened (LogWriter::segment_room) no longer counts it as a spare.
  uint64_t spare_count() const { return spare_count_.load(std::memory_order_acquire); }
  uint64_t live_count();
  uint64_t recycled() const { return recycled_.load(std::memory_order_relaxed); }
  uint64_t removed() const { return removed_.load(std::memory_order_relaxed); }

 private:
  void HelperLoop();
  void Notify();
  // One round of work. True if something was done.
  Result<bool> TrimOne();
  Result<bool> FillOne();
  // Removes the newest spare if there are more than wanted, after it has claimed the spare's bytes (SegmentDemand).
  Result<bool> DropOne();
  uint64_t Target() const { return options_.spares + (demand_ != nullptr ? demand_->Demand() : 0); }
  Status Create(uint64_t number, uint64_t bytes);
  Status Recycle(const std::shared_ptr<Segment>& segment);
  // Makes a spare of the file that Recycle has renamed, if that file is not a spare yet.
  Result<bool> OpenRenamed();
  Result<std::unique_ptr<File>> OpenFile(const std::string& path, bool create);
  void AddSpare(std::shared_ptr<Segment> segment);
  std::string PathOf(uint64_t number) const;

  const SegmentSetOptions options_;
  Runtime& runtime_;
  Storage& storage_;
  const std::function<void()> on_change_;
  const std::function<void(const Status&)> on_failure_;
  SegmentDemand* demand_ = nullptr;

  Mutex mutex_;
  std::deque<std::shared_ptr<Segment>> live_ DEUT_GUARDED_BY(mutex_);    // oldest first; the last one is open
  std::deque<std::shared_ptr<Segment>> spares_ DEUT_GUARDED_BY(mutex_);  // by number
  Lsn trim_to_ DEUT_GUARDED_BY(mutex_);
  Lsn trim_durable_ DEUT_GUARDED_BY(mutex_);

  EpisodeLog full_log_;
  uint64_t next_number_;  // used by the helper; before Start, by the thread that opens the log
  uint64_t renamed_ = 0;  // used by the helper: the number of a recycled file that is still to be opened, or 0
  std::atomic<uint32_t> work_word_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> disk_full_{false};
  std::atomic<uint64_t> shortages_{0};
  std::atomic<uint64_t> first_lsn_;  // first LSN of the oldest in live_; every put loads it
  std::atomic<uint64_t> spare_count_{0}, recycled_{0}, removed_{0};
  std::unique_ptr<Thread> helper_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_SEGMENT_SET_H_
