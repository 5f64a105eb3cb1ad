// RunReader: reads parts of many pages at once, on one thread with one queue. Parts that lie close together in a segment
// are read by one transfer, a run (hot_page_plan.h), and several runs are in flight. Work that knows its pages beforehand
// uses it: the fetch of hot pages, and a start.
//
// A run may fail because of bytes that belong to none of its parts. So a caller that has to know whether a page can be
// read reads that page alone after a failure.
// Thread-safety: one thread. Ownership: owns its queue and buffers; borrows the store. A run shares its segment until
// Forget, and its file only while it is in flight: so a reader keeps at most `runs_in_flight` files open. Memory: the
// parts of the last Read and the gaps between them, until Forget.
#ifndef DC_PAGE_CACHE_RUN_READER_H_
#define DC_PAGE_CACHE_RUN_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_cache/hot_page_plan.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/part_run.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct RunReaderOptions {
  size_t runs_in_flight = 4;
  uint64_t max_gap_bytes = kMaxGapBytes;  // read in vain between two parts of a run
};

class RunReader {
 public:
  // Returns the error of making the queue.
  static Result<std::unique_ptr<RunReader>> Create(SegmentStore& store, const RunReaderOptions& options);
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  // Reads these parts, and forgets those of the last call. Blocks on the disk. Once `stop` returns true, no run is
  // begun, as after a shortage.
  void Read(std::vector<PageAddress> parts, absl::FunctionRef<bool()> stop);
  // Gives up segments and buffers.
  void Forget() { reads_.clear(); }

  // False: the part's run could not be read, or was not begun. REQUIRES: it is one of the parts of the last Read.
  bool WasRead(PageAddress part) const { return ReadOf(part).status.ok(); }
  // Verifies a part, unpacks and returns it; or the error of its run. It is valid until the next call. REQUIRES: as
  // WasRead.
  Result<PartView> Part(PageAddress part, PageId page) const;

  // The result of the last Read.
  uint64_t bytes_read() const { return bytes_read_; }
  bool met_shortage() const { return met_shortage_; }  // of descriptors or kernel memory

 private:
  struct RunRead {
    RunOfParts of;
    PartRun run;
    Status status;  // OK: it was read
  };

  RunReader(SegmentStore& store, const RunReaderOptions& options, std::unique_ptr<IoQueue> queue);

  RunRead& ReadOf(PageAddress part) const;
  void Begin(RunRead* read);
  void End(RunRead* read, Status status);

  SegmentStore& store_;
  const RunReaderOptions options_;
  std::vector<std::unique_ptr<RunRead>> reads_;  // in the order of their places
  std::vector<IoRequest*> completed_;
  uint64_t bytes_read_ = 0;
  bool met_shortage_ = false;
  const std::unique_ptr<IoQueue> queue_;  // the last member: its end waits for the runs in flight
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_RUN_READER_H_
