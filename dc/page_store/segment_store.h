// SegmentStore: the log-structured store of page parts: append-only segment files in one directory. It knows bytes,
// addresses and segments; its users decide which parts are live. [LLAMA: Levandoski, Lomet, Sengupta, PVLDB 6(10),
// 2013, section 4]
//
// States of a part:
//   appended   Append has given it an address; nobody may read it.
//   written    Write has returned OK: it can be read, and counts as live (length_bound() bytes), without AddLive.
//   dead       MarkDead: no image names it any more. Its bytes stay until its segment is removed.
//   A part is durable if it was written before a SyncAll that returned OK.
// Dead segments. RemoveDeadSegments removes a closed segment without live bytes when both hold:
//   - No kept checkpoint can need a part of it: when its last part died, the checkpoint begun last was older than the
//     oldest kept one.
//   - No kept checkpoint names it without needing it.
// Races. MarkDead stores the number of the checkpoint begun last (last_death_checkpoint), then subtracts the bytes.
//   RemoveDeadSegments loads live_bytes, finds 0, and then loads last_death_checkpoint: it finds the number of the last
//   part. A thread that unlinks an address from the images does so before MarkDead, and BeginCheckpoint comes before
//   that checkpoint's scan of the images. So a last_death_checkpoint below k proves that checkpoint k cannot name the
//   part. All of these are sequentially consistent.
//   Read finds the segment under a reclamation guard and holds its file by a shared pointer. So a removal never takes
//   the file away from a reader, and a read never waits for an append, a removal or another read.
// Errors. RESOURCE_EXHAUSTED: no space; see SegmentAppender. A failed sync, or a write that failed for another reason
//   than space: fatal(). From then on every call fails with that error, and the process must end. CORRUPTION names
//   file and offset.
// Thread-safety: all methods from any thread. Open, a change of segment, SyncAll, RemoveDeadSegments, next_segment and
//   totals take the mutex. Unless the store is fatal, Read, AddLive, MarkDead, BeginCheckpoint and usage never do.
// Ownership: storage and runtime outlive the store; the store outlives its appenders and every read.
#ifndef DC_PAGE_STORE_SEGMENT_STORE_H_
#define DC_PAGE_STORE_SEGMENT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/part_run.h"
#include "dc/page_store/segment_appender.h"
#include "dc/page_store/segment_check_options.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {

struct SegmentStoreOptions {
  // Length of a new segment of a small store: a multiple of kIoAlignment, at most half of reserve_bytes. In a larger
  // store it is doubled as long as the store would fill `segments_before_growth` segments of the double length, up to
  // max_segment_bytes. On a disk without room for some of these, it is shorter.
  uint64_t segment_bytes = 4 << 20;
  // At most 1 GiB; below segment_bytes: as segment_bytes. A segment also has at most half of reserve_bytes, and one of
  // delta parts a sixteenth. So on a full disk the copy of a segment's live parts fits into the reserve, and a segment
  // that cannot be emptied there never comes into being.
  uint64_t max_segment_bytes = 1 << 30;
  uint64_t segments_before_growth = 1024;
  size_t append_buffer_bytes = 1 << 20;  // size of each appender's buffer
  size_t max_open_files = 512;           // kept open for reading; beyond it, a file is opened for each read
  // Above one of these, the thread that closes a segment syncs it. An open segment is synced when a quarter of these
  // bytes is unsynced in it.
  size_t max_unsynced_segments = 64;
  uint64_t max_unsynced_bytes = 256 << 20;
  uint64_t reserve_bytes = 128 << 20;  // of the disk's free space; reserved for work that frees space (space_use.h)
};

struct SegmentUsage {
  uint64_t number = 0;
  SegmentKind kind = SegmentKind::kBase;
  uint64_t written_bytes = 0;  // of the file, including its header block
  uint64_t live_bytes = 0;
  bool closed = false;  // nothing is appended to it any more
};

