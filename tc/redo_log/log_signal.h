// LogSignal: who works on the log's end (the role of the log thread), how the log thread sleeps and how it is woken. One thread at a time
// has the role: the log thread while it is awake or has transfers under way, or else, for one write, a committer that leads.
//
// States of state_
//   kAwake      the log thread has the role and will look at everything before it sleeps
//   kIdle       nobody has it; the log thread sleeps until it is woken: every append wakes it
//   kLingering  nobody has it; the log thread wakes by itself when its time is up. Appends wake it only when they fill a block; whoever
//               is in a hurry does at once. A committer may lead
//   kInReap     the log thread has it, and waits inside its IoQueue's Reap, not for ever. Appends do not wake it; who is in a hurry does
//   kLed        a committer has it; the log thread sleeps (its time may run out meanwhile: it sleeps on)
//   kLedWanted  the same, and the log thread is to have it next
// Steps
//   sleep   log thread: kAwake -> kIdle, kLingering or kInReap (store); look for work once more; sleep
//   wake    notifier: publish work; load state_; kIdle, kLingering, kInReap -> kAwake (compare-and-swap, the winner wakes), kLed ->
//           kLedWanted. All are sequentially consistent, so either the sleeper sees the work, or the notifier sees the state
//   return  log thread, when its time is up or the look found work: kIdle, kLingering -> kAwake; kLed: its time begins anew; kLedWanted: it
//           waits for kAwake
//   lead    committer: kLingering -> kLed (compare-and-swap; the loser does without)
//   end     committer: kLed -> kLingering; if that fails it is kLedWanted: -> kAwake, and wake the log thread
// From the store to kLingering until it is kAwake again the log thread touches nothing that belongs to the role: a committer may have it.
// What is appended, and not asked for, while one leads is written by the next who leads, or by the log thread when its time is up. That begins
//   anew at a led write that took all there was, as nothing older is left, and while one is under way; so nothing waits for longer than
//   twice that time and a led write.
// A wake that comes late is a spurious return; the log thread always looks again.
// Thread-safety: Notify, NotifyAppended, TryLead, EndLead from any thread; the rest by the log thread.
#ifndef TC_REDO_LOG_LOG_SIGNAL_H_
#define TC_REDO_LOG_LOG_SIGNAL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut::tc {

class LogSignal {
 public:
  // `queue` is the log thread's, or null. Both outlive the signal.
  LogSignal(Runtime& runtime, IoQueue* queue) : runtime_(runtime), queue_(queue) {}

  // There is something to be done now.
  void Notify() {
    if (state_.load(std::memory_order_seq_cst) != kAwake) WakeUp();
  }

  // A record that ends at `end` was appended, and nobody has asked for it yet.
  void NotifyAppended(Lsn end) {
    const uint32_t state = state_.load(std::memory_order_seq_cst);
    if (state == kIdle || (state == kLingering && end.value >= full_at_.load(std::memory_order_relaxed))) WakeUp();
  }

