// SpillMerge: two spilled runs becoming one, some versions at a time; it holds a block of each.
// S6: of a key a version is seen by who reads between it and the next one above it, so it stays if anybody does; the newest one here stays always, as
//   the next one is elsewhere. Who reads is asked once, when the merge begins: who begins later reads what those did, or all that is newer
//   (ActiveTransactions::RoundForReaders), so what nobody needs then nobody needs later.
// Thread-safety: one thread. Errors: those of reading and writing; then it is to be given up, and its file goes with it.
#ifndef TC_SPILL_SPILL_MERGE_H_
#define TC_SPILL_SPILL_MERGE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/spill/spilled_run.h"

namespace deut::tc {

class SpillMerge {
 public:
  using RunPointer = std::shared_ptr<const SpilledRun>;

  // Whether anybody reads at a timestamp in (after, to]; none: everybody does.
  using AnyReader = std::function<bool(Timestamp after, Timestamp to)>;

  // `a` was committed before `b`. Commits before `applied` are left out, and what nobody reads.
  SpillMerge(RunPointer a, RunPointer b, Lsn applied, AnyReader any_reader, SpilledRun::Builder merged)
      : a_{std::move(a)},
        b_{std::move(b)},
        applied_(applied),
        any_reader_(std::move(any_reader)),
        merged_(std::move(merged)) {}

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

  // S6. To be asked of each version in order.
  bool IsRead(const SpilledVersion& version);

  Cursor a_, b_;
  const Lsn applied_;
  const AnyReader any_reader_;
  SpilledRun::Builder merged_;
  // The version looked at last.
  TableId last_table_;
  std::string last_key_;
  Timestamp last_timestamp_;  // 0: none was
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_MERGE_H_
