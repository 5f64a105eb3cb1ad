// RecoveryProgress: the progress of a recovery from disk, for callers that ask meanwhile; and a flag to cancel it.
// `inner_pages` grows while inner pages are loaded, level by level: a page is known when its parent was read.
// Thread-safety: all members from any thread. Ownership: none.
#ifndef DC_CHECKPOINT_RECOVERY_PROGRESS_H_
#define DC_CHECKPOINT_RECOVERY_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"

namespace deut::dc {

struct RecoveryProgress {
  std::atomic<uint64_t> checkpoint{0};  // number of the checkpoint; 0: none was found (yet)
  std::atomic<uint64_t> segments{0};    // segments that the checkpoint names
  std::atomic<uint64_t> segments_checked{0};
  std::atomic<uint64_t> inner_pages{0};
  std::atomic<uint64_t> inner_pages_loaded{0};
  std::atomic<bool> given_up{false};

  // Returns CANCELLED once the recovery was given up.
  Status Check() const {
    return given_up.load(std::memory_order_relaxed) ? DEUT_ERROR(kCancelled, "the start was given up") : Status::Ok();
  }
  std::string Text() const {
    if (checkpoint == 0) return "recovering: looking for a checkpoint";
    return Concat("recovering: checkpoint ", checkpoint.load(), ", ", segments_checked.load(), " of ", segments.load(),
                  " segments checked, ", inner_pages_loaded.load(), " of ", inner_pages.load(), " inner pages loaded");
  }
};

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_RECOVERY_PROGRESS_H_
