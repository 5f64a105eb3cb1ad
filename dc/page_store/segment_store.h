// SegmentStore: the log-structured store of page parts: append-only segment files in one directory. It knows bytes, addresses and
// segments; what is live, its users say. [LLAMA: Levandoski, Lomet, Sengupta, PVLDB 6(10), 2013, section 4]
//
// A part's life
//   appended   Append has given it an address; nobody may read it.
//   written    Write has answered OK: it can be read, and counts as live (length_bound() bytes), without MarkLive.
//   dead       MarkDead: no image names it any more. Its bytes stay until its segment is removed.
//   Durable is what was written before a SyncAll that answered OK.
// Dead segments. A segment that is closed and has no live bytes is removed when no kept checkpoint can name a part of it (the number of the
//   checkpoint begun last when its last part died is below the oldest kept one) and none names it without need.
// Races. MarkDead notes the checkpoint begun last, then takes the bytes off; RemoveDead sees no live bytes, then looks at the note: it finds
//   that of the last part. Whoever unlinks an address from the images does so before MarkDead, and BeginCheckpoint comes before that checkpoint's
//   look at the images: so a note below k says that checkpoint k cannot name the part. All of these are sequentially consistent.
//   Read finds the segment under a reclamation guard and holds its file by a shared pointer: a removal never takes it away from under
//   a reader, and a read never waits for an append, a removal or another read.
// Errors. RESOURCE_EXHAUSTED: no space; see SegmentAppender. A failed sync, or a write failed otherwise than for want of space: fatal();
//   from then on every call fails with it, and the process must end. CORRUPTION names file and offset.
// Thread-safety: all methods from any thread. The mutex is taken by Open, NewAppender, a change of segment, SyncAll, RemoveDead, usage; never by
//   Read, MarkLive, MarkDead, BeginCheckpoint. Ownership: storage and runtime outlive the store, the store its appenders and every read.
#ifndef DC_PAGE_STORE_SEGMENT_STORE_H_
#define DC_PAGE_STORE_SEGMENT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_appender.h"
#include "dc/page_store/segment_check.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc {

struct SegmentStoreOptions {
  uint64_t segment_bytes = 4 << 20;      // at most 4 MiB; a multiple of kIoAlignment
  size_t append_buffer_bytes = 1 << 20;  // of each appender
  size_t max_open_files = 512;           // kept open for reading; others are opened for each read
  size_t max_unsynced_segments = 64;     // above it, who closes a segment syncs it
  uint64_t reserve_bytes = 128 << 20;    // of the disk's room; kept for giving space back (space_use.h)
};

struct SegmentUsage {
  uint64_t number = 0;
  SegmentKind kind = SegmentKind::kBase;
  uint64_t written_bytes = 0;  // of the file, with its header block
  uint64_t live_bytes = 0;
  bool closed = false;  // nothing is appended to it any more
};

// A stretch of a segment in which no part is right.
struct DamagedParts {
  uint64_t begin = 0;  // offsets in the file
  uint64_t end = 0;
  Status status;  // CORRUPTION: what is wrong at its beginning
};

struct StoreTotals {
  uint64_t segments = 0;
  uint64_t written_bytes = 0;  // in segments that are there
  uint64_t live_bytes = 0;
  uint64_t dead_bytes = 0;  // in closed segments without live bytes: files that a checkpoint, or two, removes
  // Files of an earlier life that no checkpoint names: the next checkpoint removes them.
  uint64_t left_over_files = 0;
  uint64_t memory_bytes = 0;  // appenders' buffers, and what is known of segments; not PartBuffers
  // Since the start of this life.
  uint64_t parts_appended = 0, bytes_appended = 0, bytes_written = 0;  // bytes of parts; bytes of transfers
  uint64_t reads = 0, bytes_read = 0;
  uint64_t syncs = 0;
  uint64_t segments_created = 0, segments_removed = 0;
};

