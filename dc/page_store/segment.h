// Segment: the state of one segment file in memory. Internal to the page store.
//
// States: open (one appender), closed, removed (in no SegmentTable any more). Only ever in this order.
//   written_bytes  rises by the appender's store, after the bytes are in the file and their live bytes are added
//   closed         false -> true by the appender, after its last store to written_bytes
//   live_bytes     + by the appender and at recovery, - by MarkDead; once closed and 0 it stays 0
//   last_death_checkpoint   raised (compare-and-swap, to a maximum) by MarkDead before it subtracts live bytes
//   last_naming_checkpoint  raised by SyncAll for a checkpoint
//   file           null <-> a FileHolder, by compare-and-swap and exchange (open_files.h)
// Holders are retired through the store's domain. All are sequentially consistent; segment_store.h states what
// depends on it.
// Thread-safety: as stated. Ownership: shared by the table and the threads that read or append.
#ifndef DC_PAGE_STORE_SEGMENT_H_
#define DC_PAGE_STORE_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/io/storage.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc {

// A file kept open for reading. It counts itself in `open_files` until it is retired.
struct FileHolder {
  FileHolder(std::shared_ptr<File> opened, std::atomic<size_t>& counter)
      : file(std::move(opened)), open_files(counter) {
    open_files.fetch_add(1);
  }
  ~FileHolder() { StopCounting(); }
  FileHolder(const FileHolder&) = delete;
  FileHolder& operator=(const FileHolder&) = delete;

  // Called by the thread that has unlinked it. A guard may keep retired holders for long. If they counted, each miss
  // meanwhile would find too many files open, and close another eighth of them.
  void StopCounting() {
    if (std::exchange(counted, false)) open_files.fetch_sub(1);
  }

  const std::shared_ptr<File> file;
  std::atomic<size_t>& open_files;
  bool counted = true;  // used only by the thread that has unlinked the holder, and later by its destructor
};

struct Segment {
  Segment(SegmentKind segment_kind, uint64_t segment_number, std::string file_path, uint64_t written)
      : kind(segment_kind),
        number(segment_number),
        path(std::move(file_path)),
        written_bytes(written),
        synced_bytes(written) {}
  ~Segment() { delete file.load(); }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentKind kind;
  const uint64_t number;
  const std::string path;

  std::atomic<uint64_t> written_bytes;  // readable bytes of the file; 0: none yet
  std::atomic<uint64_t> synced_bytes;   // bytes covered by a completed sync
  std::atomic<bool> closed{false};
  std::atomic<uint64_t> live_bytes{0};
  std::atomic<uint64_t> last_death_checkpoint{0};   // number of the newest checkpoint begun when a part of it last died
  std::atomic<uint64_t> last_naming_checkpoint{0};  // number of the last checkpoint that names it

  std::atomic<FileHolder*> file{nullptr};
  std::atomic<bool> touched{false};  // read since the last sweep of OpenFiles
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_H_
