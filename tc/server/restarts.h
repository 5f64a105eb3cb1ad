// Restarts: decides whether a one-shot transaction that has lost a conflict is run again before its client is told,
// and after which pause.
//
// All its operations are here and nothing of it was shown. So another attempt is as if the client had made it,
//   without the round trip. It has a timestamp of its own (R11: drawn at its first operation).
// Most conflicts are with a writer that is about to commit, or whose thread waits for a processor. So the first
//   pauses only let others run. The later ones are random and longer, at most some hundred microseconds. If the last
//   attempt fails, or some milliseconds have passed, the client is told. A client that retries after that declares
//   its keys (tc/client/retry.h).
// Only lost conflicts are retried. A transaction is not run again if it was idle, asked for by its name, evicted for
//   the budget, or ended by the component.
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
  static constexpr int kMaxRestarts = 6;

  // Made when the first attempt has ended.
  Restarts(Runtime& runtime, Deadline deadline)
      : runtime_(runtime), deadline_(deadline), end_(runtime.Now() + kMaxTotalTime), random_(runtime.RandomSeed()) {}

  // Called after an attempt that ended with `status`. Returns true, after the pause, if there is to be another one.
  // No attempt begins at or after the deadline, because its outcome could not be waited for.
  bool Next(const Status& status) {
    if (!LostConflict(status) || done_ == kMaxRestarts) return false;
    const MonotonicTime now = runtime_.Now();
    Duration pause{0};
    if (done_ >= kYields) {
      const auto bound = static_cast<uint64_t>((kFirstPause * (1 << (done_ - kYields))).count());
      pause = Duration(static_cast<int64_t>(random_.Below(bound)));
    }
    if (now + pause >= std::min<Deadline>(deadline_, end_)) return false;
    ++done_;
    if (pause > Duration(0)) {
      runtime_.SleepUntil(now + pause);
    } else {
      runtime_.Yield();
    }
    return runtime_.Now() < deadline_;
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
      case AbortReason::kPassedBySnapshot:
        return true;
      default:
        return false;
    }
  }

 private:
  static constexpr int kYields = 2;
  static constexpr Duration kFirstPause = microseconds(50);
  static constexpr Duration kMaxTotalTime = milliseconds(5);  // of all attempts but the first and the last

  Runtime& runtime_;
  const Deadline deadline_;
  const MonotonicTime end_;
  Random random_;
  int done_ = 0;
};

}  // namespace deut::tc

#endif  // TC_SERVER_RESTARTS_H_
