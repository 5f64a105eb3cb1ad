// SegmentScrubber: reads the whole page store, slowly and repeatedly. So damage is found while a redo log, a second
// checkpoint or a backup can still help, and not only when the page is needed.
//
// How: in each round, the checkpoints are read first (checkpoint_scrub.h). Then, segment after segment by number, every
// written part is read and verified by the code that reads pages (part_scanner.h). Behind damage it continues with the
// next intact part.
// Damage is logged once for each place, with file, offset, remedy, and the pages whose images lie there; the pages
// are looked up only then. The process continues: a reader of such a page gets an error. `on_damaged_checkpoint` is
// called in each round that finds a damaged checkpoint.
// Pace: `bytes_per_second`, and a pause after each round, so that a small store costs nothing.
// Errors: a file that cannot be read counts as damage. A segment that is removed meanwhile is skipped. If the store
// has failed, the thread ends (the writer that hit the error has reported it).
// Thread-safety: all methods from any thread; one thread scrubs at a time. No guard is held during input. Ownership:
// owns its thread; borrows the rest. Memory: a megabyte, or the largest part, or that of ScrubCheckpoints; 16 bytes for
// each damaged place and one message for each damaged place of a checkpoint, at most kMaxReported of either.
#ifndef DC_SCRUBBER_SEGMENT_SCRUBBER_H_
#define DC_SCRUBBER_SEGMENT_SCRUBBER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/segment_store.h"
#include "dc/scrubber/checkpoint_scrub.h"

namespace deut::dc {

struct ScrubberOptions {
  uint64_t bytes_per_second = 4 << 20;  // 0: off, there is no thread
  Duration pause = std::chrono::minutes(10);
};

struct ScrubbedCheckpoints {
  CheckpointFolder folder;
  std::function<void()> on_damaged_checkpoint = [] {};
};

struct ScrubberStatistics {
  uint64_t rounds = 0;  // completed rounds
  uint64_t bytes = 0;   // bytes read and verified
  uint64_t errors = 0;  // damaged places, each counted once
};

class SegmentScrubber {
 public:
  SegmentScrubber(Runtime& runtime, const MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
                  const ScrubberOptions& options, ScrubbedCheckpoints checkpoints = {});
  ~SegmentScrubber();
  SegmentScrubber(const SegmentScrubber&) = delete;
  SegmentScrubber& operator=(const SegmentScrubber&) = delete;

  // Runs a whole round, at the pace. CANCELLED: the scrubber is ending. Other errors: the store's fatal error.
  // REQUIRES: no guard is held.
  Status Scrub();

  ScrubberStatistics statistics() const;

 private:
  void Run();
  Status ScrubOne(const SegmentUsage& usage) DEUT_REQUIRES(mutex_);
  void ReportCheckpoint(CheckpointNumber number, const Status& damage) DEUT_REQUIRES(mutex_);
  void ReportDamage(uint64_t segment, uint64_t begin, uint64_t end, const Status& damage) DEUT_REQUIRES(mutex_);
  // Returns the pages with a part that begins in [begin, end) of the segment, as a clause for a message.
  std::string PagesIn(uint64_t segment, uint64_t begin, uint64_t end) const;
  // Waits for the time that `bytes` take at the pace. CANCELLED when the scrubber is ending.
  Status Pace(uint64_t bytes);
  void WaitUntil(MonotonicTime until);

  Runtime& runtime_;
  const MappingTable& pages_;
  ReclamationDomain& domain_;
  SegmentStore& store_;
  const ScrubberOptions options_;
  const ScrubbedCheckpoints checkpoints_;

  Mutex mutex_;
  // Segment and offset of damage that was reported.
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> reported_ DEUT_GUARDED_BY(mutex_);
  // Messages about damaged checkpoints that were reported.
  absl::flat_hash_set<std::string> reported_checkpoints_ DEUT_GUARDED_BY(mutex_);
  AlignedBuffer content_ DEUT_GUARDED_BY(mutex_);  // of a packed part

  std::atomic<uint64_t> rounds_{0}, bytes_{0}, errors_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wakes_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_SCRUBBER_SEGMENT_SCRUBBER_H_
