#include "protocol/answer_queue.h"

#include "common/base/check.h"

namespace deut {

// Wakes whoever waits; costs nothing while nobody does.
void AnswerQueue::NotifyLocked() {
  if (waiters_ == 0) return;
  changes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(changes_);
}

AnswerQueue::Entered AnswerQueue::Enter(size_t n, Deadline deadline) {
  DEUT_CHECK(n <= max_requests_);
  for (;;) {
    uint32_t changes = 0;
    {
      MutexLock lock(mutex_);
      if (closed_) return Entered::kClosed;
      if (in_ + n <= max_requests_) {
        in_ += n;
        submitting_ = true;
        return Entered::kYes;
      }
      if (!ready_.empty() && !writing_) return Entered::kWriteFirst;
      ++waiters_;
      entering_ = true;
      changes = changes_.load(std::memory_order_seq_cst);
    }
    const bool in_time = runtime_.Wait(changes_, changes, deadline);
    MutexLock lock(mutex_);
    --waiters_;
    entering_ = false;
    if (!in_time) return Entered::kTimeout;
  }
}

void AnswerQueue::Submitted() {
  MutexLock lock(mutex_);
  submitting_ = false;
}

size_t AnswerQueue::ready_bytes() {
  MutexLock lock(mutex_);
  return ready_bytes_;
}

bool AnswerQueue::StartWriting(std::vector<DataRequest*>* answered) {
  MutexLock lock(mutex_);
  if (writing_ || ready_.empty()) return false;
  writing_ = true;
  answered->clear();
  answered->swap(ready_);
  ready_bytes_ = 0;
  return true;
}

void AnswerQueue::FinishWriting(size_t written) {
  MutexLock lock(mutex_);
  DEUT_CHECK(writing_ && written <= in_);
  writing_ = false;
  in_ -= written;
  // Whoever had the role looks again by himself; so there is news for him only who waits for room.
  if (entering_) NotifyLocked();
}

bool AnswerQueue::WaitForWork() {
  for (;;) {
    uint32_t changes = 0;
    {
      MutexLock lock(mutex_);
      if (closed_) return false;
      if (!ready_.empty() && !writing_ && !submitting_) return true;
      ++waiters_;
      changes = changes_.load(std::memory_order_seq_cst);
    }
    runtime_.Wait(changes_, changes, kNoDeadline);
    MutexLock lock(mutex_);
    --waiters_;
  }
}

void AnswerQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  NotifyLocked();
}

void AnswerQueue::OnAnswered(DataRequest* request) {
  MutexLock lock(mutex_);
  ready_.push_back(request);
  ready_bytes_ += request->answer.bytes().size();
  if (!writing_ && !submitting_) NotifyLocked();
}

}  // namespace deut
