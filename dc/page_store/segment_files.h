// SegmentFiles: the segments of a store and their files: creation, closing, sync, removal, look-up. Internal to the
// page store; segment_store.h states the promises to users, and the races.
//
// A segment's file is open for writing from its creation until it is closed and synced; it may be evicted for reading
// at any time.
// A sync covers the bytes written when it begins: `synced_bytes` rises to the `written_bytes` loaded before it. So
// among several syncs at once, none counts bytes that another has not yet made durable. The same holds for names and
// the directory.
// Thread-safety: all methods from any thread. The mutex is held briefly, never over input or output.
// Ownership: borrows storage and runtime.
#ifndef DC_PAGE_STORE_SEGMENT_FILES_H_
#define DC_PAGE_STORE_SEGMENT_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/disk_reserve.h"
#include "dc/page_store/fatal_error.h"
#include "dc/page_store/open_files.h"
#include "dc/page_store/segment.h"
#include "dc/page_store/segment_check_options.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_table.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {

// As in SegmentStoreOptions.
struct SegmentFilesOptions {
  size_t max_open_files = 0;
  size_t max_unsynced_segments = 0;
  uint64_t max_unsynced_bytes = 0;
  uint64_t segment_bytes = 0;
  uint64_t max_base_bytes = 0;   // length of the longest segment of base parts
  uint64_t max_delta_bytes = 0;  // the same of delta parts
  uint64_t segments_before_growth = 0;
  uint64_t reserve_bytes = 0;
};

struct StoreCounters {
  std::atomic<uint64_t> parts_appended{0}, bytes_appended{0}, bytes_written{0};
  std::atomic<uint64_t> bytes_before_compression{0}, bytes_after_compression{0};
  std::atomic<uint64_t> reads{0}, bytes_read{0};
  std::atomic<uint64_t> syncs{0};
  std::atomic<uint64_t> segments_created{0}, segments_removed{0};
  std::atomic<uint64_t> buffer_bytes{0};  // of all appenders
};

// A segment to which parts are appended.
struct OpenSegment {
  std::shared_ptr<Segment> segment;
  std::shared_ptr<File> file;
  uint64_t capacity_bytes = 0;  // the file does not become longer
};

// A file that no checkpoint names, to be removed by the next one.
struct LeftOverFile {
  std::string path;
  uint64_t bytes = 0;  // its length, and at least that of a short segment
};

class SegmentFiles {
 public:
  SegmentFiles(Storage& storage, Runtime& runtime, std::string directory, DcId dc, const SegmentFilesOptions& options);

  // --- At the start, before anything else; one thread.
  Status CreateDirectory();
  // Adds the segments of a checkpoint to the table; see SegmentStore::Open. All other segment files found become
  // left-over files.
  Status LoadNamedSegments(CheckpointNumber checkpoint, std::span<const SegmentExtent> segments, uint64_t next_segment,
                           const SegmentCheckOptions& check);
  // VERSION_MISMATCH or CORRUPTION if a segment that no checkpoint names is of another version, or of another DC.
  // Changes nothing.
  Status CheckLeftOverFiles();

