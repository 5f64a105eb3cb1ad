// SegmentCleaner: frees space of the page store. It empties segments that are mostly dead, so that they can be
// removed. [Rosenblum, Ousterhout: "The Design and Implementation of a Log-Structured File System", SOSP 1991,
// section 3.4; LLAMA, PVLDB 6(10), 2013]
//
// When. A closed, partly live segment is worth cleaning if less than 2/3 of it is live. Consider all closed, partly
// live segments together. While their dead bytes exceed half of their live bytes plus a slack of a few segments, the
// cleaner cleans one that is worth it, first the one that gains most (victim_queue.h). In that state less than 2/3 of
// them is live on average, so the emptiest is worth cleaning: there always is a victim when one is needed.
// Bounds of space: 1.5 times the live bytes, the slack, segments that are being written, and the segments that two
// checkpoints still keep.
// Bounds of writing: at most two bytes are copied for each byte that is freed, and that byte was itself written once.
// So cleaning at most trebles the bytes written. An idle cleaner without a victim reads nothing and writes nothing.
// Copies go to segments of their own (page_rewrite.h). So frequently written pages and rarely written ones separate,
// and segments of copies stay as they are for longer.
// Short of space (SegmentStore::IsShortOfSpace), unless the next checkpoints free enough: every segment with at least
// a tenth dead is worth cleaning if its copy is smaller, whatever the copy costs, the emptiest first.
// So are several small segments that become fewer.
// Room: a segment gives its bytes back only when it has no live part left. So a segment is no victim if its copy has no
// room in the reserve: an unfinished copy would only take that room. New segments are short enough
// (SegmentStoreOptions::max_segment_bytes); older ones may be longer, if the reserve was larger then.
// Cost of a choice: one pass over all segments finds up to 64 victims, and the sums. Later choices look at their victim
// alone, until the pass is some seconds old or the store has changed by a quarter of the slack. Only a new pass ends
// the cleaning.
// How: page_rewrite.h. A segment is read from front to back, one megabyte at a time, and its live parts are copied.
// When it has no live bytes, it is removed after two more checkpoints (segment_store.h). CheckpointDriver takes these
// even if nothing else changes.
// Pace: reading and copying together stay below `bytes_per_second`. There is no limit when the disk is short of
// space, or when the dead bytes exceed the live ones by twice the slack. The cleaner waits after each megabyte, also of
// dead parts, and looks at the disk each second of a wait.
// Errors. No space, or a read error: retried later (finished copies remain). Damaged parts are passed over. A segment
// from which nothing but these is left is left alone for the rest of this incarnation, with a log message, and no
// longer counts in the sums. If the store has failed, `on_error` is called and the thread ends.
// Thread-safety: all methods from any thread; one thread cleans at a time. No guard is held during input or output.
// Ownership: owns its thread; borrows the rest. Memory: the buffers of two appenders and a megabyte, from the first
// segment on.
#ifndef DC_CLEANER_SEGMENT_CLEANER_H_
#define DC_CLEANER_SEGMENT_CLEANER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/page_rewrite.h"
#include "dc/cleaner/victim_queue.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct CleanerOptions {
  // Interval of the background thread. 0: there is no thread.
  Duration interval = std::chrono::seconds(1);
  // Bytes read and written together; 0: no limit.
  uint64_t bytes_per_second = 64 << 20;
  // Segments (of the length of the next one) that may be dead in addition to half of the live bytes.
  uint64_t slack_segments = 4;
};

struct CleanerStatistics {
  uint64_t segments = 0;       // segments emptied
  uint64_t bytes_read = 0;     // bytes of segments, and of the other parts of their pages
  uint64_t bytes_written = 0;  // bytes of copies
  uint64_t bytes_freed = 0;    // dead bytes of the segments emptied
  uint64_t copies_lost = 0;    // copies dropped because the page was written meanwhile
  uint64_t unreadable = 0;     // segments left alone, because their live parts are damaged
};

class SegmentCleaner {
 public:
  SegmentCleaner(Runtime& runtime, MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
                 uint64_t segment_bytes, const CleanerOptions& options, std::function<void(const Status&)> on_error);
  ~SegmentCleaner();
  SegmentCleaner(const SegmentCleaner&) = delete;
  SegmentCleaner& operator=(const SegmentCleaner&) = delete;

