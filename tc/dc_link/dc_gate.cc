#include "tc/dc_link/dc_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/position_text.h"

namespace deut::tc {

DcGate::DcGate(Runtime& runtime, ChangeWord& changes, std::string dc_name, std::function<void(const Status&)> on_fatal)
    : changes_(changes),
      pass_changes_(runtime),
      dc_name_(std::move(dc_name)),
      on_fatal_(std::move(on_fatal)),
      mutex_(runtime) {}

Status DcGate::WaitOpen(Deadline deadline, Pass* pass) {
  for (;;) {
    const uint32_t seen = pass_changes_.seen();
    *pass = this->pass();
    if (pass->open()) return Status::Ok();
    if (finished()) return final_status();
    if (!pass_changes_.Wait(seen, deadline)) {
      *pass = this->pass();
      if (pass->open()) return Status::Ok();
      MutexLock lock(mutex_);
      return UnavailableLocked("reads wait");
    }
  }
}

Status DcGate::WaitCaughtUp(Deadline deadline) {
  for (;;) {
    const uint32_t seen = pass_changes_.seen();
    {
      MutexLock lock(mutex_);
      if (!final_.ok()) return final_;
      if (caught_up_) return Status::Ok();
    }
    if (!pass_changes_.Wait(seen, deadline)) {
      MutexLock lock(mutex_);
      if (caught_up_ && final_.ok()) return Status::Ok();
      return UnavailableLocked("the start waits (X4)");
    }
  }
}

bool DcGate::OpenableLocked() const { return final_.ok() && connected_ && target_.ReachedBy(applied()); }

void DcGate::PublishLocked() {
  const uint64_t live = live_session_.load(std::memory_order_seq_cst);  // written under the mutex only
  DEUT_CHECK(live == 0 || (live == session_ && connected_));            // a session that was lost ships nothing
  DEUT_CHECK(finished() == !final_.ok());                               // waiters look at one, then at the other
  const Pass now{OpenableLocked() ? incarnations_.present().incarnation : DcIncarnation{0}, session_};
  if (now.open()) caught_up_ = true;
  DirectReads* const reads_now = now.open() ? incarnations_.reads() : nullptr;
  // Readers share this cache line, so it is written only when it changes.
  if (reads_now != reads()) reads_.store(reads_now, std::memory_order_seq_cst);
  if (now != pass()) {
    pass_.store(now, std::memory_order_seq_cst);
    pass_changes_.Bump();
  }
  changes_.Bump();
}

void DcGate::LostLocked(const Status& why) {
  connected_ = false;
  live_session_.store(0, std::memory_order_seq_cst);
  last_error_ = why;
  PublishLocked();
}

void DcGate::FinishLocked(const Status& why) {
  DEUT_CHECK(!why.ok());  // WaitOpen returns it, with a closed gate
  final_ = why;
  finished_.store(true, std::memory_order_seq_cst);
  LostLocked(why);
  pass_changes_.Bump();
}

void DcGate::Lost(uint64_t session, const Status& why) {
  MutexLock lock(mutex_);
  if (connected_ && session_ == session) LostLocked(why);
}

void DcGate::StreamEnded(uint64_t session, const Status& why) {
  MutexLock lock(mutex_);
  if (live_session_.load(std::memory_order_seq_cst) != session) return;
  live_session_.store(0, std::memory_order_seq_cst);
  last_error_ = why;
  PublishLocked();
}

void DcGate::Fail(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (why == ErrorCode::kFenced && DEUT_OMITTED("X5.stop_when_fenced")) {
      LostLocked(why);
      return;
    }
    if (!final_.ok()) return;
    FinishLocked(why);
  }
  if (on_fatal_) on_fatal_(why);
}

void DcGate::Stop() {
  MutexLock lock(mutex_);
  if (!final_.ok()) return;
  FinishLocked(DEUT_ERROR(kUnavailable, "the link to ", NameLocked(), " was stopped"));
}

bool DcGate::ReportIfLost(const Status& status, uint64_t session) {
  switch (status.code()) {
    case ErrorCode::kWrongIncarnation:
    case ErrorCode::kUnavailable:
      Lost(session, status);
      return true;
    case ErrorCode::kFenced:
      Fail(status);
      return true;
    default:
      return false;
  }
}

