// SegmentScrubber: reads what is in the page store, slowly and again and again, so that damage is found while there still is a redo log,
// a second checkpoint or a backup to help, and not when the page is needed.
//
// How: round after round, segment after segment by number, every part that was written to it is read and verified by the code that reads
//   pages (part_scanner.h). Behind damage it goes on with the next part that is right.
// Damage is logged once for each place, with file, offset, what to do, and the pages whose images lie there; those are looked up only then. The
//   process goes on: whoever needs such a page gets an error.
// Pace: `bytes_per_second`, and a pause after each round, so that a small store costs nothing.
// Errors: a file that cannot be read counts as damage. A segment that is removed meanwhile is left out. The store is fatal: the thread ends
//   (who writes has told it).
// Thread-safety: all methods from any thread; one scrubs at a time. No guard is held over input. Ownership: of its thread; borrows the rest.
// Memory: a megabyte, or the largest part; 16 bytes for each damaged place, of which some thousands are kept.
#ifndef DC_SCRUBBER_SEGMENT_SCRUBBER_H_
#define DC_SCRUBBER_SEGMENT_SCRUBBER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct ScrubberOptions {
  uint64_t bytes_per_second = 4 << 20;  // 0: off; there is no thread then
  Duration pause = std::chrono::minutes(10);
};

struct ScrubberStatistics {
  uint64_t rounds = 0;  // complete
  uint64_t bytes = 0;   // read and looked at
  uint64_t errors = 0;  // damaged places, each once
};

class SegmentScrubber {
 public:
  SegmentScrubber(Runtime& runtime, const MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
                  const ScrubberOptions& options);
  ~SegmentScrubber();
  SegmentScrubber(const SegmentScrubber&) = delete;
  SegmentScrubber& operator=(const SegmentScrubber&) = delete;

  // A whole round, at the pace. CANCELLED: it is ending; else the store's fatal error. REQUIRES: no guard is held.
  Status Scrub();

  ScrubberStatistics statistics() const;

 private:
  void Run();
  Status ScrubOne(uint64_t segment) DEUT_REQUIRES(mutex_);
  void Note(uint64_t segment, uint64_t begin, uint64_t end, const Status& damage) DEUT_REQUIRES(mutex_);
  // Pages with a part that begins in [begin, end) of the segment, as a clause for a message.
  std::string PagesIn(uint64_t segment, uint64_t begin, uint64_t end) const;
  // Waits as long as `bytes` take at the pace. CANCELLED when it is ending.
  Status Pace(uint64_t bytes);
  void WaitUntil(MonotonicTime until);

  Runtime& runtime_;
  const MappingTable& pages_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  const ScrubberOptions options_;

  Mutex mutex_;
  // Segment and offset of damage that was told.
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> told_ DEUT_GUARDED_BY(mutex_);

  std::atomic<uint64_t> rounds_{0}, bytes_{0}, errors_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wakes_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_SCRUBBER_SEGMENT_SCRUBBER_H_
