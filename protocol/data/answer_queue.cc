#include "protocol/data/answer_queue.h"

#include <utility>

#include "common/base/check.h"

namespace deut {

AnswerQueue::Entered AnswerQueue::Enter(size_t n) {
  DEUT_CHECK(n != 0 && n <= max_requests_);
  MutexLock lock(mutex_);
  if (closed_) return Entered::kClosed;
  if (outstanding_ + n <= max_requests_) {
    outstanding_ += n;
    submitting_ = true;
    return Entered::kYes;
  }
  if (!ready_.empty() && !writing_) return Entered::kWriteFirst;
  // Either another thread writes, or the component has all requests in the queue and Answered will write. FinishWriting
  // follows in both cases.
  parked_ = true;
  awaited_room_ = n;
  return Entered::kParked;
}

void AnswerQueue::Submitted() {
  MutexLock lock(mutex_);
  submitting_ = false;
}

size_t AnswerQueue::ready_bytes() {
  MutexLock lock(mutex_);
  return ready_bytes_;
}

bool AnswerQueue::Drained() {
  MutexLock lock(mutex_);
  if (closed_ || (!writing_ && ready_.empty())) return true;
  parked_ = true;
  awaited_room_ = 0;
  return false;
}

void AnswerQueue::StartWritingLocked(std::vector<DataRequest*>* answered) {
  writing_ = true;
  answered->clear();
  answered->swap(ready_);
  ready_bytes_ = 0;
}

bool AnswerQueue::StartWriting(std::vector<DataRequest*>* answered) {
  MutexLock lock(mutex_);
  if (closed_ || writing_ || ready_.empty()) return false;
  StartWritingLocked(answered);
  return true;
}

bool AnswerQueue::FinishWriting(size_t written) {
  MutexLock lock(mutex_);
  DEUT_CHECK(writing_ && written <= outstanding_);
  writing_ = false;
  outstanding_ -= written;
  return UnparkLocked();
}

bool AnswerQueue::UnparkLocked() {
  const bool there = closed_ || (awaited_room_ == 0 ? ready_.empty() : outstanding_ + awaited_room_ <= max_requests_);
  return there && std::exchange(parked_, false);
}

bool AnswerQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  return UnparkLocked();
}

}  // namespace deut
