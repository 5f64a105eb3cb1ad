// WriterRole: decides which thread writes the log's end, and puts the log thread to sleep and wakes it. The right to
// write is the writer role. One thread at a time has it: the log thread while it is awake or has transfers in flight;
// otherwise, for one write, a committer that leads.
//
// States of state_
//   kAwake      the log thread has the role and will look at everything before it sleeps
//   kIdle       no thread has the role; the log thread sleeps until it is woken, and every append wakes it
//   kLingering  no thread has the role; the log thread wakes by itself at its deadline. An append wakes it only when
//               it fills a block; a thread with an urgent record wakes it at once. A committer may lead
//   kInReap     the log thread has the role and waits inside its IoQueue's Reap, with a deadline. Appends do not wake
//               it; a thread with an urgent record does
//   kLed        a committer has the role; the log thread sleeps, even beyond its deadline
//   kLedThenLogThread
//               as kLed, and the log thread gets the role next
// Steps
//   sleep   log thread: kAwake -> kIdle, kLingering or kInReap (store); look for work once more; sleep
//   wake    notifier: publish work; load state_; kIdle, kLingering, kInReap -> kAwake (compare-and-swap, the winner
//           wakes), kLed -> kLedThenLogThread. All are sequentially consistent, so either the sleeper sees the work, or
//           the notifier sees the state
//   return  log thread, at its deadline or when the look found work: kIdle, kLingering -> kAwake. In kLed it sleeps
//           for another `linger`; in kLedThenLogThread it waits for kAwake
//   lead    committer: kLingering -> kLed (compare-and-swap; the loser waits for the log thread instead)
//   end     committer: kLed -> kLingering. If that fails, the state is kLedThenLogThread: -> kAwake, and wake the log
//           thread
// From its store of kLingering until the state is kAwake again, the log thread touches nothing that belongs to the
// role, because a committer may have it.
// A record that is appended during a led write, and that no thread waits for, is written by the next leader, or by
// the log thread at its deadline.
//   The deadline begins anew at a led write that took all records, because nothing older is left, and while a led
//   write is in flight. So no record waits longer than twice `linger` and one led write.
// A late wake is a spurious return; the log thread always looks again.
// Thread-safety: Notify, NotifyAppended, TryLead, EndLead from any thread; the rest by the log thread. Ownership:
// owns nothing; the runtime and the queue outlive it.
#ifndef TC_REDO_LOG_WRITER_ROLE_H_
#define TC_REDO_LOG_WRITER_ROLE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut::tc {

class WriterRole {
 public:
  // `queue` is the log thread's, or null. Both outlive the role.
  WriterRole(Runtime& runtime, IoQueue* queue) : runtime_(runtime), queue_(queue) {}

  // Wakes the log thread, because there is work for it now.
  void Notify() {
    if (state_.load(std::memory_order_seq_cst) != kAwake) WakeUp();
  }

  // A record that ends at `end` was appended, and no thread waits for it yet.
  void NotifyAppended(Lsn end) {
    const uint32_t state = state_.load(std::memory_order_seq_cst);
    if (state == kIdle || (state == kLingering && end.value >= full_at_.load(std::memory_order_relaxed))) WakeUp();
  }