  // --- Writing.
  // Makes a new, empty file under the next number, of the length for the present store and disk. After an error there
  // is no such file, or it is left over. RESOURCE_EXHAUSTED also if the free space is reserved for other uses. The
  // first `segment_bytes` may be appended; the appender calls CheckRoom before each further `segment_bytes`.
  Result<OpenSegment> NewSegment(SegmentKind kind, SpaceUse use);
  // The same with a given length, all of which may be appended.
  Result<OpenSegment> NewSegmentOf(SegmentKind kind, SpaceUse use, uint64_t bytes);
  // RESOURCE_EXHAUSTED if this use may not take `segment_bytes` of the free space.
  Status CheckRoom(SpaceUse use);
  // True if a new segment would be much shorter than this open one, because the store has become smaller. Then the
  // appender closes it, so that its dead bytes can be freed.
  bool IsTooLong(const OpenSegment& open) const { return open.capacity_bytes > 4 * LengthFor(open.segment->kind); }
  // Stores the readable bytes of a segment. REQUIRES: their live bytes are added, and the bytes are in the file; the
  // caller is the segment's appender.
  void SetWritten(const OpenSegment& open, uint64_t written_bytes);
  // Called by the appender of a segment that stays open. Syncs it if many of its bytes are not synced.
  Status BoundUnsynced(const OpenSegment& open);
  // Called when no appender uses the segment any more. A segment without written bytes is removed.
  Status CloseSegment(const OpenSegment& open);
  Result<std::vector<SegmentExtent>> SyncAll(CheckpointNumber checkpoint);
  uint64_t next_segment() const;
  // The length of the next segment of the present store, if the disk has room for it.
  uint64_t LengthFor(SegmentKind kind) const;
  // Written bytes of all segments of the table.
  uint64_t file_bytes() const { return file_bytes_.load(std::memory_order_relaxed); }
  uint64_t left_over_bytes() const;

  // As FatalError::Set.
  Status BecomeFatal(Status error) { return fatal_.Set(std::move(error)); }
  bool is_fatal() const { return fatal_.is_set(); }
  Status fatal() const { return fatal_.status(); }

  // --- Checkpoints.
  void BeginCheckpoint(CheckpointNumber k);
  uint64_t checkpoint() const { return checkpoint_.load(); }
  Result<size_t> RemoveDeadSegments(CheckpointNumber oldest_kept);

  DiskReserve& reserve() { return reserve_; }
  uint64_t RoomFor(SpaceUse use) const;
  const SegmentTable& table() const { return table_; }
  OpenFiles& open_files() { return open_files_; }
  StoreCounters& counters() { return counters_; }
  DcId dc() const { return dc_; }
  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) { return storage_.NewQueue(depth); }

 private:
  std::string PathOf(SegmentKind kind, uint64_t number) const;
  Result<OpenSegment> MakeSegment(SegmentKind kind, uint64_t capacity_bytes);
  LeftOverFile LeftOver(std::string path) const { return {.path = std::move(path), .bytes = options_.segment_bytes}; }
  Result<std::shared_ptr<Segment>> CheckedSegment(const SegmentExtent& extent);
  // True if a segment that no checkpoint names may be removed: its header is this DC's, or was not written.
  // VERSION_MISMATCH or CORRUPTION: it is of another version, or of another DC, so this program may not clean up this
  // folder. Notes its length in `file`.
  Result<bool> MayRemove(LeftOverFile* file);
  Status SyncSegment(Segment& segment, File& file);
  Status SyncNames();
  // True if some segment is dead, so that the next checkpoints will free space.
  bool HasDeadSegment() const;
  // Bytes that were written and are not synced, of all segments.
  uint64_t UnsyncedBytes() const DEUT_REQUIRES(mutex_);
  void DropSynced();
  Status RemoveFile(const std::string& path);

  Runtime& runtime_;
  Storage& storage_;
  const std::string directory_;
  const DcId dc_;
  const SegmentFilesOptions options_;

  std::atomic<size_t> open_for_reading_{0};
  ReclamationDomain domain_;
  SegmentTable table_;  // changed under mutex_
  OpenFiles open_files_;
  StoreCounters counters_;

  CheckpointNumber opened_;              // set at the start
  std::atomic<uint64_t> checkpoint_{0};  // number of the newest checkpoint begun
  std::atomic<uint64_t> file_bytes_{0};  // written bytes of all segments of the table
  std::atomic<uint64_t> names_made_{0};
  std::atomic<uint64_t> names_synced_{0};
  FatalError fatal_;
  DiskReserve reserve_;

  mutable Mutex mutex_;
  uint64_t next_segment_ DEUT_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, OpenSegment> writable_ DEUT_GUARDED_BY(mutex_);  // open, or closed and not yet synced
  std::vector<LeftOverFile> left_over_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_FILES_H_
