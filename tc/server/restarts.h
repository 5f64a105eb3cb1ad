// Restarts: whether a one-shot transaction that has lost a conflict is run again before its client is told, and after what pause.
//
// All its operations are here and nothing of it was shown, so another attempt, with a timestamp of its own (R11: drawn at its first operation), is as
// if the client had made it, without the way there and back. Most conflicts are with a writer that is about to commit, or whose thread waits for a
// processor: so the first pauses let others run, and the later ones are random and longer, at most some hundred microseconds. Whoever has not
// come through by then is told; a client that goes on then declares its keys (tc/client/retry.h).
// Not for what is no conflict: whoever was idle, asked about, in the way of the budget, or cut off by the end of the component.
// Thread-safety: one object for each transaction, on its session's thread.
#ifndef TC_SERVER_RESTARTS_H_
#define TC_SERVER_RESTARTS_H_

#include <algorithm>

#include "common/base/abort_reason.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"

namespace deut::tc {

class Restarts {
 public:
  static constexpr int kMost = 6;

  Restarts(Runtime& runtime, Deadline deadline) : runtime_(runtime), deadline_(deadline) {}

  // After an attempt that ended with `status`: true, once the pause is over, if there is to be another. `seed` makes pauses differ.
  bool Next(const Status& status, uint64_t seed) {
    if (!LostConflict(status) || done_ == kMost) return false;
    const MonotonicTime now = runtime_.Now();
    if (now >= deadline_) return false;
    ++done_;
    if (done_ <= kYields) {
      runtime_.Yield();
    } else {
      const auto bound = static_cast<uint64_t>((kFirstPause * (1 << (done_ - kYields - 1))).count());
      runtime_.SleepUntil(std::min<Deadline>(deadline_, now + Duration(static_cast<int64_t>(Mix64(seed) % bound))));
    }
    return true;
  }

  int done() const { return done_; }

  static bool LostConflict(const Status& status) {
    if (status.abort() == nullptr) return false;
    switch (status.abort()->reason) {
      case AbortReason::kWriteUncommitted:
      case AbortReason::kWriteLater:
      case AbortReason::kRecordReadLater:
      case AbortReason::kBucketFloor:
      case AbortReason::kRangeReadLater:
      case AbortReason::kReadUncommitted:
      case AbortReason::kRangeWriter:
        return true;
      default:
        return false;
    }
  }

 private:
  static constexpr int kYields = 2;
  static constexpr Duration kFirstPause = microseconds(50);

  Runtime& runtime_;
  const Deadline deadline_;
  int done_ = 0;
};

}  // namespace deut::tc

#endif  // TC_SERVER_RESTARTS_H_
