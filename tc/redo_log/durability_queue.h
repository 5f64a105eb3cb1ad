// DurabilityQueue: the registered callbacks for durable records, by LSN; a registered callback is called a waiter.
// Registration is latch-free. The thread that writes the log (writer_role.h), called "the log thread" here, answers.
//
// States of a waiter: its owner's -> on the stack (Register won the compare-and-swap) -> in the heap (taken by the
// log thread) -> answered.
// Steps. Register: next = top; top: next -> waiter (compare-and-swap; the loser retries); then the caller notifies
// the log thread.
//   Collect (log thread): top -> empty (exchange; takes all), then into a heap by LSN. Answer: the waiters below the
//   durable LSN, in LSN order.
//   Close: top -> closed (exchange); every later Register fails.
// Thread-safety: Register from any thread; the rest by the log thread only (Close: or after it has ended). Ownership:
// waiters belong to their registrars.
#ifndef TC_REDO_LOG_DURABILITY_QUEUE_H_
#define TC_REDO_LOG_DURABILITY_QUEUE_H_

#include <atomic>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/redo_log/durability_callback.h"

namespace deut::tc {

class DurabilityQueue {
 public:
  DurabilityQueue() = default;
  DurabilityQueue(const DurabilityQueue&) = delete;
  DurabilityQueue& operator=(const DurabilityQueue&) = delete;

  // Returns false if closed: the waiter was not taken.
  bool Register(Lsn lsn, DurabilityCallback* waiter);

  // True if a waiter was registered since the last Collect.
  bool HasNew() const { return top_.load(std::memory_order_seq_cst) != nullptr; }

  // Answers OK to every waiter whose record lies below `durable`. If `others` is not OK, answers that to all other
  // waiters. Returns the number of answers.
  size_t CollectAndAnswer(Lsn durable, const Status& others);

  // Answers all remaining waiters, and refuses later ones.
  void Close(Lsn durable, const Status& others);

 private:
  class Closed;
  static DurabilityCallback* ClosedMark();
  void MoveToHeap(DurabilityCallback* list);
  size_t Answer(Lsn durable, const Status& others);

  std::atomic<DurabilityCallback*> top_{nullptr};
  std::vector<DurabilityCallback*> heap_;  // lowest LSN first (std::push_heap by greater)
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_DURABILITY_QUEUE_H_
