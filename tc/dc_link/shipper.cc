#include "tc/dc_link/shipper.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

void Add(std::atomic<uint64_t>& counter, uint64_t n) { counter.fetch_add(n, std::memory_order_relaxed); }

}  // namespace

Shipper::Shipper(Runtime& runtime, RedoLog& log, Lsn recovered_end, LowWaterSource& low_water,
                 const ActiveFloorSource& active_floor, DcGate& gate, std::shared_ptr<ChangeWord> changes,
                 const DcLinkOptions& options)
    : runtime_(runtime),
      log_(log),
      recovered_end_(recovered_end),
      low_water_(low_water),
      gate_(gate),
      changes_(std::move(changes)),
      options_(options),
      redo_start_(log, active_floor, options),
      feed_(log, low_water, redo_start_.tracker(), low_water_records_),
      durable_signal_(log, changes_),
      batch_(options.batch_bytes, options.linger),
      window_(options.window_bytes, options.stall_timeout),
      low_water_rounds_(low_water, options.round_min, options.round_max),
      space_question_(runtime, options),
      durable_report_(options.tell_durable_period) {}

void Shipper::Begin(const HelloAnswer& hello) {
  const Position applied = hello.applied;
  DEUT_CHECK(gate_.applied() >= applied);  // the gate has taken the same answer, and perhaps later acknowledgements
  feed_.Restart(applied);
  redo_start_.tracker().ReportsFrom(applied);
  stream_starts_ = true;
  batch_.Restart(applied, gate_.ever_sent());
  durable_report_.Restart(hello.log_durable);
  window_.Restart(applied, runtime_.Now());
}

Status Shipper::Run(ApplyLogStream& stream, uint64_t session, const HelloAnswer& hello) {
  Begin(hello);
  for (;;) {
    const uint32_t seen = changes_->seen();
    if (gate_.finished()) return gate_.final_status();
    if (!gate_.Live(session)) return gate_.last_error();
    bool worked;
    DEUT_RETURN_IF_ERROR(Round(stream, hello.dc, &worked));
    if (!worked) WaitForWork(seen);
  }
}

Status Shipper::Round(ApplyLogStream& stream, DcId dc, bool* worked) {
  const MonotonicTime now = runtime_.Now();
  Add(counters_.wakeups, 1);
  *worked = false;
  DropAcknowledged(now);
  if (window_.Stalled(now)) {
    return DEUT_ERROR(kUnavailable, "nothing was acknowledged for ",
                      duration_cast<milliseconds>(options_.stall_timeout).count(), " ms with ", window_.bytes(),
                      " bytes in flight");
  }
  const uint64_t updates_before = feed_.updates();
  DEUT_RETURN_IF_ERROR(CheckLog(batch_.Fill(feed_)));
  Add(counters_.updates, feed_.updates() - updates_before);
  if (!start_target_set_ && feed_.Passed(recovered_end_)) {
    start_target_set_ = true;
    gate_.SetStartTarget(feed_.position());
  }
  if (batch_.ReadyToSend(now) && WindowHasRoom()) {
    DEUT_RETURN_IF_ERROR(Send(stream, now));
    *worked = true;
  }
  DEUT_RETURN_IF_ERROR(AskForSpace(stream, now));
  DEUT_RETURN_IF_ERROR(SendDurableLsn(stream, now));
  if (AdvanceLowWater(now)) *worked = true;
  AppendLowWater(now);
  return MoveRedoStart(dc, now);
}

void Shipper::DropAcknowledged(MonotonicTime now) {
  window_.Acknowledge(gate_.applied(), now);
  counters_.in_flight_bytes.store(window_.bytes(), std::memory_order_relaxed);
}

Status Shipper::Send(ApplyLogStream& stream, MonotonicTime now) {
  const LogBatch& batch = batch_.content();
  // X3: from here on the DC may have applied the batch, whether or not this TC learns of it.
  if (DEUT_STEP("X3.raise_before_send")) gate_.RaiseEverSent(batch.to);
  // X5: a TC that knows that it is fenced sends nothing.
  if (gate_.finished()) return gate_.final_status();
  if (batch_.resends()) Add(counters_.resent_batches, 1);
  NoteDurableSent(now);
  DEUT_RETURN_IF_ERROR(stream.Send(batch, now + options_.stall_timeout));
  gate_.RaiseEverSent(batch.to);
  Add(counters_.batches, 1);
  Add(counters_.batch_bytes, batch.entries.size());
  counters_.ship_position.store(batch.to, std::memory_order_relaxed);
  window_.Sent(batch.to, batch.entries.size(), now);
  counters_.in_flight_bytes.store(window_.bytes(), std::memory_order_relaxed);
  batch_.Sent(now);
  return Status::Ok();
}

