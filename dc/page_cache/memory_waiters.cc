#include "dc/page_cache/memory_waiters.h"

namespace deut::dc {

bool MemoryWaiters::AdmitsWithoutProgress() {
  return no_progress_.load(std::memory_order_relaxed) && admissions_left_.fetch_sub(1, std::memory_order_relaxed) > 0;
}

void MemoryWaiters::Wake() {
  progress_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(progress_);
  if (on_progress_ != nullptr) on_progress_();
}

void MemoryWaiters::ReportRoom() {
  // `no_progress_` is cleared first: a thread that reads exhausted() as false then sees it cleared, and waits again
  // when memory is full.
  no_progress_.store(false, std::memory_order_relaxed);
  exhausted_.store(false, std::memory_order_release);
  Wake();
}

void MemoryWaiters::ReportAttempt(bool freed, bool exceeded) {
  admissions_left_.store(kMaxAdmissionsPerAttempt, std::memory_order_relaxed);
  no_progress_.store(!freed, std::memory_order_relaxed);
  exhausted_.store(!freed && exceeded, std::memory_order_relaxed);
  Wake();
}

}  // namespace deut::dc
