// DcGate: the TC's knowledge of the DC's present incarnation, and the gate in front of reads (rules X3, X4, X5).
//
// States of the gate word {incarnation, session} (16 bytes, stored whole under the mutex, loaded without it):
//   closed {0, s}    no reads: no connection, or this incarnation has not applied enough
//   open   {i, s}    reads go to incarnation i; s numbers the connections (Hellos), so that a late report of a broken
//                    one is recognized
// Transitions, each under the mutex:
//   StartSession (link thread)  -> open if enough is applied, else closed
//   OnAck (stream's thread)     closed -> open when applied reaches `required`
//   Lost (any reader, stream)   open or closed of session s -> closed; a report of an earlier session changes nothing
//   StreamEnded (stream)        none: the DC answers, but takes no log for now. This incarnation still has what it
//                               has applied, and reads need no more. The next session finds the gate as it is
//   Fail, Stop                  -> closed for good
// `required` is fixed when a new incarnation is found (read_target.h).
// Races
//   A reader that loaded `open` before the gate closed asks the incarnation that it names. If that incarnation
//   answers, the answer is right, because the gate was open for it. If it is gone, the request fails and is repeated
//   behind the gate. The same holds for a reader that loaded `reads` while the gate was open: it answers for that
//   incarnation alone, or not at all.
//   An acknowledgement of an earlier incarnation that arrives after StartSession found a new one is dropped under the
//   same mutex. So `applied` never speaks for a dead incarnation. Updates that were collected because of it are below
//   ever_sent, and so behind the gate.
// Thread-safety: pass, applied, stable, free_bytes, NotePutRefused, Live: latch-free, any thread. The rest take the mutex
// (cold).
// Ownership: runtime and `changes` outlive it; it keeps all DirectReads until it ends.
#ifndef TC_DC_LINK_DC_GATE_H_
#define TC_DC_LINK_DC_GATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"
#include "tc/dc_link/acknowledged_positions.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/dc_identity.h"
#include "tc/dc_link/met_incarnations.h"
#include "tc/dc_link/read_target.h"
#include "tc/dc_link/reported_space.h"

namespace deut::tc {

class DcGate {
 public:
  struct Pass {
    DcIncarnation incarnation;  // 0 = closed
    uint64_t session = 0;
    bool open() const { return incarnation.value != 0; }
    friend bool operator==(const Pass&, const Pass&) = default;
  };
  struct State {
    std::string text;  // text for operators
    bool caught_up = false;
    bool shipping = false;
    DcIdentity peer;
    Position ever_sent;
    uint64_t sessions = 0;
    uint64_t incarnations = 0;
    uint64_t dropped_acks = 0;
  };

  // `changes` is bumped whenever one of the answers below may have changed. (Readers behind the gate wait on a word
  // of the gate's own, so that acknowledgements do not wake them.)
  DcGate(Runtime& runtime, ChangeWord& changes, std::string dc_name, std::function<void(const Status&)> on_fatal);

  // HOT PATH.
  Pass pass() const { return pass_.load(std::memory_order_seq_cst); }
  // Direct reads of the incarnation that the gate is open to. Null: the gate is closed, or the incarnation has none.
  // Valid until this object ends.
  DirectReads* reads() const { return reads_.load(std::memory_order_seq_cst); }
  // As DcLink.
  Position applied() const { return acknowledged_.applied(); }
  Position stable() const { return acknowledged_.stable(); }
  // X7 (reported_space.h).
  uint64_t free_bytes() const { return space_.free_bytes(); }
  void NotePutRefused() const {
    if (space_.NotePutRefused()) changes_.Bump();
  }
  bool put_refused() const { return space_.put_refused(); }
  // As the last answer to Hello says; false before the first one.
  bool knows_table_options() const { return knows_table_options_.load(std::memory_order_relaxed); }
  // Link thread.
  void ClearPutRefused() { space_.ClearPutRefused(); }

  // Waits until the gate is open. At the deadline UNAVAILABLE, with the DC's name and the reason of the wait; or the
  // final error.
  Status WaitOpen(Deadline deadline, Pass* pass) DEUT_EXCLUDES(mutex_);
  // Waits until the gate has been open once (X4).
  Status WaitCaughtUp(Deadline deadline) DEUT_EXCLUDES(mutex_);

