#include "tc/record_manager/scan_path.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"
#include "tc/record_manager/scan_ahead.h"
#include "tc/record_manager/scan_resolve.h"
#include "tc/scan/batch_buffer_cache.h"
#include "tc/scan/scan_merge.h"

namespace deut::tc {
namespace {

// The most gathered keys whose values are fetched at once, and that one message asks the DC again for
// (scan_resolve.h).
constexpr size_t kResolvedAtOnce = 256;
// How long a scan does not ask for a stream after the DC had no thread for one.
constexpr Duration kStreamRetryPause = seconds(1);

}  // namespace

ScanPath::ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline)
    : engine_(engine),
      txn_(txn),
      scan_(scan),
      result_(result),
      call_{.engine = engine,
            .txn = txn,
            .scan = scan,
            .deadline = deadline,
            .room = BatchRoom(result->records, scan.limit_records, scan.limit_bytes)},
      ask_(call_),
      gather_(engine, txn, scan.direction, scan.for_update) {
  const uint32_t own_below = scan.scan_sequence != 0 ? scan.scan_sequence : txn.next_sequence_;
  view_ = ReaderView{.timestamp = txn.timestamp_,
                     .self = txn.record_,
                     .own_below = DEUT_OMITTED("R10.own_below") ? UINT32_MAX : own_below};
  result->scan_sequence = own_below;
}

Status ScanPath::Run(bool keep_state) {
  DEUT_ASSIGN_OR_RETURN(const TableState* const table, FindTable(engine_, txn_, scan_.table, scan_.for_update));
  if (scan_.low.size() > kMaxKeyBytes + 1 || scan_.high.size() > kMaxKeyBytes + 1) {
    return DEUT_ERROR(kInvalidArgument, "a scan's bound has at most ", kMaxKeyBytes + 1, " bytes");
  }
  if (scan_.for_update && txn_.snapshot()) return DEUT_ERROR(kWrongState, "a snapshot transaction is read-only");
  engine_.counters.dc_scans.Add(1);
  size_t steps = 0;
  if (IsSingleAnswerCandidate()) {
    bool over = false;
    DEUT_RETURN_IF_ERROR(RunAsOneAnswer(*table, &over));
    if (over) [[likely]]
      return Status::Ok();
    steps = 1;
  } else {
    AcquireState();
  }
  for (; !full_ && !state_->cursor.AtEnd(); ++steps) {
    if (steps >= kMaxStepsPerBatch && HasMoved()) break;
    if (steps != 0) DEUT_RETURN_IF_ERROR(CheckDeadline());
    DEUT_RETURN_IF_ERROR(Step(*table));
  }
  state_->estimate.Record(result_->records.size(), std::exchange(state_->keys_passed, 0));
  result_->complete = state_->cursor.AtEnd();
  if (!result_->complete) {
    // A client that goes on at `resume` comes to the end.
    DEUT_DCHECK(state_->cursor.IsProgress(state_->cursor.position(), scan_.low, scan_.high));
    if (keep_state && call_.room.BelowRecordLimit()) {
      result_->resume = state_->cursor.position();
      KeepState();
    } else {
      result_->resume.swap(state_->cursor.position());  // the state is not kept
    }
  }
  if (state_ != nullptr && state_->IsReusable()) {
    BatchBufferCache::Put(std::move(state_->spare));
    state_->Reset();
    txn_.spare_scan_ = std::move(state_);
  }
  return Status::Ok();
}

bool ScanPath::HasMoved() const {
  return state_->cursor.position() != (state_->cursor.ascending() ? scan_.low : scan_.high);
}

Status ScanPath::CheckDeadline() const {
  if (engine_.runtime.Now() < call_.deadline) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kDeadlineExceeded, "a scan of table ", scan_.table.value, " has found ", result_->records.size(),
                    " records in time, and has not reached its end");
}

void ScanPath::AcquireState() {
  if (txn_.prefetched_scan_ != nullptr && txn_.prefetched_scan_->PrefetchedFor(scan_)) {
    state_ = std::move(txn_.prefetched_scan_);
    return;
  }
  auto& standing = txn_.scans_;
  for (size_t i = 0; i < standing.size() && scan_.scan_sequence != 0; ++i) {
    if (!standing[i]->ContinuesWith(scan_)) continue;
    state_ = std::move(standing[i]);
    standing.erase(standing.begin() + static_cast<ptrdiff_t>(i));
    resumed_ = true;
    return;
  }
  if (scan_.scan_sequence != 0) std::erase_if(standing, [&](const auto& passed) { return passed->HasAnswered(scan_); });
  AcquireNewState();
  CopyBounds();
}

void ScanPath::AcquireNewState() {
  state_ = txn_.spare_scan_ != nullptr ? std::move(txn_.spare_scan_) : std::make_unique<ResumableScan>();
  if (state_->table != scan_.table) state_->estimate = GatherEstimate();
  state_->table = scan_.table;
  state_->cursor.direction = scan_.direction;
  state_->for_update = scan_.for_update;
  state_->own_below = result_->scan_sequence;
}

void ScanPath::CopyBounds() {
  state_->cursor.low = scan_.low;
  state_->cursor.high = scan_.high;
}

bool ScanPath::IsSingleAnswerCandidate() const {
  return scan_.scan_sequence == 0 && txn_.prefetched_scan_ == nullptr && !scan_.for_update &&
         (scan_.high.empty() || scan_.low < scan_.high);
}