  // Cleans until no segment is worth cleaning. RESOURCE_EXHAUSTED: no space, or not enough for the copy of any
  // segment that is worth cleaning. CANCELLED: the cleaner is ending. IO_ERROR: a segment cannot be read now, or the
  // store's fatal error. REQUIRES: no guard is held.
  Status Clean();

  CleanerStatistics statistics() const;

 private:
  struct Sums {
    uint64_t written = 0;  // bytes of all closed, partly live segments
    uint64_t live = 0;     // their live bytes
    uint64_t dead = 0;     // bytes of closed segments without live bytes
  };
  // The result of a pass over all segments.
  struct Pass {
    MonotonicTime begun{};
    uint64_t file_bytes = 0;  // of the store, when the pass began
    Sums sums;                // later choices correct them by what they learn
    VictimQueue victims;
    SegmentUsage best_when_short;  // number 0: there is none
    // A segment that is worth cleaning when the disk is short of space, and whose copy has no room: the emptiest.
    SegmentUsage without_room;
    // Whether the dead bytes exceed the live ones by so much that cleaning has no pace; as of `looked`.
    bool hurried = false;
    MonotonicTime looked{};
  };

  void Run();
  // Adds a segment to the sums. Returns true if it is closed and partly live, and not left alone for good.
  bool Count(const SegmentUsage& usage, Sums* sums) const DEUT_REQUIRES(mutex_);
  // Looks at all segments. Victims are below `next_segment`: they existed when cleaning began, so cleaning ends.
  Pass LookAtAll(uint64_t next_segment) DEUT_REQUIRES(mutex_);
  // True if the pass still tells about the store.
  bool IsFresh(const Pass& pass) const;
  // True if the disk is short of space, and the next checkpoints will not free enough.
  bool IsShort(const Pass& pass) const;
  // Takes the next victim of a pass while its sums say that one is needed.
  std::optional<SegmentUsage> NextVictimOf(Pass* pass) DEUT_REQUIRES(mutex_);
  std::optional<SegmentUsage> ChooseVictim(uint64_t next_segment, Pass* pass) DEUT_REQUIRES(mutex_);
  Status CleanOne(const SegmentUsage& victim, Pass* pass) DEUT_REQUIRES(mutex_);
  // Copies the live parts of a segment. `damage`: the first damage that it met, if any; it goes on behind that.
  Status CopyLive(const SegmentUsage& victim, Pass* pass, Status* damage) DEUT_REQUIRES(mutex_);
  // Decides how a victim is treated that still has `left` live bytes.
  void NoteLeft(const SegmentUsage& victim, uint64_t left, const Status& damage) DEUT_REQUIRES(mutex_);
  // Bytes that may be dead in addition to half of the live ones.
  uint64_t slack_bytes() const { return options_.slack_segments * store_.next_segment_bytes(); }
  bool IsHurried(const Sums& sums) const { return sums.written > 2 * sums.live + 2 * slack_bytes(); }
  // True if cleaning has no pace now. Looks at all segments again if the last look is some seconds old.
  bool IsUrgent(Pass* pass) DEUT_REQUIRES(mutex_);
  // Waits for the time that `bytes` take at the pace, or until cleaning is urgent. CANCELLED when the cleaner is
  // ending.
  Status Pace(uint64_t bytes, Pass* pass) DEUT_REQUIRES(mutex_);
  void NoteStatistics() DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  MappingTable& pages_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  const CleanerOptions options_;
  const uint64_t segment_bytes_;
  const std::function<void(const Status&)> on_error_;

  Mutex mutex_;
  std::unique_ptr<PageRewriter> rewriter_ DEUT_GUARDED_BY(mutex_);
  // Segments that must not be tried before the given time.
  absl::flat_hash_map<uint64_t, MonotonicTime> retry_after_ DEUT_GUARDED_BY(mutex_);
  bool failing_ = false;  // used by the thread only

  std::atomic<uint64_t> segments_{0}, scanned_{0}, read_{0}, written_{0}, freed_{0}, lost_{0}, unreadable_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wakes_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_CLEANER_SEGMENT_CLEANER_H_
