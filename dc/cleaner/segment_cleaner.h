// SegmentCleaner: gives space of the page store back: empties segments of which most is dead, so that they can be removed.
// [Rosenblum, Ousterhout: "The Design and Implementation of a Log-Structured File System", SOSP 1991, section 3.4; LLAMA, PVLDB 6(10), 2013]
//
// When: a segment that is closed and partly live is worth cleaning if less than 2/3 of it is live. One is cleaned, the emptiest first,
//   while all those closed and partly live together hold more than half as much dead as live, and a slack of a few segments. Then less than
//   2/3 of them is live on the average, so the emptiest is one worth cleaning: there always is one when there is need.
// Bounds: space: 1.5 times what is live, the slack, segments that are being written, and what two checkpoints still keep. Writing: at
//   most two bytes are copied for one that is given back, whose writing was a third: cleaning at most trebles what is written. Idle and
//   nothing to clean: nothing is read, nothing is written.
//   Why the emptiest and not the one that will stay as it is longest (as in LFS, 3.5): what is copied goes to segments of its own, so
//   pages that are written again and again, and pages that are not, part by themselves.
// Short of space (SegmentStore::IsShortOfSpace): then every segment of which a tenth is dead is worth it, whatever it costs to write, if
//   its copy is smaller, or several small ones become one; unless enough comes back with the next checkpoints.
// How: page_rewrite.h. A segment is read from front to back, one megabyte at a time; live parts are copied. When it has no live bytes, it goes
//   after two more checkpoints (segment_store.h); CheckpointDriver takes them also if nothing else is done.
// Pace: reading and copying stay below `bytes_per_second`, unless more is dead than live.
// Errors: want of space, or the disk does not read: later again (what was copied stays copied). A segment that is damaged is left alone for this
//   life, with a message. The store is fatal: `on_error` is told, the thread ends.
// Thread-safety: all methods from any thread; one cleans at a time. No guard is held over input or output. Ownership: of its thread; borrows the
// rest. Memory: the buffers of two appenders and a megabyte, from the first segment on.
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
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct CleanerOptions {
  // How often it looks by itself. 0: never; there is no thread then.
  Duration interval = std::chrono::seconds(1);
  // Read and written together; 0: no limit.
  uint64_t bytes_per_second = 64 << 20;
  // What may be dead besides the half of what is live.
  uint64_t slack_segments = 4;
};

struct CleanerStatistics {
  uint64_t segments = 0;       // emptied
  uint64_t bytes_read = 0;     // of segments, and of what else their pages consist of
  uint64_t bytes_written = 0;  // copies
  uint64_t bytes_freed = 0;    // dead bytes of the segments emptied
  uint64_t copies_lost = 0;    // thrown away because the page was written meanwhile
  uint64_t unreadable = 0;     // segments left alone
};

class SegmentCleaner {
 public:
  SegmentCleaner(Runtime& runtime, MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
                 uint64_t segment_bytes, const CleanerOptions& options, std::function<void(const Status&)> on_error);
  ~SegmentCleaner();
  SegmentCleaner(const SegmentCleaner&) = delete;
  SegmentCleaner& operator=(const SegmentCleaner&) = delete;

  // Cleans until nothing is worth it. RESOURCE_EXHAUSTED: no space; CANCELLED: it is ending; IO_ERROR: a segment cannot be read now, or the
  // store's fatal error.
  // REQUIRES: no guard is held.
  Status Clean();

  CleanerStatistics statistics() const;

 private:
  // A segment as it was chosen.
  struct Victim {
    uint64_t number = 0;
    uint64_t written_bytes = 0;
    uint64_t live_bytes = 0;
    bool urgent = false;
  };

  void Run();
  // Among segments below `next_segment`: those that were there when cleaning began, so that it ends.
  std::optional<Victim> Choose(uint64_t next_segment) DEUT_REQUIRES(mutex_);
  Status CleanOne(const Victim& victim) DEUT_REQUIRES(mutex_);
  Status CopyLive(const Victim& victim) DEUT_REQUIRES(mutex_);
  // Waits as long as `bytes` take at the pace. CANCELLED when it is ending.
  Status Pace(uint64_t bytes, bool urgent);
  void NoteStatistics() DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  MappingTable& pages_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  const CleanerOptions options_;
  const uint64_t segment_bytes_;
  const uint64_t slack_bytes_;
  const std::function<void(const Status&)> on_error_;

  Mutex mutex_;
  std::unique_ptr<PageRewriter> rewriter_ DEUT_GUARDED_BY(mutex_);
  // Segments that are not to be tried before the time.
  absl::flat_hash_map<uint64_t, MonotonicTime> put_off_ DEUT_GUARDED_BY(mutex_);
  bool failing_ = false;  // the thread's

  std::atomic<uint64_t> segments_{0}, scanned_{0}, read_{0}, written_{0}, freed_{0}, lost_{0}, unreadable_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wakes_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_CLEANER_SEGMENT_CLEANER_H_
