#include "tc/dc_link/link_thread.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/position_text.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {
namespace {

static_assert(kMaxTcEpoch.value == kMaxLogNumber, "a log that can be opened has an epoch that a DC takes");

// Returns the last position that a DC of the recovered log can have applied. The log's end would be too high: a start
// that says Hello and is then refused has made the log longer, and has replaced the TC that the DC obeyed before. The
// DC refuses a Hello that was decided on other positions than its own. A DC that did not could apply a commit of
// another TC, which runs on a copy of the log, in between. Then the next start would take it for a commit of its own
// log.
Position LastPossible(const RecoveredLog& recovered) {
  if (DEUT_OMITTED("X4.last_shipped")) return Position{Lsn{recovered.end_lsn.value - 1}, UINT32_MAX};
  return Position{recovered.last_shipped, UINT32_MAX};
}

// Handles the end, or the refusal, of the log stream. If the DC itself has said so, it still answers, and what it has
// applied it has, so reads go on. Otherwise they would wait as long as the stream is refused. Reads wait if no answer
// came, or if the answer says that the incarnation or the connection is gone.
void EndStream(DcGate& gate, uint64_t session, const Status& status) {
  if (gate.ReportIfLost(status, session)) return;
  const bool unheard = status.ok() || status == ErrorCode::kDeadlineExceeded || status == ErrorCode::kCancelled;
  if (unheard || DEUT_OMITTED("X3.refused_stream_is_no_loss")) {
    gate.Lost(session, status.ok() ? DEUT_ERROR(kUnavailable, "the DC closed the log stream") : status);
  } else {
    gate.StreamEnded(session, status);
  }
}

// Reports the events of a log stream, under the number of the session to which the stream belongs.
class SessionListener final : public ApplyLogListener {
 public:
  SessionListener(DcGate& gate, uint64_t session) : gate_(gate), session_(session) {}
  void OnAck(const ApplyAck& ack) override { gate_.OnAck(ack); }
  void OnClosed(const Status& status) override { EndStream(gate_, session_, status); }

 private:
  DcGate& gate_;
  const uint64_t session_;
};

}  // namespace

LinkThread::LinkThread(Runtime& runtime, DataComponent& dc, RedoLog& log, const RecoveredLog& recovered,
                       LowWaterSource& low_water, const ActiveFloorSource& active_floor, DcGate& gate,
                       std::shared_ptr<ChangeWord> changes, const DcLinkOptions& options)
    : runtime_(runtime),
      dc_(dc),
      log_(log),
      gate_(gate),
      changes_(changes),
      options_(options),
      recovered_limit_(LastPossible(recovered)),
      history_{recovered.epoch, recovered.nonce, recovered.starts, recovered.first_lsn, recovered.end_lsn},
      expected_{recovered.known_dcs, recovered.redo_start, recovered_limit_, log.tc()},
      shipper_(runtime, log, recovered.end_lsn, low_water, active_floor, gate, std::move(changes), options) {}

void LinkThread::Start() {
  DEUT_CHECK(thread_ == nullptr);
  thread_ = runtime_.StartThread("dc-link", [this] { Main(); });
}

void LinkThread::Join() {
  DEUT_CHECK(gate_.finished());  // otherwise the thread would never end
  thread_.reset();
}

void LinkThread::Main() {
  Duration pause = options_.reconnect_min;
  bool told = false;  // the loss was logged
  bool told_refused = false;
  while (!gate_.finished()) {
    const MonotonicTime begin = runtime_.Now();
    bool established = false;
    const Status status = Session(&established);
    if (gate_.finished()) return;  // the thread that finished the gate reports why
    gate_.NoteError(status);
    // A DC that was away may come back and refuse this TC's certificate. An operator has to repair that.
    const bool refused = status == ErrorCode::kPermissionDenied;
    if (established || !told || (refused && !told_refused))
      LogWarning("no connection to ", options_.dc_name, ", trying again: ", status.ToString());
    told = true;
    told_refused = refused;
    if (established && runtime_.Now() - begin >= options_.reconnect_max) pause = options_.reconnect_min;
    Pause(pause);
    pause = std::min(pause * 2, options_.reconnect_max);
  }
}

void LinkThread::Pause(Duration length) {
  const auto half = static_cast<uint64_t>(length.count() / 2);
  const Deadline until = runtime_.Now() + Duration(half + runtime_.RandomSeed() % (half + 1));
  for (;;) {
    const uint32_t seen = changes_->seen();
    if (gate_.finished()) return;
    if (!changes_->Wait(seen, until)) return;
  }
}

HelloRequest LinkThread::Request() const {
  HelloRequest request;
  request.tc = log_.tc();
  request.epoch = log_.epoch();
  request.nonce = log_.nonce();
  if (expected_.known_dcs.size() == 1 && DEUT_STEP("X4.name_expected_dc"))
    request.expected_dc = expected_.known_dcs.front();
  return request;
}

