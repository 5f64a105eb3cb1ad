#include "tc/dc_link/shipper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// Granularity of the redo start.
constexpr uint64_t kRedoStartGranularityBytes = 1 << 20;
// Pause between two requests for the DC's free space. Clients of refused puts are told to come back later than that.
constexpr Duration kSpaceQuestionPeriod = milliseconds(100);

void Add(std::atomic<uint64_t>& counter, uint64_t n) { counter.fetch_add(n, std::memory_order_relaxed); }

}  // namespace

Shipper::Shipper(Runtime& runtime, RedoLog& log, Lsn recovered_end, LowWaterSource& low_water,
                 const ActiveFloorSource& active_floor, DcGate& gate, std::shared_ptr<ChangeWord> changes,
                 const DcLinkOptions& options)
    : runtime_(runtime),
      log_(log),
      recovered_end_(recovered_end),
      low_water_(low_water),
      active_floor_(active_floor),
      gate_(gate),
      changes_(std::move(changes)),
      options_(options),
      tracker_(std::min(kRedoStartGranularityBytes, options.redo_start_bytes)),
      feed_(log, low_water, tracker_, low_water_records_),
      durable_signal_(log, changes_),
      round_pause_(options.round_min),
      space_log_(runtime) {}

void Shipper::Begin(const HelloAnswer& hello) {
  const Position applied = hello.applied;
  feed_.Restart(applied);
  tracker_.ReportsFrom(applied);
  stream_starts_ = true;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  batch_.from = batch_.to = applied;
  batch_.entries.clear();
  durable_sent_ = hello.log_durable;
  resent_until_ = gate_.ever_sent();
  last_send_ = MonotonicTime{};
  last_progress_ = runtime_.Now();
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
  if (!in_flight_.empty() && now >= last_progress_ + options_.stall_timeout) {
    return DEUT_ERROR(kUnavailable, "nothing was acknowledged for ",
                      duration_cast<milliseconds>(options_.stall_timeout).count(), " ms with ", in_flight_bytes_,
                      " bytes in flight");
  }
  const uint64_t updates_before = feed_.updates();
  DEUT_RETURN_IF_ERROR(CheckLog(feed_.Fill(&batch_, options_.batch_bytes, &limit_)));
  Add(counters_.updates, feed_.updates() - updates_before);
  if (!start_target_set_ && feed_.Passed(recovered_end_)) {
    start_target_set_ = true;
    gate_.SetStartTarget(feed_.position());
  }
  if (ReadyToSend(now) && WindowHasRoom()) {
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
  const Position applied = gate_.applied();
  while (!in_flight_.empty() && in_flight_.front().to <= applied) {
    in_flight_bytes_ -= in_flight_.front().bytes;
    in_flight_.pop_front();
    last_progress_ = now;
  }
  counters_.in_flight_bytes.store(in_flight_bytes_, std::memory_order_relaxed);
}

bool Shipper::ReadyToSend(MonotonicTime now) const {
  if (batch_.to <= batch_.from) return false;
  return limit_ == CommitFeed::Limit::kBatchFull || now >= last_send_ + options_.linger;
}

bool Shipper::WindowHasRoom() const {
  return in_flight_.empty() || in_flight_bytes_ + batch_.entries.size() <= options_.window_bytes;
}

Status Shipper::Send(ApplyLogStream& stream, MonotonicTime now) {
  // X3: from here on the DC may have applied the batch, whether or not this TC learns of it.
  if (DEUT_STEP("X3.raise_before_send")) gate_.RaiseEverSent(batch_.to);
  // X5: a TC that knows that it is fenced sends nothing.
  if (gate_.finished()) return gate_.final_status();
  if (batch_.from < resent_until_) Add(counters_.resent_batches, 1);
  NoteDurableSent(now);
  DEUT_RETURN_IF_ERROR(stream.Send(batch_, now + options_.stall_timeout));
  gate_.RaiseEverSent(batch_.to);
  Add(counters_.batches, 1);
  Add(counters_.batch_bytes, batch_.entries.size());
  counters_.ship_position.store(batch_.to, std::memory_order_relaxed);
  if (in_flight_.empty()) last_progress_ = now;
  in_flight_.push_back(Sent{batch_.to, batch_.entries.size()});
  in_flight_bytes_ += batch_.entries.size();
  counters_.in_flight_bytes.store(in_flight_bytes_, std::memory_order_relaxed);
  batch_.from = batch_.to;
  batch_.entries.clear();
  last_send_ = now;
  return Status::Ok();
}

Status Shipper::AskForSpace(ApplyLogStream& stream, MonotonicTime now) {
  const uint64_t free_bytes = gate_.free_bytes();
  if (gate_.put_refused()) {
    space_log_.Begin([&] {
      return absl::StrCat("disk: puts are refused, ", options_.dc_name, " has ", free_bytes, " bytes free, of which ",
                          options_.reserve_bytes, " are kept");
    });
  } else if (free_bytes >= options_.reserve_bytes) {
    space_log_.End([&] { return absl::StrCat("disk: ", options_.dc_name, " has ", free_bytes, " bytes free again"); });
  }
  if (!gate_.put_refused() || now < next_question_ || DEUT_OMITTED("X7.ask")) return Status::Ok();
  // Do not ask: a batch in flight, or the next one, will bring the figure.
  if (!in_flight_.empty() || batch_.to > batch_.from) return Status::Ok();
  next_question_ = now + kSpaceQuestionPeriod;
  gate_.ClearPutRefused();  // before the answer is in flight: a put that is refused after that answer asks again
  return SendEmpty(stream, now);
}

void Shipper::NoteDurableSent(MonotonicTime now) {
  batch_.durable = durable_sent_ = log_.durable();
  next_durable_send_ = now + options_.tell_durable_period;
}

Status Shipper::SendEmpty(ApplyLogStream& stream, MonotonicTime now) {
  if (gate_.finished()) return gate_.final_status();
  NoteDurableSent(now);
  return stream.Send(batch_, now + options_.stall_timeout);
}

Status Shipper::SendDurableLsn(ApplyLogStream& stream, MonotonicTime now) {
  if (now < next_durable_send_ || log_.durable() <= durable_sent_ || DEUT_OMITTED("X4.tell_durable"))
    return Status::Ok();
  // The next batch will carry it.
  if (batch_.to > batch_.from) return Status::Ok();
  return SendEmpty(stream, now);
}

bool Shipper::AdvanceLowWater(MonotonicTime now) {
  if (limit_ != CommitFeed::Limit::kHeldBack) {
    round_pause_ = options_.round_min;
    return false;
  }
  if (now < next_round_) return false;
  const Timestamp before = low_water_.low_water();
  const bool moved = low_water_.AdvanceNow() > before;
  Add(counters_.held_back_rounds, 1);
  round_pause_ = moved ? options_.round_min : std::min(round_pause_ * 2, options_.round_max);
  next_round_ = now + round_pause_;
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
    batch_.Append(entry);
    batch_.to = Position{appended.lsn, UINT32_MAX};
  }
}

