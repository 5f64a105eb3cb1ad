#include "tc/dc_link/link_thread.h"

#include <algorithm>
#include <utility>

#include "common/observe/log.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/position_text.h"

namespace deut::tc {
namespace {

// Everything in the recovered log lies at or before this: positions name records, and records begin before the end.
Position LastPossible(Lsn end) { return end.value == 0 ? Position{} : Position{Lsn{end.value - 1}, UINT32_MAX}; }

// The stream of log batches has ended, or was refused, with `status`. The DC that said so answers, and what it has applied it has, so reads go on:
// else they would wait for as long as the stream is refused. Where nothing was heard, or what was heard is that life or connection are gone, they
// wait.
void EndStream(DcGate& gate, uint64_t session, const Status& status) {
  if (gate.Interrupts(status, session)) return;
  const bool unheard = status.ok() || status == ErrorCode::kDeadlineExceeded || status == ErrorCode::kCancelled;
  if (unheard || DEUT_OMITTED("X3.refused_stream_is_no_loss")) {
    gate.Lost(session, status.ok() ? DEUT_ERROR(kUnavailable, "the DC closed the log stream") : status);
  } else {
    gate.StreamEnded(session, status);
  }
}

// What a stream of log batches reports, under the number of the session it belongs to.
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
      recovered_limit_(LastPossible(recovered.end_lsn)),
      expected_{recovered.known_dcs, recovered.redo_start, recovered_limit_},
      shipper_(runtime, log, recovered.end_lsn, low_water, active_floor, gate, std::move(changes), options) {}

void LinkThread::Start() {
  thread_ = runtime_.StartThread("dc-link", [this] { Main(); });
}

void LinkThread::Join() { thread_.reset(); }

void LinkThread::Main() {
  Duration pause = options_.reconnect_min;
  bool told = false;  // people know that it is away
  while (!gate_.finished()) {
    const MonotonicTime begin = runtime_.Now();
    bool established = false;
    const Status status = Session(&established);
    if (gate_.finished()) return;  // why is told by whoever finished it
    gate_.NoteError(status);
    if (established || !told) LogWarning("no connection to ", options_.dc_name, ", trying again: ", status.ToString());
    told = true;
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

Result<HelloAnswer> LinkThread::SayHello() {
  HelloRequest request;
  request.tc = log_.tc();
  request.epoch = log_.epoch();
  request.nonce = log_.nonce();
  hellos_.fetch_add(1, std::memory_order_relaxed);
  Result<HelloAnswer> answer = dc_.Hello(request, runtime_.Now() + options_.connect_timeout);
  if (!answer.ok()) {
    if (answer.status() == ErrorCode::kFenced || answer.status() == ErrorCode::kVersionMismatch)
      gate_.Fail(answer.status());
    return answer;
  }
  expected_.limit = met_ ? gate_.ever_sent() : recovered_limit_;
  expected_.redo_start = log_.redo_start();
  Status accepted = CheckPeer(*answer, expected_, options_.dc_name);
  if (!accepted.ok()) {
    gate_.Fail(accepted);
    return accepted;
  }
  return answer;
}

Status LinkThread::RecordKnown(DcId dc) {
  if (std::ranges::find(expected_.known_dcs, dc) != expected_.known_dcs.end()) return Status::Ok();
  Status status = log_.AddKnownDc(dc, kNoDeadline);  // a device that hangs is the log's to end
  if (!status.ok()) {
    gate_.Fail(status);
    return status;
  }
  expected_.known_dcs.push_back(dc);
  return Status::Ok();
}

Status LinkThread::Session(bool* established) {
  DEUT_ASSIGN_OR_RETURN(const HelloAnswer hello, SayHello());
  DEUT_RETURN_IF_ERROR(RecordKnown(hello.dc));
  *established = true;
  met_ = true;
  const Sender sender{log_.tc(), log_.epoch(), log_.nonce(), hello.incarnation};
  const uint64_t session = gate_.StartSession(hello, dc_.OpenReads(sender));
  LogInfo("connected to ", options_.dc_name, " (id ", hello.dc.value, ", incarnation ", hello.incarnation.value,
          "), applied ", ToString(hello.applied), ", stable ", ToString(hello.stable));
  SessionListener listener(gate_, session);
  Result<std::unique_ptr<ApplyLogStream>> stream =
      dc_.OpenApplyLog(sender, &listener, runtime_.Now() + options_.connect_timeout);
  Status status = stream.status();
  if (stream.ok()) {
    status = shipper_.Run(**stream, session, hello.dc, hello.applied);
    stream->reset();
  }
  EndStream(gate_, session, status);
  return status;
}

}  // namespace deut::tc