  // Reports that the connection with this number is broken, or that the DC says that its incarnation has ended.
  void Lost(uint64_t session, const Status& why) DEUT_EXCLUDES(mutex_);
  // Reports that the log stream of this connection has ended, or could not be opened, as the DC itself says. Nothing
  // is shipped until the next session, but the connection is not lost. Has no effect if the connection has been lost
  // meanwhile.
  void StreamEnded(uint64_t session, const Status& why) DEUT_EXCLUDES(mutex_);
  // Reports that the link can never serve again (FENCED, a refusal). Closes the gate for good and tells the owner,
  // once.
  void Fail(const Status& why) DEUT_EXCLUDES(mutex_);
  void Stop() DEUT_EXCLUDES(mutex_);
  // True if an answer with this status means that the connection or the incarnation is gone, so that the request is
  // to be repeated behind the gate. Reports the loss. FENCED is final and fails the link (X5).
  bool ReportIfLost(const Status& status, uint64_t session) DEUT_EXCLUDES(mutex_);
  // OK, or the final error after Fail or Stop.
  Status final_status() const DEUT_EXCLUDES(mutex_);
  bool finished() const { return finished_.load(std::memory_order_seq_cst); }

  // Link thread. A Hello was answered and accepted. Returns the new session's number. `reads`: direct reads of this
  // incarnation for this TC, if there are any.
  uint64_t StartSession(const HelloAnswer& hello, std::shared_ptr<DirectReads> reads = nullptr) DEUT_EXCLUDES(mutex_);
  // X4: `target` is the last position of the recovered log. The gate does not open before this is known.
  void SetStartTarget(Position target) DEUT_EXCLUDES(mutex_);
  // X3: REQUIRES: called before any update up to `to` is passed to a stream.
  void RaiseEverSent(Position to) DEUT_EXCLUDES(mutex_);
  Position ever_sent() const DEUT_EXCLUDES(mutex_);
  // True while the session ships: its connection is not lost, and it has its stream.
  bool Live(uint64_t session) const { return live_session_.load(std::memory_order_seq_cst) == session; }
  // The reason why the last session ended.
  Status last_error() const DEUT_EXCLUDES(mutex_);
  // Notes a failure before a session began, for messages.
  void NoteError(const Status& why) DEUT_EXCLUDES(mutex_);

  // --- The stream's thread.
  void OnAck(const ApplyAck& ack) DEUT_EXCLUDES(mutex_);

  State state() const DEUT_EXCLUDES(mutex_);

 private:
  bool OpenableLocked() const DEUT_REQUIRES(mutex_);
  void PublishLocked() DEUT_REQUIRES(mutex_);
  void LostLocked(const Status& why) DEUT_REQUIRES(mutex_);
  void FinishLocked(const Status& why) DEUT_REQUIRES(mutex_);
  std::string NameLocked() const DEUT_REQUIRES(mutex_);
  // "the DC (id 3, incarnation 7) has applied 120/4 of 300/1".
  std::string DescribeLocked() const DEUT_REQUIRES(mutex_);
  // Returns the answer for a waiter: the final error, or UNAVAILABLE with `for_what` and the description.
  Status UnavailableLocked(const std::string& for_what) const DEUT_REQUIRES(mutex_);

  ChangeWord& changes_;
  ChangeWord pass_changes_;
  const std::string dc_name_;
  const std::function<void(const Status&)> on_fatal_;

  // Two cache lines: all readers share the first one, which changes rarely; the second one changes with each
  // acknowledgement.
  alignas(64) std::atomic<Pass> pass_{Pass{}};
  std::atomic<DirectReads*> reads_{nullptr};  // those of the present incarnation while the gate is open
  alignas(64) AcknowledgedPositions acknowledged_;
  ReportedSpace space_;
  std::atomic<uint64_t> live_session_{0};  // 0 = not connected, or without a log stream
  std::atomic<bool> finished_{false};
  std::atomic<bool> knows_table_options_{false};
  static_assert(std::atomic<Pass>::is_always_lock_free);

  mutable Mutex mutex_;
  MetIncarnations incarnations_ DEUT_GUARDED_BY(mutex_);
  ReadTarget target_ DEUT_GUARDED_BY(mutex_);
  uint64_t session_ DEUT_GUARDED_BY(mutex_) = 0;
  bool connected_ DEUT_GUARDED_BY(mutex_) = false;  // session_ has not been lost
  bool caught_up_ DEUT_GUARDED_BY(mutex_) = false;
  Status final_ DEUT_GUARDED_BY(mutex_);
  Status last_error_ DEUT_GUARDED_BY(mutex_);
  uint64_t dropped_acks_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_GATE_H_