Status ScanPath::RunAsOneAnswer(const TableState& table, bool* over) {
  DEUT_DCHECK(result_->records.empty());
  AcquireNewState();
  ResumableScan& s = *state_;
  ScanCursor& cursor = s.cursor;
  DEUT_RETURN_IF_ERROR(
      gather_.Next(table, scan_.low, scan_.high, s.MaxGatheredKeys(call_.room), &cursor.bound, &s.gathered, nullptr));
  cursor.gathered = true;
  if (!s.gathered.keys.empty()) {
    CopyBounds();
    return Status::Ok();
  }
  DataRequest request;
  request.answer = std::exchange(result_->records, RecordBatch());
  ask_.MakeRequest(s, scan_.low, scan_.high, &request);
  DEUT_RETURN_IF_ERROR(ask_.AskDc(table, &request));
  DEUT_RETURN_IF_ERROR(ask_.CheckAnswer(request, cursor, scan_.low, scan_.high));
  const RecordBatch& answer = request.answer;
  std::string& reached = request.complete ? cursor.bound : request.covered;
  const bool to_the_end =
      reached.empty() || (cursor.ascending() ? !scan_.high.empty() && reached >= scan_.high : reached <= scan_.low);
  const bool enough = scan_.limit_records != 0 && answer.size() == scan_.limit_records;
  if (!(to_the_end || enough) || !call_.room.AllFit(answer.size(), answer.bytes().size())) {
    CopyBounds();
    AcceptAnswer(&request);
    return Status::Ok();
  }
  result_->records = std::move(request.answer);
  result_->complete = to_the_end;
  if (!to_the_end) result_->resume.swap(reached);
  s.estimate.Record(result_->records.size(), 0);
  // The state is as after Reset, because nothing else was touched.
  cursor.Reset();
  DEUT_DCHECK(s.IsReusable() && s.gathered.next == 0 && s.keys_passed == 0 && !s.answer && s.first_request == nullptr);
  txn_.spare_scan_ = std::move(state_);
  *over = true;
  return Status::Ok();
}

void ScanPath::KeepState() {
  auto& standing = txn_.scans_;
  if (standing.size() >= ResumableScan::kMaxResumable) standing.erase(standing.begin());
  if (state_->bulk.stream != nullptr) state_->bulk.last_used = engine_.runtime.Now();
  state_->last_from = state_->cursor.ascending() ? scan_.low : scan_.high;
  standing.push_back(std::move(state_));
}

Status ScanPath::Step(const TableState& table) {
  ResumableScan& s = *state_;
  if (!s.answer) {
    DEUT_RETURN_IF_ERROR(Ask(table));
    if (!s.answer) return Status::Ok();
  }
  // If nothing of the stretch is in the TC and the answer fits, it is handed on as it is.
  if (s.gathered.ahead() == 0 && AppendRest(*s.answer, call_.room)) [[likely]] {
    s.DropMergedAnswer();
    NoteAdvanced();
    return Status::Ok();
  }
  // S4: TC keys are emitted only up to the bound that this answer covers.
  size_t end = s.gathered.keys.size();
  if (!s.answer->to_the_bound && DEUT_STEP("S4.covered_bound")) end = s.gathered.EndWithin(s.cursor, s.answer->covered);
  DEUT_DCHECK(end >= s.gathered.next);
  ScanResolve resolve(call_, table, view_, s.gathered);
  // Works piece by piece, because the answer may cover far more gathered keys than this batch takes.
  for (bool last = false; !last && !full_;) {
    const size_t begin = s.gathered.next;
    size_t piece = std::min(end, begin + MaxResolvedKeys());
    if (piece != begin) DEUT_RETURN_IF_ERROR(resolve.Resolve(begin, &piece));
    last = piece == end;
    full_ = ScanMerge(call_.room, s.cursor, s.gathered, *s.answer).Run(piece, last);
    DEUT_DCHECK(full_ ? s.gathered.next <= piece : s.gathered.next == piece);
    s.keys_passed += s.gathered.next - begin;
    s.gathered.values.Clear();  // merged, or resolved again for the next batch
  }
  if (full_) return Status::Ok();
  s.DropMergedAnswer();
  NoteAdvanced();
  return Status::Ok();
}

Status ScanPath::Ask(const TableState& table) {
  ResumableScan& s = *state_;
  DEUT_DCHECK(!full_ && !s.answer);
  if (s.first_request != nullptr) return UsePrefetchedAnswer();
  if (resumed_ && DcKnows(engine_, table) &&
      (s.bulk.stream != nullptr || s.bulk.TryAcquirePermit(engine_.scan_streams, engine_.runtime))) {
    const Status asked = ScanAhead(call_, gather_, s).AskStream(table);
    if (asked != ErrorCode::kResourceExhausted) return asked;
    s.EndStream();  // the DC has no thread left for it
    s.bulk.no_stream_before = engine_.runtime.Now() + kStreamRetryPause;
  }
  if (s.cursor.AtBound()) DEUT_RETURN_IF_ERROR(gather_.GatherNext(table, &s, call_.room, nullptr));
  DataRequest request;
  DEUT_RETURN_IF_ERROR(ask_.AskOnce(table, s, &request));
  AcceptAnswer(&request);
  return Status::Ok();
}

size_t ScanPath::MaxResolvedKeys() const {
  if (scan_.limit_records == 0) return kResolvedAtOnce;
  return std::clamp<size_t>(call_.room.RecordsLeft(), 1, kResolvedAtOnce);
}

void ScanPath::AcceptAnswer(DataRequest* request) {
  ResumableScan& s = *state_;
  if (s.gathered.ahead() == 0 && result_->records.empty() &&
      call_.room.AllFit(request->answer.size(), request->answer.bytes().size())) {
    result_->records = std::move(request->answer);
    s.Advance(request->complete, &request->covered);
    NoteAdvanced();
    return;
  }
  DcAnswer& answer = s.answer.emplace();
  answer.records = std::move(request->answer);
  answer.to_the_bound = request->complete;
  answer.covered = std::move(request->covered);
}

}  // namespace deut::tc