void LinkThread::FailIfFinal(const Status& status) {
  // WRONG_STATE: the DC belongs to another TC, or is not the one that the log knows.
  const ErrorCode code = status.code();
  if (code == ErrorCode::kFenced || code == ErrorCode::kVersionMismatch || code == ErrorCode::kWrongState)
    gate_.Fail(Status(code, Concat(options_.dc_name, " refuses this TC: ", status.message())));
}

Status LinkThread::Compare(const HelloAnswer& answer) {
  expected_.limit = has_accepted_dc_ ? gate_.ever_sent() : recovered_limit_;
  expected_.redo_start = log_.redo_start();
  DEUT_RETURN_IF_ERROR(CheckPeer(answer, expected_, options_.dc_name));
  const ObeyedTc& obeyed = answer.obeyed;
  if (has_accepted_dc_ && obeyed.epoch > log_.epoch()) {
    return DEUT_ERROR(kFenced, options_.dc_name, " refuses this TC: TC epoch ", log_.epoch().value,
                      " has been replaced by epoch ", obeyed.epoch.value);
  }
  return CheckHistory(answer, history_, options_.dc_name);
}

Result<std::optional<HelloBasis>> LinkThread::InquireAndBeginLog() {
  std::optional<HelloBasis> basis;
  const bool look = has_accepted_dc_ ? DEUT_STEP("X4.look_always") : DEUT_STEP("X4.look_first");
  if (look) {
    HelloRequest request = Request();
    request.inquiry = true;
    const Result<HelloAnswer> answer = dc_.Hello(request, runtime_.Now() + options_.connect_timeout);
    if (!answer.ok()) {
      FailIfFinal(answer.status());
      return answer.status();
    }
    if (const Status accepted = Compare(*answer); !accepted.ok()) {
      gate_.Fail(accepted);
      return accepted;
    }
    basis = HelloBasis{answer->incarnation, answer->obeyed, answer->applied, answer->log_durable};
  }
  if (!options_.begin_log || log_.begun()) return basis;
  const Status begun = options_.begin_log();
  if (!begun.ok() && begun != ErrorCode::kResourceExhausted) gate_.Fail(begun);
  DEUT_RETURN_IF_ERROR(begun);
  return basis;
}

Result<HelloAnswer> LinkThread::SayHello(const std::optional<HelloBasis>& decided_on) {
  // X4: the DC makes this epoch durable, so the log must have it.
  DEUT_CHECK(log_.begun());
  HelloRequest request = Request();
  request.log_durable = log_.durable();
  if (DEUT_STEP("X4.name_basis")) request.decided_on = decided_on;
  Result<HelloAnswer> answer = dc_.Hello(request, runtime_.Now() + options_.connect_timeout);
  if (!answer.ok()) {
    FailIfFinal(answer.status());
    return answer;
  }
  expected_.limit = has_accepted_dc_ ? gate_.ever_sent() : recovered_limit_;
  Status accepted = CheckPeer(*answer, expected_, options_.dc_name);
  if (!accepted.ok()) {
    gate_.Fail(accepted);
    return accepted;
  }
  return answer;
}

Status LinkThread::RecordKnown(DcId dc) {
  if (std::ranges::find(expected_.known_dcs, dc) != expected_.known_dcs.end()) return Status::Ok();
  Status status = log_.AddKnownDc(dc, kNoDeadline);  // the log itself deals with a device that hangs
  if (!status.ok()) {
    gate_.Fail(status);
    return status;
  }
  expected_.known_dcs.push_back(dc);
  return Status::Ok();
}

Status LinkThread::Session(bool* established) {
  hellos_.fetch_add(1, std::memory_order_relaxed);
  DEUT_ASSIGN_OR_RETURN(const std::optional<HelloBasis> decided_on, InquireAndBeginLog());
  DEUT_ASSIGN_OR_RETURN(const HelloAnswer hello, SayHello(decided_on));
  DEUT_RETURN_IF_ERROR(RecordKnown(hello.dc));
  *established = true;
  has_accepted_dc_ = true;
  const Sender sender{log_.tc(), log_.epoch(), log_.nonce(), hello.incarnation};
  const uint64_t session = gate_.StartSession(hello, dc_.OpenReads(sender));
  LogInfo("connected to ", options_.dc_name, " (id ", hello.dc.value, ", incarnation ", hello.number.value,
          "), applied ", ToString(hello.applied), ", stable ", ToString(hello.stable));
  SessionListener listener(gate_, session);
  Result<std::unique_ptr<ApplyLogStream>> stream =
      dc_.OpenApplyLog(sender, &listener, runtime_.Now() + options_.connect_timeout);
  Status status = stream.status();
  if (stream.ok()) {
    status = shipper_.Run(**stream, session, hello);
    stream->reset();
  }
  EndStream(gate_, session, status);
  return status;
}

}  // namespace deut::tc