Status DcGate::final_status() const {
  MutexLock lock(mutex_);
  return final_;
}

uint64_t DcGate::StartSession(const HelloAnswer& hello, std::shared_ptr<DirectReads> reads) {
  MutexLock lock(mutex_);
  const bool another = incarnations_.Meet(hello, std::move(reads));
  if (another) target_.RequireAllSent(applied());
  // Positions of an earlier incarnation do not count for this one, even if they were higher: the folder may have been
  // put back from a copy. Within one incarnation the higher ones count, because an acknowledgement may have overtaken
  // the answer to Hello.
  if (another && DEUT_STEP("X3.positions_of_incarnation")) {
    acknowledged_.Replace(hello.applied, hello.stable);
  } else {
    acknowledged_.Raise(hello.applied, hello.stable);
  }
  target_.RaiseEverSent(hello.applied);
  space_.Report(hello.free_bytes);
  knows_table_options_.store(hello.knows_table_options, std::memory_order_relaxed);
  ++session_;
  connected_ = final_.ok();
  live_session_.store(connected_ ? session_ : 0, std::memory_order_seq_cst);
  PublishLocked();
  return session_;
}

void DcGate::SetStartTarget(Position target) {
  MutexLock lock(mutex_);
  target_.SetStartTarget(target);
  PublishLocked();
}

void DcGate::RaiseEverSent(Position to) {
  MutexLock lock(mutex_);
  target_.RaiseEverSent(to);
}

Position DcGate::ever_sent() const {
  MutexLock lock(mutex_);
  return target_.ever_sent();
}

Status DcGate::last_error() const {
  MutexLock lock(mutex_);
  return last_error_;
}

void DcGate::NoteError(const Status& why) {
  MutexLock lock(mutex_);
  last_error_ = why;
}

void DcGate::OnAck(const ApplyAck& ack) {
  MutexLock lock(mutex_);
  if (ack.incarnation != incarnations_.present().incarnation && DEUT_STEP("X3.ack_of_current_life")) {
    ++dropped_acks_;
    return;
  }
  if (ack.applied > target_.ever_sent() || ack.stable > ack.applied) {
    LostLocked(DEUT_ERROR(kCorruption, NameLocked(), " acknowledges applied ", ToString(ack.applied), " and stable ",
                          ToString(ack.stable), " but was sent no more than ", ToString(target_.ever_sent())));
    return;
  }
  acknowledged_.Raise(ack.applied, ack.stable);
  space_.Report(ack.free_bytes);
  PublishLocked();
}

DcGate::State DcGate::state() const {
  MutexLock lock(mutex_);
  State state;
  state.text = final_.ok() ? DescribeLocked() : final_.ToString();
  state.caught_up = caught_up_;
  state.shipping = live_session_.load(std::memory_order_seq_cst) != 0;
  state.peer = incarnations_.present();
  state.ever_sent = target_.ever_sent();
  state.sessions = session_;
  state.incarnations = incarnations_.count();
  state.dropped_acks = dropped_acks_;
  return state;
}

std::string DcGate::NameLocked() const {
  const DcIdentity& present = incarnations_.present();
  if (present.dc.value == 0) return dc_name_;
  return absl::StrCat(dc_name_, " (id ", present.dc.value, ", incarnation ", present.number.value, ")");
}

std::string DcGate::DescribeLocked() const {
  const std::string why = last_error_.ok() ? "" : absl::StrCat(": ", last_error_.ToString());
  if (!connected_) return absl::StrCat(NameLocked(), " is not connected", why);
  if (live_session_.load(std::memory_order_seq_cst) == 0)
    return absl::StrCat(NameLocked(), pass().open() ? " is open to reads, but" : "", " takes no log", why);
  if (pass().open()) return absl::StrCat(NameLocked(), " is open to reads");
  if (!target_.start_target_known())
    return absl::StrCat(NameLocked(), " is catching up with the recovered log: applied ", ToString(applied()));
  return absl::StrCat(NameLocked(), " has applied ", ToString(applied()), " of ", ToString(target_.required()),
                      " that it must hold");
}

Status DcGate::UnavailableLocked(const std::string& for_what) const {
  if (!final_.ok()) return final_;
  return DEUT_ERROR(kUnavailable, for_what, ": ", DescribeLocked());
}

}  // namespace deut::tc
