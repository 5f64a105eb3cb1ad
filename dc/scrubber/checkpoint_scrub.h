// ScrubCheckpoints: reads the checkpoints that a start may open, each with its ancestors, and verifies them by the code
// of a start. A file of a lineage is needed by dozens of later checkpoints and read by none of them. So damage of it
// would be found only when the other lineage cannot help any more.
// A checkpoint may be removed meanwhile; it is then skipped. Thread-safety: any thread, which may not hold a guard.
// Memory: a megabyte, one bit for each page id, and 24 bytes for each segment.
#ifndef DC_SCRUBBER_CHECKPOINT_SCRUB_H_
#define DC_SCRUBBER_CHECKPOINT_SCRUB_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_number.h"

namespace deut::dc {

// The place of the checkpoints, and their owner. Borrows the storage.
struct CheckpointFolder {
  Storage* storage = nullptr;  // null: there are no checkpoints
  std::string directory;
  DcId dc = {};
};

// `pace` is called after each transfer with its bytes; its error ends the search, and is the result. `damaged` is
// called for each checkpoint that a start could not open, with the reason. OK otherwise, also if the folder cannot be
// listed: the next round tries again.
Status ScrubCheckpoints(const CheckpointFolder& folder, absl::FunctionRef<Status(uint64_t bytes)> pace,
                        absl::FunctionRef<void(CheckpointNumber number, const Status& damage)> damaged);

}  // namespace deut::dc

#endif  // DC_SCRUBBER_CHECKPOINT_SCRUB_H_