  // Sleeps until anything happens, unless `work_waits()` finds something to do after all. It must not look at what belongs to the role.
  template <typename Check>
  void SleepIdle(Check work_waits) {
    state_.store(kIdle, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    Return(
        DEUT_OMITTED("log.look_before_sleep") || !work_waits(), kNoDeadline, Duration(0), [](Duration) {}, Duration(0));
  }

  // The same until `deadline`, or until records up to `full_at` were appended. Committers may lead meanwhile. `linger`: how long the
  // sleep goes on after a led write that took all there was. `stuck(for_how_long)` is called each time that a led write has not ended for another
  // `stuck_after`.
  template <typename Check, typename Stuck>
  void SleepLingering(Check work_waits, Lsn full_at, Deadline deadline, Duration linger, Stuck stuck,
                      Duration stuck_after) {
    full_at_.store(full_at.value, std::memory_order_relaxed);
    state_.store(kLingering, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    Return(!work_waits(), deadline, linger, stuck, stuck_after);
  }

  // For a thread with transfers in flight: also returns with what has completed.
  template <typename Check>
  void SleepInReap(Check work_waits, std::vector<IoRequest*>* completed, Deadline deadline) {
    state_.store(kInReap, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    queue_->Reap(completed, work_waits() ? MonotonicTime::min() : deadline);
    state_.store(kAwake, std::memory_order_seq_cst);
  }

  // Led writes during which somebody else came who was in a hurry.
  uint64_t crowded() const { return crowded_.load(std::memory_order_relaxed); }

  // True: the caller has the role, until EndLead.
  bool TryLead() {
    uint32_t state = kLingering;
    if (state_.load(std::memory_order_seq_cst) != kLingering || DEUT_CAS_FAILS("redo_log.signal.lead")) return false;
    return state_.compare_exchange_strong(state, kLed, std::memory_order_seq_cst);
  }
  // `took_all`: everything that was complete when the lead began is written. `hand_over`: the log thread has something to do.
  void EndLead(bool took_all, bool hand_over) {
    if (took_all) emptied_.fetch_add(1, std::memory_order_seq_cst);
    ended_.fetch_add(1, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_end");
    uint32_t state = kLed;
    if (!hand_over && state_.compare_exchange_strong(state, kLingering, std::memory_order_seq_cst)) return;
    if (state == kLedWanted) crowded_.fetch_add(1, std::memory_order_relaxed);
    state_.store(kAwake, std::memory_order_seq_cst);
    runtime_.Wake(state_, 1);
  }

 private:
  static constexpr uint32_t kAwake = 0, kIdle = 1, kLingering = 2, kInReap = 3, kLed = 4, kLedWanted = 5;

  void WakeUp() {
    for (;;) {
      uint32_t state = state_.load(std::memory_order_seq_cst);
      if (state == kAwake || state == kLedWanted) return;
      DEUT_POINT("redo_log.signal.before_exchange");
      const uint32_t to = state == kLed ? kLedWanted : kAwake;
      if (!state_.compare_exchange_strong(state, to, std::memory_order_seq_cst)) continue;
      if (state == kIdle || state == kLingering) runtime_.Wake(state_, 1);
      if (state == kInReap) queue_->Wake();
      return;
    }
  }

  // Sleeps if `sleep`, and comes back with the role.
  template <typename Stuck>
  void Return(bool sleep, Deadline deadline, Duration linger, Stuck stuck, Duration stuck_after) {
    uint64_t emptied = emptied_.load(std::memory_order_seq_cst);
    Deadline stuck_at = kNoDeadline;  // for the led write that is number stuck_lead
    uint64_t stuck_lead = 0;
    MonotonicTime lead_seen{};  // when it was found under way
    for (;;) {
      uint32_t state = state_.load(std::memory_order_seq_cst);
      if (state == kAwake) return;
      if (state == kIdle || state == kLingering) {
        if (sleep && runtime_.Wait(state_, state, deadline)) continue;
        const uint64_t now_emptied = emptied_.load(std::memory_order_seq_cst);
        if (sleep && now_emptied != emptied) {
          emptied = now_emptied;
          deadline = runtime_.Now() + linger;
        } else {
          state_.compare_exchange_strong(state, kAwake, std::memory_order_seq_cst);
        }
        continue;
      }
      // A committer leads. What the look found, it found before that; and who comes now and is in a hurry asks for the role.
      if (state == kLedWanted && DEUT_OMITTED("D2.one_writer")) return;
      const MonotonicTime now = runtime_.Now();
      const uint64_t lead = ended_.load(std::memory_order_seq_cst);
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
  std::atomic<uint64_t> ended_{0};    // led writes that have ended
  std::atomic<uint64_t> emptied_{0};  // of these, those that took all there was
  std::atomic<uint64_t> crowded_{0};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_SIGNAL_H_
