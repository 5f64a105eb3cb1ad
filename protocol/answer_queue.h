// AnswerQueue: the bookkeeping of one server-side Data stream, without the stream: which requests are with the data component, which are
// answered and wait to be written, which thread writes, and whether the stream's handler is parked. No method blocks.
//
// States of the writer's role: free or taken, changed under the lock. StartWriting or Answered takes it, with all that is answered; the
//   holder writes this, message by message, and gives the role back with FinishWriting. Then it calls StartWriting again, so nothing that
//   was answered meanwhile is left behind.
// Answered leaves the role alone while the handler is inside Submit: the handler takes the role afterwards, and writes all of the group's
//   answers in one message.
// Bound: at most `max_requests` are in (submitted, or answered and not written). If there is no room, Enter parks the handler, so a peer
//   that does not read its answers is not read either. FinishWriting or Close ends the parking, and tells its caller, who sends the
//   handler on. Exactly one caller is told.
// Thread-safety: Answered, FinishWriting, StartWriting and Close from any thread; the rest by the handler.
#ifndef PROTOCOL_ANSWER_QUEUE_H_
#define PROTOCOL_ANSWER_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"

namespace deut {

class AnswerQueue {
 public:
  AnswerQueue(Runtime& runtime, size_t max_requests) : max_requests_(max_requests), mutex_(runtime) {}

  enum class Entered : uint8_t { kYes, kWriteFirst, kParked, kClosed };

  // The handler is about to submit `n` requests. kWriteFirst: there is no room, but something to write. kParked: there is no room.
  // REQUIRES: 0 < n <= max_requests.
  Entered Enter(size_t n);
  // The Submit that followed has returned.
  void Submitted();
  // Bytes of the answers that wait to be written.
  size_t ready_bytes();
  // Everything that is answered is written, or the queue is closed. False: the handler is parked until then.
  bool Drained();

  // Takes the role and what is answered. False: there is nothing to write, or another thread writes, or the queue is closed; then
  // `answered`, which all who may have the role share, is not touched.
  bool StartWriting(std::vector<DataRequest*>* answered);
  // What was taken is written (or given up). True: the handler is no longer parked, and the caller sends it on.
  bool FinishWriting(size_t written);

  // From now on nothing is written, and what is answered is forgotten. True: as for FinishWriting.
  bool Close();

  // The component has answered. True: the caller has the role, as from StartWriting. `taken` is called under the lock before that: the
  // request's stream is certainly still there, as another thread needs the lock to write the request.
  template <typename Taken>
  bool Answered(DataRequest* request, std::vector<DataRequest*>* answered, const Taken& taken) {
    MutexLock lock(mutex_);
    if (closed_) return false;
    ready_.push_back(request);
    ready_bytes_ += request->answer.bytes().size();
    if (writing_ || submitting_) return false;
    TakeLocked(answered);
    taken();
    return true;
  }

 private:
  void TakeLocked(std::vector<DataRequest*>* answered) DEUT_REQUIRES(mutex_);
  // Ends the parking if what the handler waits for is there.
  bool UnparkLocked() DEUT_REQUIRES(mutex_);

  const size_t max_requests_;
  Mutex mutex_;
  bool closed_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  bool submitting_ DEUT_GUARDED_BY(mutex_) = false;  // the handler is inside Submit and will look afterwards
  size_t in_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t ready_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  std::vector<DataRequest*> ready_ DEUT_GUARDED_BY(mutex_);
  bool parked_ DEUT_GUARDED_BY(mutex_) = false;
  size_t wanted_ DEUT_GUARDED_BY(mutex_) =
      0;  // room that the parked handler waits for; 0: that nothing is left to write
};

}  // namespace deut

#endif  // PROTOCOL_ANSWER_QUEUE_H_
