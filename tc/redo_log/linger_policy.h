// LingerPolicy: decides how the log thread sleeps while nothing is in flight and no record waits: it lingers, and
// committers may lead meanwhile, or it sleeps until it is woken, and none may lead (writer_role.h).
//
// It lingers, because a lone committer that leads saves a thread switch. Two things end that:
//   - kIdleLingersBeforeSleep lingers in a row found no record: a system at rest does not wake for nothing.
//   - A led write kept other threads waiting. Then no committer leads until the log thread has run out of work
//     kSleepsAfterContention times: with several committers many blocks in flight are worth more.
// Thread-safety: the log thread only. Ownership: a value.
#ifndef TC_REDO_LOG_LINGER_POLICY_H_
#define TC_REDO_LOG_LINGER_POLICY_H_

#include <cstdint>

namespace deut::tc {

class LingerPolicy {
 public:
  static constexpr int kIdleLingersBeforeSleep = 50;
  static constexpr int kSleepsAfterContention = 16;

  bool may_linger() const { return idle_lingers_ < kIdleLingersBeforeSleep && sleeps_without_lead_ == 0; }

  // The log thread is about to sleep until it is woken.
  void BeginSleep() {
    if (sleeps_without_lead_ > 0) --sleeps_without_lead_;
  }
  void EndSleep() { idle_lingers_ = 0; }

  // A linger has ended. `contended_leads`: WriterRole::contended_leads. `idle`: it ended at its deadline, and no record
  // was there.
  void EndLinger(uint64_t contended_leads, bool idle) {
    if (contended_leads != seen_contended_leads_) sleeps_without_lead_ = kSleepsAfterContention;
    seen_contended_leads_ = contended_leads;
    idle_lingers_ = idle ? idle_lingers_ + 1 : 0;
  }

 private:
  int idle_lingers_ = 0;         // lingers in a row that found no record
  int sleeps_without_lead_ = 0;  // number of sleeps to come in which no committer may lead
  uint64_t seen_contended_leads_ = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LINGER_POLICY_H_
