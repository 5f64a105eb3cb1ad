// SpillMerge: two spilled runs becoming one, some versions at a time; it holds a block of each.
// Thread-safety: one thread. Errors: those of reading and writing; then it is to be given up, and its file goes with it.
#ifndef TC_SPILL_SPILL_MERGE_H_
#define TC_SPILL_SPILL_MERGE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/spill/spilled_run.h"

namespace deut::tc {

class SpillMerge {
 public:
  using RunPointer = std::shared_ptr<const SpilledRun>;

  // `a` was committed before `b`. Commits before `applied` are left out.
  SpillMerge(RunPointer a, RunPointer b, Lsn applied, SpilledRun::Builder merged)
      : a_{std::move(a)}, b_{std::move(b)}, applied_(applied), merged_(std::move(merged)) {}

  const RunPointer& a() const { return a_.run; }
  const RunPointer& b() const { return b_.run; }

  // Looks at no more than `versions`, and counts them off. True: nothing is left.
  Result<bool> Advance(size_t* versions);
  // Null: nothing was left in.
  Result<RunPointer> Finish();

 private:
  struct Cursor {
    RunPointer run;
    size_t next_block = 0;
    std::shared_ptr<const SpillBlock> block = nullptr;
    size_t next = 0;

    // The version that it stands at; null at the end.
    Result<const SpilledVersion*> Get();
  };

  Cursor a_, b_;
  const Lsn applied_;
  SpilledRun::Builder merged_;
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_MERGE_H_
