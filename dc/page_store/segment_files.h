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
  uint64_t segment_bytes = 0;
  uint64_t max_segment_bytes = 0;
  uint64_t segments_before_growth = 0;
  uint64_t reserve_bytes = 0;
};

struct StoreCounters {
  std::atomic<uint64_t> parts_appended{0}, bytes_appended{0}, bytes_written{0};
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
  // Makes a new, empty file under the next number, of the size for the present store. After an error there is no such
  // file, or it is left over. RESOURCE_EXHAUSTED also if the free space is reserved for other uses.
  Result<OpenSegment> NewSegment(SegmentKind kind, SpaceUse use);
  // The same with a given size.
  Result<OpenSegment> NewSegmentOf(SegmentKind kind, SpaceUse use, uint64_t bytes);
  // Stores the readable bytes of a segment. REQUIRES: their live bytes are added, and the bytes are in the file; the
  // caller is the segment's appender.
  void SetWritten(const OpenSegment& open, uint64_t written_bytes);
  // Called when no appender uses the segment any more. A segment without written bytes is removed.
  Status CloseSegment(const OpenSegment& open);
  Result<std::vector<SegmentExtent>> SyncAll(CheckpointNumber checkpoint);
  uint64_t next_segment() const;
  // The size of the next segment of the present store, if the disk has room for it.
  uint64_t next_segment_bytes() const { return SegmentBytesFor(file_bytes_.load(std::memory_order_relaxed)); }
  size_t left_over_files() const;

  // As FatalError::Set.
  Status BecomeFatal(Status error) { return fatal_.Set(std::move(error)); }
  bool is_fatal() const { return fatal_.is_set(); }
  Status fatal() const { return fatal_.status(); }

  // --- Checkpoints.
  void BeginCheckpoint(CheckpointNumber k);
  uint64_t checkpoint() const { return checkpoint_.load(); }
  Result<size_t> RemoveDeadSegments(CheckpointNumber oldest_kept);

  DiskReserve& reserve() { return reserve_; }
  // Free bytes of the disk that ordinary segments may not take, now or once the appenders have begun their next ones.
  uint64_t reserved_bytes() const;
  const SegmentTable& table() const { return table_; }
  OpenFiles& open_files() { return open_files_; }
  StoreCounters& counters() { return counters_; }
  DcId dc() const { return dc_; }
  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) { return storage_.NewQueue(depth); }

 private:
  std::string PathOf(SegmentKind kind, uint64_t number) const;
  // The size of a new segment in a store of `file_bytes`.
  uint64_t SegmentBytesFor(uint64_t file_bytes) const;
  Result<OpenSegment> MakeSegment(SegmentKind kind, uint64_t capacity_bytes);
  // Sets the room that the segment may still fill, as promised to its appender.
  void SetPromise(Segment& segment, uint64_t bytes);
  Result<std::shared_ptr<Segment>> CheckedSegment(const SegmentExtent& extent);
  // True if a segment that no checkpoint names may be removed: its header is this DC's, or was not written.
  // VERSION_MISMATCH or CORRUPTION: it is of another version, or of another DC, so this program may not clean up this
  // folder.
  Result<bool> MayRemove(const std::string& path);
  Status SyncSegment(Segment& segment, File& file);
  Status SyncNames();
  // True if some segment is dead, so that the next checkpoints will free space.
  bool HasDeadSegment() const;
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
  std::vector<std::string> left_over_ DEUT_GUARDED_BY(mutex_);        // paths of files that no checkpoint names
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_FILES_H_
