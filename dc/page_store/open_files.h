// OpenFiles: the files of segments kept open for reading, about `limit` of them, by second chance. Internal to the page store.
//
// A segment's `file` word: null -> holder by compare-and-swap of whoever has opened it (the loser reads through its own file, once);
//   holder -> null by exchange of whoever closes files, and when the segment is removed; the holder is retired, so that whoever found
//   it under a guard can share the file. A file is closed when its last user drops it.
// One thread at a time closes files; others that find too many open leave it to that one, which looks again when it is through.
// Thread-safety: all methods from any thread, no latch. Ownership: borrows all.
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

  // For reading. NOT_FOUND if it is not there (any more).
  Result<std::shared_ptr<File>> Get(Segment& segment);
  // Lets go of the segment's file.
  void Close(Segment& segment);
  size_t open() const { return open_.load(); }

 private:
  void CloseSome();
  // REQUIRES: `closing_` is this thread's.
  void Sweep();

  Storage& storage_;
  ReclamationDomain& domain_;
  const SegmentTable& table_;
  std::atomic<size_t>& open_;
  const size_t limit_;
  std::atomic<bool> wanted_{false};  // somebody has found too many open since the last sweep began
  std::atomic<bool> closing_{false};
  // Of the one that closes.
  uint64_t hand_ = 0;
  uint64_t last_closed_ = 0;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_OPEN_FILES_H_
