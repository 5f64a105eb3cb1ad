// Segment: what is known in memory of one segment file. Internal to the page store.
//
// States: open (one appender), closed, removed (in no SegmentTable any more). Only ever in this order.
//   written_bytes  rises by the appender's store, after the bytes are in the file and their live bytes are added
//   closed         false -> true by the appender, after its last store to written_bytes
//   live_bytes     + by the appender and at recovery, - by MarkDead; once closed and 0 it stays 0
//   died_at        raised (compare-and-swap, to a maximum) by MarkDead before it takes off live bytes
//   named_at       raised by who makes the checkpoint
//   file           null <-> a FileHolder, by compare-and-swap and exchange (open_files.h); the holder is retired through the store's domain
// All sequentially consistent: see segment_store.h for what hangs on it.
// Thread-safety: as said. Ownership: shared by the table and those who read or append.
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

// A file kept open for reading; counts itself.
struct FileHolder {
  FileHolder(std::shared_ptr<File> opened, std::atomic<size_t>& counter)
      : file(std::move(opened)), open_files(counter) {
    open_files.fetch_add(1);
  }
  ~FileHolder() { open_files.fetch_sub(1); }
  FileHolder(const FileHolder&) = delete;
  FileHolder& operator=(const FileHolder&) = delete;

  const std::shared_ptr<File> file;
  std::atomic<size_t>& open_files;
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

  std::atomic<uint64_t> written_bytes;  // may be read; 0: nothing yet
  std::atomic<uint64_t> synced_bytes;   // covered by a completed sync
  std::atomic<bool> closed{false};
  std::atomic<uint64_t> live_bytes{0};
  std::atomic<uint64_t> died_at{0};   // number of the checkpoint begun last when a part of it died last
  std::atomic<uint64_t> named_at{0};  // number of the last checkpoint that names it

  std::atomic<FileHolder*> file{nullptr};
  std::atomic<bool> touched{false};  // read since the last look of those who close files
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_H_
