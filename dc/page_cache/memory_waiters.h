// MemoryWaiters: the threads that wait for free memory, and the results of the evictor's attempts to free some. Loads
// that wait without a thread (page_loader.h) learn of progress by a callback.
//
// If nothing can be evicted, waiting threads must not wait for ever. So after each attempt that has freed nothing,
// kMaxAdmissionsPerAttempt of them proceed. They bring in data, but memory does not grow without limit.
// Races. A thread that waits loads progress() before it measures the memory. If the evictor frees memory in between,
//   it has changed the number, and Wait returns at once.
//   A thread that sees exhausted() turn false also sees that no attempt has failed since. So it waits again when
//   memory is full.
// Thread-safety: Wake, ReportRoom and ReportAttempt by one thread, the evictor's; the other methods from any thread.
// Ownership: borrows the runtime.
#ifndef DC_PAGE_CACHE_MEMORY_WAITERS_H_
#define DC_PAGE_CACHE_MEMORY_WAITERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/runtime/runtime.h"

namespace deut::dc {

class MemoryWaiters {
 public:
  static constexpr int kMaxAdmissionsPerAttempt = 64;

  // `on_progress`: called by the evictor's thread whenever it wakes the threads that wait; may be empty.
  explicit MemoryWaiters(Runtime& runtime, std::function<void()> on_progress = {})
      : runtime_(runtime), on_progress_(std::move(on_progress)) {}
  MemoryWaiters(const MemoryWaiters&) = delete;
  MemoryWaiters& operator=(const MemoryWaiters&) = delete;

  // --- For threads that wait.
  uint32_t progress() const { return progress_.load(std::memory_order_seq_cst); }
  // Blocks while progress() equals `seen`, at most until the deadline. It may return early for no reason.
  void Wait(uint32_t seen, Deadline deadline) { runtime_.Wait(progress_, seen, deadline); }
  // True: waiting is useless, and the calling thread is one of those that proceed before the next attempt.
  bool AdmitsWithoutProgress();

  // --- For the evictor. Each method wakes all threads that wait.
  // Some memory was freed.
  void Wake();
  // Memory is below the high mark.
  void ReportRoom();
  // An attempt has ended. `freed`: it has freed something. `exceeded`: the budget is exceeded all the same.
  void ReportAttempt(bool freed, bool exceeded);

  // True if the last attempt has freed nothing although the budget is exceeded.
  bool exhausted() const { return exhausted_.load(std::memory_order_acquire); }

 private:
  Runtime& runtime_;
  const std::function<void()> on_progress_;
  std::atomic<uint32_t> progress_{0};     // changes wake the threads that wait
  std::atomic<bool> no_progress_{false};  // the last attempt has freed nothing
  std::atomic<int> admissions_left_{0};   // while no_progress_ is set; negative: none
  std::atomic<bool> exhausted_{false};
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_MEMORY_WAITERS_H_
