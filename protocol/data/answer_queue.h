// AnswerQueue: the bookkeeping of one server-side Data stream, without the stream itself. It knows which requests the
// data component has, which answers wait to be written, which thread writes, and whether the stream's handler is
// parked. No method blocks.
//
// The writer's role is free or taken; it changes under the lock. StartWriting or Answered takes the role together with
// all ready answers. The holder writes them, message by message, and gives the role back with FinishWriting. Then it
// calls StartWriting again, so that no answer that became ready meanwhile is left behind.
// While the handler is inside Submit, Answered leaves the role alone. The handler takes it afterwards and writes all
// answers of the group in one message.
// Bound: at most `max_requests` are in the queue (submitted, or answered and not written). If there is no room, Enter
// parks the handler, so the server stops reading a peer that does not read its answers. FinishWriting or Close unparks
// the handler and tells exactly one caller, which resumes it.
// Thread-safety: any thread may call Answered, FinishWriting, StartWriting and Close; the handler alone calls the rest.
// Ownership: borrows the requests.
#ifndef PROTOCOL_DATA_ANSWER_QUEUE_H_
#define PROTOCOL_DATA_ANSWER_QUEUE_H_

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

  // The handler calls it before it submits `n` requests. kWriteFirst: there is no room, but there are answers to write.
  // kParked: there is no room. REQUIRES: 0 < n <= max_requests.
  Entered Enter(size_t n);
  // The handler calls it after the Submit that followed Enter has returned.
  void Submitted();
  // The bytes of the answers that wait to be written.
  size_t ready_bytes();
  // True: all answers are written, or the queue is closed. False: the handler is parked until then.
  bool Drained();

  // Takes the role and all ready answers. False: there is nothing to write, another thread writes, or the queue is
  // closed. In that case `answered`, which all holders of the role share, is not touched.
  bool StartWriting(std::vector<DataRequest*>* answered);
  // The holder has written the answers that it took, or given them up. True: the handler is no longer parked, and the
  // caller resumes it.
  bool FinishWriting(size_t written);

  // From now on no answer is written, and ready answers are dropped. True: as for FinishWriting.
  bool Close();

  // The component has answered. True: the caller has the role, as from StartWriting. `on_role` runs under the lock before
  // that. The request's stream certainly still exists then, because another thread needs the lock before it can write
  // the request.
  template <typename OnRole>
  bool Answered(DataRequest* request, std::vector<DataRequest*>* answered, const OnRole& on_role) {
    MutexLock lock(mutex_);
    if (closed_) return false;
    ready_.push_back(request);
    ready_bytes_ += request->answer.bytes().size();
    if (writing_ || submitting_) return false;
    StartWritingLocked(answered);
    on_role();
    return true;
  }

 private:
  void StartWritingLocked(std::vector<DataRequest*>* answered) DEUT_REQUIRES(mutex_);
  // Ends the parking if the handler's condition holds.
  bool UnparkLocked() DEUT_REQUIRES(mutex_);

  const size_t max_requests_;
  Mutex mutex_;
  bool closed_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  bool submitting_ DEUT_GUARDED_BY(mutex_) = false;  // the handler is in Submit and looks for answers afterwards
  size_t outstanding_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t ready_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  std::vector<DataRequest*> ready_ DEUT_GUARDED_BY(mutex_);
  bool parked_ DEUT_GUARDED_BY(mutex_) = false;
  size_t awaited_room_ DEUT_GUARDED_BY(mutex_) =
      0;  // room that the parked handler waits for; 0: it waits until no answer is left to write
};

}  // namespace deut

#endif  // PROTOCOL_DATA_ANSWER_QUEUE_H_
