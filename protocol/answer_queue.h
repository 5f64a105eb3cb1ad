// AnswerQueue: the bookkeeping of one server-side Data stream, without the stream: which requests are with the data component, which are
// answered and wait to be written, and who writes.
//
// The stream's handler thread reads, submits, and then writes what is answered by then (a component that answers inside Submit needs
// no other thread). What is answered later is written by the stream's writer thread, which is woken only for that.
// States of the writer's role: free or taken; taken under the lock by StartWriting, given up by FinishWriting. Whoever has it looks again
//   after each message, so nothing that is answered meanwhile stays behind.
// Bound: at most `max_requests` are in (submitted, or answered and not written); the handler waits in Enter until there is room,
//   so a peer that does not read its answers stops being read.
// Thread-safety: OnAnswered from any thread; Enter, Submitted and Close by the handler; WaitForWork by the writer; the rest by both.
#ifndef PROTOCOL_ANSWER_QUEUE_H_
#define PROTOCOL_ANSWER_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"

namespace deut {

class AnswerQueue final : public DataRequestListener {
 public:
  AnswerQueue(Runtime& runtime, size_t max_requests)
      : runtime_(runtime), max_requests_(max_requests), mutex_(runtime) {}

  enum class Entered : uint8_t { kYes, kWriteFirst, kTimeout, kClosed };

  // The handler is about to submit `n` requests whose listener this is: waits for room, to the deadline. kWriteFirst: there is no room,
  // but something to write.
  Entered Enter(size_t n, Deadline deadline);
  // The Submit that followed has returned.
  void Submitted();
  // Bytes of the answers that wait to be written.
  size_t ready_bytes();

  // Takes the role and what is answered. False: nothing to write, or somebody else writes; then `answered`, which all who may have the role
  // share, is not touched.
  bool StartWriting(std::vector<DataRequest*>* answered);
  // What StartWriting gave is written (or given up).
  void FinishWriting(size_t written);

  // Returns true when there is something to write and nobody on its way to write it; false when closed.
  bool WaitForWork();
  // Ends the waits; what is answered from now on is only counted.
  void Close();

  void OnAnswered(DataRequest* request) override;

 private:
  void NotifyLocked() DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  const size_t max_requests_;
  Mutex mutex_;
  bool closed_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  bool submitting_ DEUT_GUARDED_BY(mutex_) = false;  // the handler is inside Submit and will look afterwards
  size_t in_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t ready_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  std::vector<DataRequest*> ready_ DEUT_GUARDED_BY(mutex_);
  int waiters_ DEUT_GUARDED_BY(mutex_) = 0;
  bool entering_ DEUT_GUARDED_BY(mutex_) = false;  // the handler waits for room
  std::atomic<uint32_t> changes_{0};               // changed under the lock; what waits, waits on it
};

}  // namespace deut

#endif  // PROTOCOL_ANSWER_QUEUE_H_
