// The DC's part of a scan that goes on beyond its first batch: gathers and grants ahead, and takes the granted
// batches (scan_path.h, rules S4, R8).
#include <algorithm>
#include <utility>

#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/scan_path.h"

namespace deut::tc {

Status ScanPath::AskStream(const TableState& table) {
  ResumableScan& s = *state_;
  if (s.stream == nullptr) {
    ScanSpec spec{.table = s.table, .range = {s.low, s.high}, .direction = s.direction};
    spec.batch_bytes = std::clamp<uint32_t>(scan_.limit_bytes, 1, kMaxScanBytes);
    s.flow.emplace(spec.batch_bytes);
    s.stretch_ends.clear();
    s.stretches_passed = s.records_taken = 0;
    if (!AtBound()) s.stretch_ends.push_back(s.bound);
    DEUT_ASSIGN_OR_RETURN(s.stream, engine_.dc.OpenScan(spec, deadline_));
    engine_.counters.bulk_scans.fetch_add(1, std::memory_order_relaxed);
  }
  DEUT_RETURN_IF_ERROR(GatherAndGrant(table, /*ahead=*/false));
  DEUT_POINT("scan.before_dc");
  ScanBatch batch;
  batch.records = std::exchange(result_->records.empty() ? result_->records : s.spare, RecordBatch());
  // A DC in this process fills this very buffer. Another DC's stream replaces it.
  if (!s.stream->ReadsAhead()) batch.records.Reserve(Window(/*ahead=*/false));
  const MonotonicTime wanted = engine_.runtime.Now();
  DEUT_RETURN_IF_ERROR(s.stream->Next(&batch, deadline_));
  DEUT_POINT("scan.after_dc");
  engine_.counters.bulk_batches.fetch_add(1, std::memory_order_relaxed);
  const MonotonicTime now = engine_.runtime.Now();
  s.flow->OnBatchTaken(now, batch.records.bytes().size(), now - wanted);
  s.records_taken += batch.records.size();
  ResumableScan::Answer& answer = s.answer.emplace();
  answer.records = std::move(batch.records);
  answer.to_the_bound = batch.complete;
  answer.covered = std::move(batch.covered);
  DEUT_RETURN_IF_ERROR(CheckAllVisible(answer.records, txn_.timestamp_));
  DropPassedStretchEnds();
  // The DC sends the next batch while this one is merged, and while the client works on it.
  if (batch.complete || !s.stream->ReadsAhead() || s.for_update) return Status::Ok();
  return GatherAndGrant(table, /*ahead=*/true);
}

void ScanPath::DropPassedStretchEnds() {
  ResumableScan& s = *state_;
  const ResumableScan::Answer& answer = *s.answer;
  const auto passed = [&](const std::string& end) {
    if (answer.to_the_bound) return true;
    return !end.empty() && (ascending() ? end <= answer.covered : end >= answer.covered);
  };
  for (; !s.stretch_ends.empty() && passed(s.stretch_ends.front()); ++s.stretches_passed) s.stretch_ends.pop_front();
}

uint64_t ScanPath::AheadBytes() const {
  const ResumableScan& s = *state_;
  const uint64_t stretch = s.stretches_passed == 0 ? std::max(s.flow->batch_bytes(), s.flow->taken_bytes())
                                                   : std::max<uint64_t>(s.flow->taken_bytes() / s.stretches_passed, 1);
  // The first stretch is taken in part. It counts as none, so that an answer does not end at a range's border merely
  // because nobody had looked beyond it.
  return s.stretch_ends.empty() ? 0 : stretch * (s.stretch_ends.size() - 1);
}

uint64_t ScanPath::Window(bool ahead) {
  ResumableScan& s = *state_;
  const uint64_t batch = s.flow->batch_bytes();
  uint64_t window = ahead ? s.flow->window() : batch;
  if (scan_.limit_records != 0 && s.records_taken != 0) {
    // Records that the DC has answered count as delivered, merged or not.
    const uint64_t got = result_->records.size() + (s.answer ? s.answer->records.size() : 0);
    const uint64_t left = scan_.limit_records - std::min<uint64_t>(got, scan_.limit_records);
    window = std::min(window, left * (s.flow->taken_bytes() / s.records_taken + 1));
  }
  if (!ahead) return std::max<uint64_t>(window, 1);
  if (window <= batch) return window;
  return batch + s.share.Resize(engine_.scan_ahead, window - batch);
}

Status ScanPath::GatherAndGrant(const TableState& table, bool ahead) {
  const uint64_t window = Window(ahead);
  bool moved = false;
  if (DEUT_OMITTED("S4.gather_before_grant")) {
    DEUT_RETURN_IF_ERROR(GrantTo({}, window, false));
    return GatherAhead(table, window, &moved);
  }
  DEUT_RETURN_IF_ERROR(GatherAhead(table, window, &moved));
  return GrantTo(state_->bound, window, moved);
}

Status ScanPath::GatherAhead(const TableState& table, uint64_t window, bool* moved) {
  ResumableScan& s = *state_;
  const auto gather = [&](bool* blocked) {
    Status status = GatherNext(table, blocked != nullptr, blocked);
    if (!status.ok() || (blocked != nullptr && *blocked)) return status;
    s.stretch_ends.push_back(s.bound);
    *moved = true;
    return status;
  };
  if (AtBound()) {
    DEUT_RETURN_IF_ERROR(gather(nullptr));
  } else if (AheadBytes() >= window - window / 8) {
    return Status::Ok();
  }
  if (s.for_update) return Status::Ok();
  bool blocked = false;
  while (!blocked && !GatheredToTheEnd() && AheadBytes() < window && KeysAhead() < ResumableScan::kMaxKeysAhead &&
         s.stretch_ends.size() < ResumableScan::kMaxStretchesAhead) {
    DEUT_RETURN_IF_ERROR(gather(&blocked));
  }
  return Status::Ok();
}

Status ScanPath::GrantTo(std::string_view bound, uint64_t window, bool moved) {
  ScanFlow& flow = *state_->flow;
  const uint64_t bytes = flow.BytesToGrant(window);
  if (bytes == 0 && !moved) return Status::Ok();
  DEUT_RETURN_IF_ERROR(state_->stream->Grant(bound, bytes));
  flow.OnGrant(engine_.runtime.Now(), bytes);
  return Status::Ok();
}

}  // namespace deut::tc