  // Sleeps until any notification, unless `work_waits()` finds work after all. `work_waits` must not look at state of
  // the role.
  template <typename Check>
  void SleepIdle(Check work_waits) {
    state_.store(kIdle, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    Return(
        DEUT_OMITTED("log.look_before_sleep") || !work_waits(), kNoDeadline, Duration(0), [](Duration) {}, Duration(0));
  }

  // As SleepIdle, but only until `deadline`, or until records up to `full_at` were appended. Committers may lead
  // meanwhile. `linger`: the new sleep after a led write that took all records. `stuck(for_how_long)` is called each
  // time that a led write has taken another `stuck_after` without ending.
  template <typename Check, typename Stuck>
  void SleepLingering(Check work_waits, Lsn full_at, Deadline deadline, Duration linger, Stuck stuck,
                      Duration stuck_after) {
    full_at_.store(full_at.value, std::memory_order_relaxed);
    state_.store(kLingering, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    Return(!work_waits(), deadline, linger, stuck, stuck_after);
  }

  // For a thread with transfers in flight: also returns when some of them have completed.
  template <typename Check>
  void SleepInReap(Check work_waits, std::vector<IoRequest*>* completed, Deadline deadline) {
    state_.store(kInReap, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    queue_->Reap(completed, work_waits() ? MonotonicTime::min() : deadline);
    state_.store(kAwake, std::memory_order_seq_cst);
  }

  // Led writes during which another thread with an urgent record asked for the log thread.
  uint64_t contended_leads() const { return contended_leads_.load(std::memory_order_relaxed); }

  // True: the caller has the role until EndLead.
  bool TryLead() {
    uint32_t state = kLingering;
    if (state_.load(std::memory_order_seq_cst) != kLingering || DEUT_CAS_FAILS("redo_log.signal.lead")) return false;
    return state_.compare_exchange_strong(state, kLed, std::memory_order_seq_cst);
  }
  // `took_all`: every record that was complete when the lead began is written. `hand_over`: the log thread has work
  // to do.
  void EndLead(bool took_all, bool hand_over) {
    if (took_all) leads_that_took_all_.fetch_add(1, std::memory_order_seq_cst);
    leads_ended_.fetch_add(1, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_end");
    uint32_t state = kLed;
    if (!hand_over && state_.compare_exchange_strong(state, kLingering, std::memory_order_seq_cst)) return;
    if (state == kLedThenLogThread) contended_leads_.fetch_add(1, std::memory_order_relaxed);
    state_.store(kAwake, std::memory_order_seq_cst);
    runtime_.Wake(state_, 1);
  }

 private:
  static constexpr uint32_t kAwake = 0, kIdle = 1, kLingering = 2, kInReap = 3, kLed = 4, kLedThenLogThread = 5;

  void WakeUp() {
    for (;;) {
      uint32_t state = state_.load(std::memory_order_seq_cst);
      if (state == kAwake || state == kLedThenLogThread) return;
      DEUT_POINT("redo_log.signal.before_exchange");
      const uint32_t to = state == kLed ? kLedThenLogThread : kAwake;
      if (!state_.compare_exchange_strong(state, to, std::memory_order_seq_cst)) continue;
      if (state == kIdle || state == kLingering) runtime_.Wake(state_, 1);
      if (state == kInReap) queue_->Wake();
      return;
    }
  }

  // Sleeps if `sleep` is true, and returns with the role.
  template <typename Stuck>
  void Return(bool sleep, Deadline deadline, Duration linger, Stuck stuck, Duration stuck_after) {
    uint64_t took_all_before = leads_that_took_all_.load(std::memory_order_seq_cst);
    Deadline stuck_at = kNoDeadline;  // for the led write with number stuck_lead
    uint64_t stuck_lead = 0;
    MonotonicTime lead_seen{};  // when that write was first seen in flight
    for (;;) {
      uint32_t state = state_.load(std::memory_order_seq_cst);
      if (state == kAwake) return;
      if (state == kIdle || state == kLingering) {
        if (sleep && runtime_.Wait(state_, state, deadline)) continue;
        const uint64_t took_all_now = leads_that_took_all_.load(std::memory_order_seq_cst);
        if (sleep && took_all_now != took_all_before) {
          took_all_before = took_all_now;
          deadline = runtime_.Now() + linger;
        } else {
          state_.compare_exchange_strong(state, kAwake, std::memory_order_seq_cst);
        }
        continue;
      }
      // A committer leads. Work that the look found was published before the lead began; a later thread with an urgent record
      // asks for the role.
      if (state == kLedThenLogThread && DEUT_OMITTED("D2.one_writer")) return;
      const MonotonicTime now = runtime_.Now();
      const uint64_t lead = leads_ended_.load(std::memory_order_seq_cst);
      if (stuck_at == kNoDeadline || lead != stuck_lead) {
        stuck_lead = lead;
        lead_seen = now;
        stuck_at = now + stuck_after;
      } else if (now >= stuck_at) {
        stuck(now - lead_seen);
        stuck_at = now + stuck_after;
      }
      DEUT_POINT("redo_log.signal.before_await_lead");
      runtime_.Wait(state_, state, std::min(now + linger, stuck_at));
    }
  }

  Runtime& runtime_;
  IoQueue* const queue_;
  std::atomic<uint32_t> state_{kAwake};
  std::atomic<uint64_t> full_at_{0};
  std::atomic<uint64_t> leads_ended_{0};          // led writes that have ended
  std::atomic<uint64_t> leads_that_took_all_{0};  // led writes that took all complete records
  std::atomic<uint64_t> contended_leads_{0};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_WRITER_ROLE_H_