Status Shipper::AskForSpace(ApplyLogStream& stream, MonotonicTime now) {
  const uint64_t free_bytes = gate_.free_bytes();
  space_question_.Observe(gate_.put_refused(), free_bytes);
  if (!gate_.put_refused() || !space_question_.Due(now) || DEUT_OMITTED("X7.ask")) return Status::Ok();
  // Do not ask: a batch in flight, or the next one, will bring the figure.
  if (!window_.empty() || batch_.pending()) return Status::Ok();
  space_question_.Asked(now);
  gate_.ClearPutRefused();  // before the answer is in flight: a put that is refused after that answer asks again
  return SendEmpty(stream, now);
}

void Shipper::NoteDurableSent(MonotonicTime now) {
  const Lsn durable = log_.durable();
  batch_.set_durable(durable);
  durable_report_.Told(durable, now);
}

Status Shipper::SendEmpty(ApplyLogStream& stream, MonotonicTime now) {
  if (gate_.finished()) return gate_.final_status();
  NoteDurableSent(now);
  return stream.Send(batch_.content(), now + options_.stall_timeout);
}

Status Shipper::SendDurableLsn(ApplyLogStream& stream, MonotonicTime now) {
  if (!durable_report_.Due(log_.durable(), now) || DEUT_OMITTED("X4.tell_durable")) return Status::Ok();
  // The next batch will carry it.
  if (batch_.pending()) return Status::Ok();
  return SendEmpty(stream, now);
}

bool Shipper::AdvanceLowWater(MonotonicTime now) {
  if (batch_.limit() != CommitFeed::Limit::kHeldBack) {
    low_water_rounds_.Reset();
    return false;
  }
  if (!low_water_rounds_.Due(now)) return false;
  const bool moved = low_water_rounds_.Run(now);
  Add(counters_.held_back_rounds, 1);
  return moved;
}

void Shipper::AppendLowWater(MonotonicTime now) {
  // Loaded before the append: every commit below it has its LSN reserved, and so precedes the record in the log (L1,
  // X1).
  const Timestamp low_water = stream_starts_ ? low_water_.AdvanceNow() : low_water_.low_water();
  if (!stream_starts_ && !low_water_records_.Due(low_water, log_.tail(), now)) return;
  const AppendResult appended = log_.AppendLowWater(low_water);
  low_water_records_.Appended(low_water, appended.end, now);
  stream_starts_ = false;
  Add(counters_.low_water_records, 1);
  if (DEUT_OMITTED("X1.low_water_when_durable")) {
    LogEntryView entry;
    entry.kind = LogEntryKind::kLowWater;
    entry.position = Position{appended.lsn, 0};
    entry.timestamp = low_water;
    batch_.Append(entry, Position{appended.lsn, UINT32_MAX});
  }
}

Status Shipper::MoveRedoStart(DcId dc, MonotonicTime now) {
  DEUT_RETURN_IF_ERROR(CheckLog(redo_start_.Begin(now)));
  if (!redo_start_.tracker().begun()) return Status::Ok();
  // Loaded in this order: only this thread meets another incarnation, so both belong to one, and only rise.
  const Position stable = gate_.stable();
  DEUT_CHECK(stable <= gate_.applied());
  return CheckLog(redo_start_.Finish(feed_.read_position(), DcPosition{dc, stable}));
}

Status Shipper::CheckLog(Status status) {
  // A new connection does not cure a log that cannot be read or written. CANCELLED: the log was stopped.
  if (!status.ok() && !(status == ErrorCode::kCancelled)) gate_.Fail(status);
  return status;
}

void Shipper::WaitForWork(uint32_t seen) {
  const MonotonicTime now = runtime_.Now();
  Deadline deadline = now + options_.redo_start_period;
  const bool pending = batch_.pending();
  const CommitFeed::Limit limit = batch_.limit();
  if (pending && WindowHasRoom()) deadline = std::min(deadline, batch_.leaves_at());
  if (limit == CommitFeed::Limit::kHeldBack) deadline = std::min(deadline, low_water_rounds_.next());
  if (gate_.put_refused() && !pending && window_.empty()) deadline = std::min(deadline, space_question_.next());
  if (!pending && durable_report_.IsNews(log_.durable())) deadline = std::min(deadline, durable_report_.next());
  if (low_water_records_.Pending()) deadline = std::min(deadline, now + LowWaterRecords::kInterval);
  if (!window_.empty()) deadline = std::min(deadline, window_.stalls_at());
  // A batch that waits for its linger or for the window does not grow record by record, so durability need not wake
  // this thread.
  if (!pending && limit == CommitFeed::Limit::kNotDurable && !durable_signal_.Arm(feed_.read_position())) return;
  changes_->Wait(seen, deadline);
}

}  // namespace deut::tc