Status Shipper::MoveRedoStart(DcId dc, MonotonicTime now) {
  if (!tracker_.begun()) {
    if (now < next_redo_start_) return Status::Ok();
    next_redo_start_ = now + options_.redo_start_period;
    DEUT_RETURN_IF_ERROR(CheckLog(log_.TrimKeptForOutcomes(kNoDeadline)));
    // The order of these two is the rule (redo_start_tracker.h).
    const Lsn floor = active_floor_.OldestFirstRecord();
    tracker_.Begin(floor, log_.tail());
  }
  const Position stable = gate_.stable();
  const std::optional<Lsn> lsn = tracker_.Finish(feed_.read_position(), stable);
  if (!lsn || lsn->value < log_.redo_start().lsn.value + options_.redo_start_bytes) return Status::Ok();
  return CheckLog(log_.AdvanceRedoStart(RedoStart{*lsn, {DcPosition{dc, stable}}}, kNoDeadline));
}

Status Shipper::CheckLog(Status status) {
  // A new connection does not cure a log that cannot be read or written. CANCELLED: the log was stopped.
  if (!status.ok() && !(status == ErrorCode::kCancelled)) gate_.Fail(status);
  return status;
}

void Shipper::WaitForWork(uint32_t seen) {
  const MonotonicTime now = runtime_.Now();
  Deadline deadline = now + options_.redo_start_period;
  const bool pending = batch_.to > batch_.from;
  if (pending && WindowHasRoom()) deadline = std::min(deadline, last_send_ + options_.linger);
  if (limit_ == CommitFeed::Limit::kHeldBack) deadline = std::min(deadline, next_round_);
  if (gate_.put_refused() && !pending && in_flight_.empty()) deadline = std::min(deadline, next_question_);
  if (!pending && log_.durable() > durable_sent_) deadline = std::min(deadline, next_durable_send_);
  if (low_water_records_.Pending()) deadline = std::min(deadline, now + LowWaterRecords::kInterval);
  if (!in_flight_.empty()) deadline = std::min(deadline, last_progress_ + options_.stall_timeout);
  // A batch that waits for its linger or for the window does not grow record by record, so durability need not wake
  // this thread.
  if (!pending && limit_ == CommitFeed::Limit::kNotDurable && !durable_signal_.Arm(feed_.read_position())) return;
  changes_->Wait(seen, deadline);
}

}  // namespace deut::tc
