// PostedWork: the work that was posted to an executor (rpc_executor.h) and waits for a thread. It also counts the
// threads that are at something that could block, and says whether one more may begin such a thing.
// Two kinds of work wait in queues of their own: single calls, and all else. `threads_for_single_calls` threads are kept
// for single calls, and the last thread for events that do not block. An executor with fewer threads still lets one
// thread at a time begin something that could block.
// Thread-safety: none; the executor's lock guards it.
#ifndef PROTOCOL_RPC_POSTED_WORK_H_
#define PROTOCOL_RPC_POSTED_WORK_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace deut {

class PostedWork {
 public:
  using Work = std::function<void()>;

  PostedWork(int threads, int threads_for_single_calls)
      : max_single_(std::max(1, threads - 1)), max_(std::max(1, threads - 1 - threads_for_single_calls)) {}

  void Add(Work work) { work_.push_back(std::move(work)); }
  void AddSingle(Work work) { singles_.push_back(std::move(work)); }

  // One more thread may begin an event, or work, that could block.
  bool MayBegin() const { return may_block_ < max_; }
  // One more thread may begin a single call.
  bool MayBeginSingle() const { return may_block_ < max_single_; }
  // There is work that may begin.
  bool Waits() const { return SingleWaits() || (!work_.empty() && MayBegin()); }

  // Single calls go first: they are few, and the next ones arrive only when a thread leads, which no thread does before
  // all posted work is run. REQUIRES: Waits().
  Work Take() {
    std::deque<Work>& queue = SingleWaits() ? singles_ : work_;
    Work work = std::move(queue.front());
    queue.pop_front();
    return work;
  }

  // A thread begins something that could block, and ends it.
  void Begin() { ++may_block_; }
  void End() { --may_block_; }
  // The number of threads between Begin and End.
  int may_block() const { return may_block_; }

 private:
  bool SingleWaits() const { return !singles_.empty() && MayBeginSingle(); }

  const int max_single_;
  const int max_;
  int may_block_ = 0;
  std::deque<Work> work_;
  std::deque<Work> singles_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_POSTED_WORK_H_
