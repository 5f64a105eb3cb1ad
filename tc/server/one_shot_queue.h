// OneShotQueue: the calls of one stream of one-shot transactions that wait for a thread (one_shot_workers.h).
// A call is examined before it is run: the thread that takes it up looks which reads it needs, and may begin it.
// Invariant: the begun calls are the first in the queue. A begun call waits for the DC, never for another begun call. So
// all of them end before a thread runs anything that might wait for their end, even if there is no other thread.
// Thread-safety: none; the workers' lock guards it. Ownership: owns the begun transactions, borrows the batches.
#ifndef TC_SERVER_ONE_SHOT_QUEUE_H_
#define TC_SERVER_ONE_SHOT_QUEUE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_messages.h"

namespace deut::tc {

struct QueuedOneShot {
  OneShotBatch* batch = nullptr;
  int index = 0;
  bool examined = false;  // its reads have been examined
  bool held = false;      // held back until its reads are answered
  std::unique_ptr<BegunOneShot> begun = nullptr;
};

class OneShotQueue {
 public:
  bool empty() const { return calls_.empty(); }
  // The first call can be run. False if the queue is empty.
  bool FirstIsExamined() const { return !calls_.empty() && calls_.front().examined; }
  // There are begun calls.
  bool HasBegun() const { return !calls_.empty() && calls_.front().begun != nullptr; }

  // Adds all calls of the batch.
  void Add(OneShotBatch* batch);
  // REQUIRES: it is not empty.
  QueuedOneShot TakeFirst();
  // Takes the calls in front that are not examined, at most `most`. They count as examined from now on.
  std::vector<QueuedOneShot> TakeUnexamined(size_t most);
  // Puts calls in front, the begun ones before all others.
  void PutFirst(absl::Span<QueuedOneShot> calls);
  // Ends the begun transactions. Their calls stay, and begin again when they are run.
  void EndBegun();
  // Calls that are dropped are never run.
  static void Drop(absl::Span<const QueuedOneShot> calls);
  void DropAll();

 private:
  std::deque<QueuedOneShot> calls_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_ONE_SHOT_QUEUE_H_