class SegmentStore {
 public:
  // A store without a checkpoint. `directory` is created if absent. Segments that are there already (of a life that completed no checkpoint) are
  // not touched until RemoveDead.
  static Result<std::unique_ptr<SegmentStore>> Create(Storage& storage, Runtime& runtime, std::string directory,
                                                      DcId dc, const SegmentStoreOptions& options);
  // The store as checkpoint `checkpoint` names it: every segment is there, with its header, and at least as long. CORRUPTION if not; nothing
  // is changed. `next_segment`: as the checkpoint has it. The caller then says MarkLive of every address that the checkpoint names.
  static Result<std::unique_ptr<SegmentStore>> Open(Storage& storage, Runtime& runtime, std::string directory, DcId dc,
                                                    const SegmentStoreOptions& options, CheckpointNumber checkpoint,
                                                    std::span<const SegmentExtent> segments, uint64_t next_segment,
                                                    const SegmentCheck& check = {});
  // Whether the segments that no checkpoint names may be removed one day. VERSION_MISMATCH: one is of another version; CORRUPTION: one is another
  // DC's. Damaged ones are no error, and are never removed. Changes nothing.
  Status CheckLeftOver();
  ~SegmentStore();
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;

  // --- Writing.
  // One thread uses it at a time. Several of a kind append to segments of their own.
  Result<std::unique_ptr<SegmentAppender>> NewAppender(SegmentKind kind);
  // Makes all that was written before the call durable: files and directory. Answers what a checkpoint has to name whose images were looked at
  // before the call (`checkpoint`, begun last): every segment that may hold a part of it. REQUIRES: not called together with RemoveDead.
  Result<std::vector<SegmentExtent>> SyncAll(CheckpointNumber checkpoint);
  // Above every segment number used so far; for the checkpoint.
  uint64_t next_segment() const;
  // The error after which nothing works any more, or OK.
  Status fatal() const;

  // --- Reading.
  // Blocks. The part at `address`, verified whole, in `buffer`. NOT_FOUND: its segment was removed, so the address is not live any more; if an
  // image still names it, that is corruption.
  Status Read(PageAddress address, PageId page, PartBuffer* buffer);
  // All parts of a segment that were written before the call, in order of their offsets, each verified; dead ones too. Stops at the first error,
  // also one that the callback answers.
  Status ForEachPart(uint64_t segment, const std::function<Status(const PartView&)>& callback);
  // The same, but tells damage and goes on behind it.
  Status ForEachPart(uint64_t segment, const std::function<Status(const PartView&)>& callback,
                     const std::function<Status(const DamagedParts&)>& on_damage);

  // --- Accounting.
  // At recovery, once for every address that the checkpoint names, before anything else. CORRUPTION if the store has no such place.
  Status MarkLive(PageAddress address);
  // Once for every written part: it is in no image any more, or never came to be in one. REQUIRES: the part is live.
  void MarkDead(PageAddress address);
  std::vector<SegmentUsage> usage() const;  // ascending numbers
  StoreTotals totals() const;
  // Of a usual segment.
  uint64_t segment_bytes() const;
  // The disk has so little room that ordinary writes are refused, or will be after a few more segments.
  bool IsShortOfSpace() const;
  // So large the next checkpoint's file will be about; room for it is kept.
  void KeepForCheckpoint(uint64_t bytes);
  // What is kept of the disk's room (space_use.h).
  uint64_t reserve_bytes() const;
  // About what is known of segments takes in memory. Cheap.
  uint64_t table_bytes() const;

  // --- Checkpoints.
  // Before the images are looked at for checkpoint `k`. Numbers rise; one that failed may be begun again.
  void BeginCheckpoint(CheckpointNumber k);
  // After a checkpoint of this life was completed: removes the files of segments that neither `oldest_kept` nor a newer checkpoint names,
  // and those found at the start that the checkpoint opened then did not name. Answers how many. An error (nothing is lost by it): some
  // stay for the next time.
  Result<size_t> RemoveDead(CheckpointNumber oldest_kept);

 private:
  struct Core;

  explicit SegmentStore(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_STORE_H_