// A range of a segment that contains no valid part.
struct DamagedParts {
  uint64_t begin = 0;  // offsets in the file
  uint64_t end = 0;
  Status status;  // CORRUPTION: the damage at its beginning
};

struct StoreTotals {
  uint64_t segments = 0;
  uint64_t written_bytes = 0;  // in segments that exist
  uint64_t live_bytes = 0;
  uint64_t dead_bytes = 0;  // in closed segments without live bytes: files that one or two more checkpoints remove
  // In files that no checkpoint names; the next checkpoint removes them. Each counts at least as a short segment.
  uint64_t left_over_bytes = 0;
  uint64_t memory_bytes = 0;  // appenders' buffers and the segment table; not PartBuffers
  // Since the start of this incarnation.
  uint64_t parts_appended = 0, bytes_appended = 0, bytes_written = 0;  // bytes of parts; bytes of transfers
  // Appended parts that are packed: the bytes of their content, and of their payload on storage.
  uint64_t bytes_before_compression = 0, bytes_after_compression = 0;
  uint64_t reads = 0, bytes_read = 0;
  uint64_t syncs = 0;
  uint64_t segments_created = 0, segments_removed = 0;
};

class SegmentStore {
 public:
  // Makes a store without a checkpoint. `directory` is created if absent. Segments that exist already (of an
  // incarnation that completed no checkpoint) are not touched until RemoveDeadSegments.
  static Result<std::unique_ptr<SegmentStore>> Create(Storage& storage, Runtime& runtime, const std::string& directory,
                                                      DcId dc, const SegmentStoreOptions& options);
  // Opens the store as checkpoint `checkpoint` names it: every segment exists, with its header, and is at least as
  // long as named. CORRUPTION if not; nothing is changed. `next_segment`: as the checkpoint has it. The caller then
  // calls AddLive for every segment in which the checkpoint names parts.
  static Result<std::unique_ptr<SegmentStore>> Open(Storage& storage, Runtime& runtime, const std::string& directory,
                                                    DcId dc, const SegmentStoreOptions& options,
                                                    CheckpointNumber checkpoint,
                                                    std::span<const SegmentExtent> segments, uint64_t next_segment,
                                                    const SegmentCheckOptions& check = {});
  // Checks whether the segments that no checkpoint names may be removed one day. VERSION_MISMATCH: one is of another
  // version. CORRUPTION: one is another DC's. Damaged ones are no error, and are never removed. Changes nothing.
  Status CheckLeftOverFiles();
  ~SegmentStore();
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;

  // --- Writing.
  // One thread uses an appender at a time. Several appenders of a kind append to segments of their own.
  Result<std::unique_ptr<SegmentAppender>> NewAppender(SegmentKind kind);
  // Makes everything written before the call durable: files and directory. Returns the segments that checkpoint
  // `checkpoint` (begun last, its images captured before the call) has to name: every one that may hold a part of it.
  // REQUIRES: not called together with RemoveDeadSegments.
  Result<std::vector<SegmentExtent>> SyncAll(CheckpointNumber checkpoint);
  // Above every segment number used so far; for the checkpoint.
  uint64_t next_segment() const;
  // Returns the error after which every call fails, or OK.
  Status fatal() const;

