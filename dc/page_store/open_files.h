// OpenFiles: a cache of segment files that are open for reading, about `limit` of them, evicted by second chance.
// Internal to the page store.
//
// States of a segment's `file` word:
//   null -> holder   compare-and-swap by the thread that opened the file; the loser reads through its own file, once
//   holder -> null   exchange by the thread that closes files, or when the segment is removed
// The holder is retired, so a reader that found it under a guard can share the file. A file is closed when its last
// user releases it.
// One thread at a time closes files (`closing_`). Others that find too many open set `wanted_` and leave the work to
//   that thread, which checks `wanted_` again when it has finished.
// Thread-safety: all methods from any thread, latch-free. Ownership: borrows everything.
#ifndef DC_PAGE_STORE_OPEN_FILES_H_
#define DC_PAGE_STORE_OPEN_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/sync/reclamation.h"
#include "dc/page_store/segment.h"
#include "dc/page_store/segment_table.h"

namespace deut::dc {

class OpenFiles {
 public:
  OpenFiles(Storage& storage, ReclamationDomain& domain, const SegmentTable& table, std::atomic<size_t>& open,
            size_t limit);

  // Returns the segment's file if it is open for reading, else null. Never blocks.
  std::shared_ptr<File> Find(Segment& segment);
  // Opens the segment's file for reading. Blocks on the disk. NOT_FOUND if there is no such file (any more).
  // `once`: as in OpenOptions.
  Result<std::shared_ptr<File>> Open(Segment& segment, bool once);
  // The two together, with retries after a shortage.
  Result<std::shared_ptr<File>> Get(Segment& segment);
  // Evicts the segment's file.
  void Close(Segment& segment);
  // The number of files that are open and not retired.
  size_t open() const { return open_.load(); }

 private:
  void CloseSome();
  // REQUIRES: this thread holds `closing_`.
  void Sweep();

  Storage& storage_;
  ReclamationDomain& domain_;
  const SegmentTable& table_;
  std::atomic<size_t>& open_;
  const size_t limit_;
  std::atomic<bool> wanted_{false};  // a thread has found too many files open since the last sweep began
  std::atomic<bool> closing_{false};
  // Only the thread that holds `closing_` uses these.
  uint64_t hand_ = 0;
  uint64_t last_closed_ = 0;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_OPEN_FILES_H_
