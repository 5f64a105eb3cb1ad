// SpillReader: one operation's look at the spilled runs (rule S9): what a reader sees of a key, and the keys of a stretch. It holds a block of each
// run.
// Errors: those of the files, and CORRUPTION; they are the operation's alone. Thread-safety: one thread. No guard is needed.
#ifndef TC_SPILL_SPILL_READER_H_
#define TC_SPILL_SPILL_READER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {

class SpillReader {
 public:
  // `runs`: loaded after the chains, or what they were gathered from, had been looked at.
  explicit SpillReader(SpilledRuns::View runs) : runs_(std::move(runs)), blocks_(runs_.size()) {}

  bool empty() const { return runs_.empty(); }

  // The newest version of the key below `reader`; its key is `key`.
  Result<std::optional<SpilledVersion>> Find(TableId table, std::string_view key, Timestamp reader);

  struct Bounds {
    TableId table;
    std::string_view low = {}, high = {};  // [low, high); an empty high is above every key
    bool ascending = true;
    Timestamp reader = {};  // versions at or after it are not seen
    Lsn applied = {};       // commits before it are at the DC
    size_t most = SIZE_MAX;
  };
  // Calls `visit(key)` for the keys with a version that is seen, of each run at most `most`, the first in scan order.
  Status Gather(const Bounds& bounds, absl::FunctionRef<void(std::string_view)> visit);

 private:
  struct Kept {
    size_t number = 0;
    std::shared_ptr<const SpillBlock> block;
  };
  Result<std::shared_ptr<const SpillBlock>> Block(size_t run, size_t number);
  Status GatherUp(size_t run, const Bounds& bounds, absl::FunctionRef<void(std::string_view)> visit);
  Status GatherDown(size_t run, const Bounds& bounds, absl::FunctionRef<void(std::string_view)> visit);

  const SpilledRuns::View runs_;
  std::vector<Kept> blocks_;
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_READER_H_