  // --- Reading.
  // Blocks. Reads the part at `address` into `buffer`, fully verified and unpacked. NOT_FOUND: its segment was removed, so the
  // address is not live any more. If an image still names it, that is corruption.
  Status Read(PageAddress address, PageId page, PartBuffer* buffer);
  // The same in three steps, for a thread that has several reads in flight: TryBeginRead or BeginRead,
  // buffer->request() on a queue of NewQueue, EndRead. If the first step returns an error, there is no request to run.
  // EndRead is called when the request was reaped, and verifies and unpacks the part.
  // TryBeginRead never blocks. false: the segment's file is not open, and nothing was begun.
  Result<bool> TryBeginRead(PageAddress address, PageId page, PartBuffer* buffer);
  // Opens the file if it is not open, and blocks on the disk for that. RESOURCE_EXHAUSTED: a shortage of descriptors or
  // kernel memory, which the caller waits out.
  Status BeginRead(PageAddress address, PageId page, PartBuffer* buffer);
  Status EndRead(PartBuffer* buffer);
  // The same for all parts from `first` to `last`, of one segment, and the bytes between them: one transfer. EndReadRun
  // verifies only that it is complete; PartRun::Part verifies a part. Blocks like BeginRead.
  Status BeginReadRun(PageAddress first, PageAddress last, PartRun* run);
  Status EndReadRun(PartRun* run);
  // REQUIRES: depth > 0. The queue ends before the store.
  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth);
  // Visits all parts of a segment that were written before the call, in order of their offsets, each verified, dead
  // ones too. Packed parts stay packed. Stops at the first error, also one that the callback returns.
  Status ForEachPart(uint64_t segment, const std::function<Status(const PartView&)>& callback);
  // The same, but reports damage to `on_damage` and continues behind it.
  Status ForEachPart(uint64_t segment, const std::function<Status(const PartView&)>& callback,
                     const std::function<Status(const DamagedParts&)>& on_damage);

  // --- Accounting.
  // Called at recovery, before anything else: parts of the segment with this sum of length_bound() are live, besides
  // those of earlier calls. The reader of the checkpoint has checked that each lies in the segment. CORRUPTION if the
  // store has no such segment.
  Status AddLive(uint64_t segment, uint64_t bytes);
  // Called once for every written part that is in no image any more, or never came into one. REQUIRES: the part is
  // live.
  void MarkDead(PageAddress address);
  std::vector<SegmentUsage> usage() const;  // ascending numbers
  // The same without a copy of all: calls `callback` for each segment, under a reclamation guard.
  void ForEachUsage(absl::FunctionRef<void(const SegmentUsage&)> callback) const;
  // The usage of one segment; no value if it is not there (any more).
  std::optional<SegmentUsage> UsageOf(uint64_t segment) const;
  StoreTotals totals() const;
  // The length of a short segment, as the options have it.
  uint64_t segment_bytes() const;
  // The length of the next segment of base parts, if the disk has room for a long one.
  uint64_t next_segment_bytes() const;
  // Written bytes of all segments that exist. Cheap.
  uint64_t file_bytes() const;
  // True if the disk has so little free space that ordinary writes are refused, or will be after a few more segments.
  bool IsShortOfSpace() const;
  // The free bytes of the disk that appenders with this use may take.
  uint64_t RoomFor(SpaceUse use) const;
  // Reserves space for the next checkpoint's file, of about this size.
  void ReserveForCheckpoint(uint64_t bytes);
  // The reserved part of the disk's free space (space_use.h).
  uint64_t reserve_bytes() const;
  // Approximate memory of the segment table. Cheap.
  uint64_t table_bytes() const;

  // --- Checkpoints.
  // Called before the images are captured for checkpoint `k`. Numbers rise; a failed checkpoint may be begun again.
  void BeginCheckpoint(CheckpointNumber k);
  // Called after this incarnation has completed a checkpoint. Removes the files of segments that neither
  // `oldest_kept` nor a newer checkpoint names, and the files found at the start that the opened checkpoint did not
  // name. Returns the number of removed files. After an error some files stay for the next time; nothing is lost.
  Result<size_t> RemoveDeadSegments(CheckpointNumber oldest_kept);

 private:
  struct Core;
  enum class Opening : uint8_t { kNever, kOnce, kWithRetries };

  // False: the file is not open, and `opening` is kNever.
  Result<bool> Begin(PageAddress address, PageId page, Opening opening, PartBuffer* buffer);

  explicit SegmentStore(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_STORE_H_
