// SpillReader: one operation's access to the spilled runs (rule S9): the version of a key that a reader sees, and the keys within a scan's bounds. It
// holds a block of each run that it has read.
// Costs, with N runs. A find looks at up to N filters, a cache miss each. It reads a block of each run that has the
//   key, of each run without a filter, and of about one in a hundred of the others. It passes over runs whose
//   versions are all too new, or older than the one found. A gather reads at least one block of each run, since a
//   filter says nothing about a range.
// Errors: those of the files, and CORRUPTION; they fail this operation only. Thread-safety: one thread. No guard is needed.
// Ownership: shares the runs, so their files stay while it exists.
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
  // REQUIRES: `runs` was loaded after the chains, or the postings and runs of the gather, had been read.
  explicit SpillReader(SpilledRuns::View runs) : runs_(std::move(runs)), blocks_(runs_.size()) {}

  bool empty() const { return runs_.empty(); }

  // Finds the newest version of the key with a timestamp below `reader`. The `key` of the result is the argument.
  Result<std::optional<SpilledVersion>> Find(TableId table, std::string_view key, Timestamp reader);

  struct Bounds {
    TableId table;
    std::string_view low = {}, high = {};  // [low, high); an empty high is above every key
    bool ascending = true;
    Timestamp reader = {};  // versions at or after it are not seen
    Lsn applied = {};       // commits before it are skipped: the DC has them
    size_t most = SIZE_MAX;
  };
  // Calls `visit(key)` for the keys with a visible version: of each run at most `most`, the first in scan order.
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
