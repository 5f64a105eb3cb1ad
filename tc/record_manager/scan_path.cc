#include "tc/record_manager/scan_path.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "tc/scan/batch_buffer_cache.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"

namespace deut::tc {
namespace {

// The most gathered keys whose values are fetched at once, and that one message asks the DC again for
// (scan_resolve.cc).
constexpr size_t kResolvedAtOnce = 256;
// Limits on the gathered keys kept of one stretch; between them it is the number that the batch is likely to pass. A
// stretch with more keys ends behind the last one kept. A scan that goes on behind its first stretch has met small
// ranges, or keys that show nothing, so it keeps more.
constexpr size_t kMinGatheredFirst = 8;
constexpr size_t kMinGathered = 64;
constexpr size_t kMaxGathered = 4096;
// The most merged keys that are kept before they are dropped.
constexpr size_t kMaxKeysBehind = 1024;
// How long a scan does not ask for a stream after the DC had no thread for one.
constexpr Duration kStreamRetryPause = seconds(1);

}  // namespace

ScanPath::ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline)
    : engine_(engine),
      txn_(txn),
      scan_(scan),
      result_(result),
      deadline_(deadline),
      gather_(engine, txn, scan.direction, scan.for_update) {
  const uint32_t own_below = scan.scan_sequence != 0 ? scan.scan_sequence : txn.next_sequence_;
  view_ = ReaderView{.timestamp = txn.timestamp_,
                     .self = txn.record_,
                     .own_below = DEUT_OMITTED("R10.own_below") ? UINT32_MAX : own_below};
  result->scan_sequence = own_below;
}

bool ScanPath::AtEnd() const { return reached_last_key_ || (!state_->high.empty() && state_->low >= state_->high); }

bool ScanPath::AtBound() { return !state_->gathered || (!state_->bound.empty() && position() == state_->bound); }

bool ScanPath::GatheredToTheEnd() const {
  return state_->gathered && (state_->bound.empty() || state_->bound == far_end());
}

Status ScanPath::Run(bool keep_state) {
  DEUT_ASSIGN_OR_RETURN(const TableState* const table, FindTable(engine_, txn_, scan_.table, scan_.for_update));
  if (scan_.low.size() > kMaxKeyBytes + 1 || scan_.high.size() > kMaxKeyBytes + 1) {
    return DEUT_ERROR(kInvalidArgument, "a scan's bound has at most ", kMaxKeyBytes + 1, " bytes");
  }
  if (scan_.for_update && txn_.snapshot()) return DEUT_ERROR(kWrongState, "a snapshot transaction is read-only");
  engine_.counters.dc_scans.Add(1);
  if (IsSingleAnswerCandidate()) {
    bool over = false;
    DEUT_RETURN_IF_ERROR(RunAsOneAnswer(*table, &over));
    if (over) [[likely]]
      return Status::Ok();
  } else {
    AcquireState();
  }
  while (!full_ && !AtEnd()) DEUT_RETURN_IF_ERROR(Step(*table));
  state_->estimate.Record(result_->records.size(), std::exchange(state_->keys_passed, 0));
  result_->complete = AtEnd();
  if (!result_->complete) {
    if (keep_state && BelowRecordLimit()) {
      result_->resume = position();
      KeepState();
    } else {
      result_->resume.swap(position());  // the state is not kept
    }
  }
  if (state_ != nullptr && state_->IsReusable()) {
    BatchBufferCache::Put(std::move(state_->spare));
    state_->Reset();
    txn_.spare_scan_ = std::move(state_);
  }
  return Status::Ok();
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
  state_->direction = scan_.direction;
  state_->for_update = scan_.for_update;
  state_->own_below = result_->scan_sequence;
}

void ScanPath::CopyBounds() {
  state_->low = scan_.low;
  state_->high = scan_.high;
}

bool ScanPath::IsSingleAnswerCandidate() const {
  return scan_.scan_sequence == 0 && txn_.prefetched_scan_ == nullptr && !scan_.for_update &&
         (scan_.high.empty() || scan_.low < scan_.high);
}

Status ScanPath::RunAsOneAnswer(const TableState& table, bool* over) {
  DEUT_DCHECK(result_->records.empty());
  AcquireNewState();
  ResumableScan& s = *state_;
  DEUT_RETURN_IF_ERROR(
      gather_.Next(table, scan_.low, scan_.high, MaxGatheredKeys(), &s.bound, &s.keys, &s.key_bytes, nullptr));
  s.gathered = true;
  if (!s.keys.empty()) {
    CopyBounds();
    return Status::Ok();
  }
  DataRequest request;
  request.answer = std::exchange(result_->records, RecordBatch());
  MakeRequest(scan_.low, scan_.high, &request);
  DEUT_RETURN_IF_ERROR(AskDc(table, &request));
  const RecordBatch& answer = request.answer;
  std::string& reached = request.complete ? s.bound : request.covered;
  const bool to_the_end =
      reached.empty() || (ascending() ? !scan_.high.empty() && reached >= scan_.high : reached <= scan_.low);
  const bool enough = scan_.limit_records != 0 && answer.size() == scan_.limit_records;
  if (!(to_the_end || enough) || !AllFit(answer.size(), answer.bytes().size())) {
    CopyBounds();
    return AcceptAnswer(&request);
  }
  DEUT_RETURN_IF_ERROR(CheckAnswer(request, scan_.low, scan_.high));
  result_->records = std::move(request.answer);
  result_->complete = to_the_end;
  if (!to_the_end) result_->resume.swap(reached);
  s.estimate.Record(result_->records.size(), 0);
  // The state is as after Reset, because nothing else was touched.
  s.bound.clear();
  s.gathered = false;
  DEUT_DCHECK(s.IsReusable() && s.next_key == 0 && s.keys_passed == 0 && !s.answer && s.first_request == nullptr);
  txn_.spare_scan_ = std::move(state_);
  *over = true;
  return Status::Ok();
}

bool ScanPath::BelowRecordLimit() const {
  return scan_.limit_records == 0 || result_->records.size() < scan_.limit_records;
}

void ScanPath::KeepState() {
  auto& standing = txn_.scans_;
  if (standing.size() >= ResumableScan::kMaxResumable) standing.erase(standing.begin());
  if (state_->stream != nullptr) state_->last_used = engine_.runtime.Now();
  state_->last_from = ascending() ? scan_.low : scan_.high;
  standing.push_back(std::move(state_));
}

Status ScanPath::Step(const TableState& table) {
  ResumableScan& s = *state_;
  if (!s.answer) {
    DEUT_RETURN_IF_ERROR(Ask(table));
    if (!s.answer) return Status::Ok();
  }
  // If nothing of the stretch is in the TC and the answer fits, it is handed on as it is.
  if (KeysAhead() == 0 && AppendRestOfAnswer()) [[likely]] {
    DropMergedAnswer();
    return Status::Ok();
  }
  // S4: TC keys are emitted only up to the bound that this answer covers.
  size_t end = s.keys.size();
  const bool to_the_bound = s.answer->to_the_bound;
  if (!to_the_bound && DEUT_STEP("S4.covered_bound")) {
    const std::string& covered = s.answer->covered;
    const auto covers = [&](const GatheredKey& g) { return ascending() ? g.key < covered : g.key >= covered; };
    end = static_cast<size_t>(
        std::partition_point(s.keys.begin() + static_cast<ptrdiff_t>(s.next_key), s.keys.end(), covers) -
        s.keys.begin());
  }
  // Works piece by piece, because the answer may cover far more gathered keys than this batch takes.
  for (bool last = false; !last && !full_;) {
    const size_t begin = s.next_key;
    size_t piece = std::min(end, begin + MaxResolvedKeys());
    if (piece != begin) DEUT_RETURN_IF_ERROR(Resolve(table, begin, &piece));
    last = piece == end;
    Merge(piece, last);
    s.keys_passed += s.next_key - begin;
    s.values.Clear();  // merged, or resolved again for the next batch
  }
  if (!full_) DropMergedAnswer();
  return Status::Ok();
}

void ScanPath::DropMergedAnswer() {
  ResumableScan& s = *state_;
  RecordBatch& merged = s.answer->records;
  if (merged.bytes().capacity() > s.spare.bytes().capacity()) s.spare = std::exchange(merged, RecordBatch());
  s.spare.Clear();
  Advance(s.answer->to_the_bound, &s.answer->covered);
  s.answer.reset();
}

void ScanPath::Advance(bool to_the_bound, std::string* covered) {
  ResumableScan& s = *state_;
  if (to_the_bound) {
    position() = s.bound;
  } else {
    position() = std::move(*covered);
  }
  if (position().empty()) reached_last_key_ = true;
  if (s.next_key == s.keys.size()) {
    s.ClearKeys();
  } else if (s.next_key > kMaxKeysBehind) {
    s.DropMergedKeys();
  }
  full_ = NearlyFull() || Full(0, 0);
}

Status ScanPath::Ask(const TableState& table) {
  ResumableScan& s = *state_;
  if (s.first_request != nullptr) return UsePrefetchedAnswer();
  if (resumed_ && DcKnows(engine_, table) && (s.stream != nullptr || AcquireStreamPermit())) {
    const Status asked = AskStream(table);
    if (asked != ErrorCode::kResourceExhausted) return asked;
    s.EndStream();  // the DC has no thread left for it
    s.no_stream_before = engine_.runtime.Now() + kStreamRetryPause;
  }
  if (AtBound()) DEUT_RETURN_IF_ERROR(GatherNext(table, false, nullptr));
  return AskOnce(table);
}

bool ScanPath::AcquireStreamPermit() {
  ResumableScan& s = *state_;
  if (s.no_stream_before != MonotonicTime{} && engine_.runtime.Now() < s.no_stream_before) return false;
  return s.permit.TryAcquire(engine_.scan_streams);
}

size_t ScanPath::MaxGatheredKeys() const {
  if (scan_.limit_records == 0) return kMaxGathered;
  const size_t left = scan_.limit_records - result_->records.size();
  const size_t wanted = state_->estimate.KeysFor(left);
  return std::clamp(wanted, state_->gathered ? kMinGathered : kMinGatheredFirst, kMaxGathered);
}

size_t ScanPath::MaxResolvedKeys() const {
  if (scan_.limit_records == 0) return kResolvedAtOnce;
  return std::clamp<size_t>(scan_.limit_records - result_->records.size(), 1, kResolvedAtOnce);
}

Status ScanPath::GatherNext(const TableState& table, bool ahead, bool* blocked) {
  ResumableScan& s = *state_;
  const std::string_view from = s.gathered ? s.bound : position();
  DEUT_RETURN_IF_ERROR(gather_.Next(table, ascending() ? from : s.low, ascending() ? s.high : from, MaxGatheredKeys(),
                                    &s.bound, &s.keys, &s.key_bytes, ahead ? blocked : nullptr));
  s.gathered = s.gathered || !ahead || !*blocked;
  return Status::Ok();
}

void ScanPath::MakeRequest(std::string_view low, std::string_view high, DataRequest* request) const {
  const ResumableScan& s = *state_;
  request->kind = DataRequest::Kind::kScan;
  request->table = s.table;
  request->low = ascending() ? low : s.bound;
  request->high = ascending() ? s.bound : high;
  request->direction = scan_.direction;
  const size_t left = scan_.limit_records == 0 ? 0 : scan_.limit_records - result_->records.size();
  // Gathered keys replace records of the DC, and some may remove them, so the request asks for that many more.
  const auto removing = left == 0 ? 0
                                  : std::count_if(s.keys.begin() + static_cast<ptrdiff_t>(s.next_key), s.keys.end(),
                                                  [](const GatheredKey& gathered) { return gathered.may_be_removed; });
  request->limit_records =
      left == 0 ? 0 : static_cast<uint32_t>(std::min<size_t>(left + static_cast<size_t>(removing), UINT32_MAX));
  const size_t held = std::min<size_t>(result_->records.bytes().size(), scan_.limit_bytes);
  request->limit_bytes = std::clamp<uint32_t>(scan_.limit_bytes - static_cast<uint32_t>(held), 1, kShortScanBytes);
}

// With this the caller reserves the buffer at once. It would otherwise grow step by step, each time with a copy of
// its content.
uint64_t ScanPath::ExpectedBytes(const DataRequest& request) const {
  const RecordBatch& held = result_->records;
  const uint64_t bytes = held.bytes().size();
  // Without a limit of records the scan is expected to go on for as many bytes as it has got.
  const uint64_t expected = request.limit_records == 0 ? bytes : request.limit_records * (bytes / held.size() + 1);
  return std::min<uint64_t>(expected, request.limit_bytes);
}

Status ScanPath::AskDc(const TableState& table, DataRequest* request) {
  DEUT_POINT("scan.before_dc");
  if (DcKnows(engine_, table)) {
    DataRequest* const requests[] = {request};
    DEUT_RETURN_IF_ERROR(engine_.dc.Read(requests, deadline_));
    DEUT_RETURN_IF_ERROR(request->status);
  } else {
    request->complete = true;
  }
  DEUT_POINT("scan.after_dc");
  return Status::Ok();
}

Status ScanPath::AskOnce(const TableState& table) {
  DataRequest request;
  // The buffer in which the answer is likely to stay, or one that was used before.
  const bool goes_on = !result_->records.empty();
  request.answer = std::exchange(goes_on ? state_->spare : result_->records, RecordBatch());
  MakeRequest(state_->low, state_->high, &request);
  if (goes_on) request.answer.Reserve(ExpectedBytes(request));
  DEUT_RETURN_IF_ERROR(AskDc(table, &request));
  return AcceptAnswer(&request);
}

Status ScanPath::CheckAnswer(const DataRequest& request, std::string_view low, std::string_view high) const {
  if (!request.complete && (ascending() ? request.covered <= low : (!high.empty() && request.covered >= high))) {
    return DEUT_ERROR(kInternal, "the data component answered a scan of table ", scan_.table.value,
                      " without progress");
  }
  return CheckAllVisible(request.answer, txn_.timestamp_);
}

Status ScanPath::AcceptAnswer(DataRequest* request) {
  ResumableScan& s = *state_;
  DEUT_RETURN_IF_ERROR(CheckAnswer(*request, s.low, s.high));
  if (KeysAhead() == 0 && result_->records.empty() && AllFit(request->answer.size(), request->answer.bytes().size())) {
    result_->records = std::move(request->answer);
    Advance(request->complete, &request->covered);
    return Status::Ok();
  }
  s.answer.emplace();
  s.answer->records = std::move(request->answer);
  s.answer->to_the_bound = request->complete;
  s.answer->covered = std::move(request->covered);
  return Status::Ok();
}

bool ScanPath::Full(size_t more_records, size_t more_bytes) const {
  return (scan_.limit_records != 0 && result_->records.size() + more_records >= scan_.limit_records) ||
         result_->records.bytes().size() + more_bytes >= scan_.limit_bytes;
}

bool ScanPath::NearlyFull() const {
  return !result_->records.empty() && result_->records.bytes().size() >= scan_.limit_bytes - scan_.limit_bytes / 4;
}

void ScanPath::StopAfter(std::string_view key) {
  full_ = true;
  if (ascending()) {
    position() = KeyBehind(key);
  } else {
    position().assign(key);
  }
}

void ScanPath::Emit(std::string_view key, std::string_view value, Version version) {
  result_->records.Append(key, value, version);
  if (Full(0, 0)) StopAfter(key);
}

bool ScanPath::AllFit(size_t records, size_t bytes) const {
  const RecordBatch& held = result_->records;
  if (scan_.limit_records != 0 && held.size() + records > scan_.limit_records) return false;
  return held.bytes().size() + bytes <= scan_.limit_bytes || (held.empty() && records <= 1);
}

bool ScanPath::AppendRestOfAnswer() {
  ResumableScan::Answer& answer = *state_->answer;
  const size_t records = answer.records.size() - answer.merged_records;
  const size_t bytes = answer.records.bytes().size() - answer.merged_bytes;
  if (!AllFit(records, bytes)) return false;
  if (result_->records.empty() && answer.merged_bytes == 0) {
    result_->records = std::exchange(answer.records, RecordBatch());
  } else if (records != 0) {
    result_->records.AppendRun(std::string_view(answer.records.bytes()).substr(answer.merged_bytes), records,
                               answer.records.newest());
  }
  return true;
}

void ScanPath::Merge(size_t end, bool last) {
  ResumableScan& s = *state_;
  ResumableScan::Answer& answer = *s.answer;
  const std::string& bytes = answer.records.bytes();
  // Records that are handed on unchanged, all in a row, are copied in one piece.
  size_t run_begin = answer.merged_bytes, run_bytes = 0, run_records = 0;
  size_t& k = s.next_key;
  // Called before the first record is copied. An answer that is handed on as it is needs no room.
  const auto make_room = [&] {
    if (!result_->records.empty()) return;
    size_t most = bytes.size() - run_begin;
    for (size_t i = k; i < end; ++i) most += RecordBatch::kHeaderBytes + s.keys[i].key.size() + s.keys[i].value.size();
    most = std::min<size_t>(most, scan_.limit_bytes);
    if (result_->records.bytes().capacity() < most) result_->records = BatchBufferCache::Get(most);
  };
  const auto flush = [&] {
    if (run_records != 0) {
      make_room();
      result_->records.AppendRun(std::string_view(bytes).substr(run_begin, run_bytes), run_records,
                                 answer.records.newest());
    }
    run_begin = answer.merged_bytes;
    run_bytes = run_records = 0;
  };
  const auto emit_gathered = [&](const GatheredKey& g) {
    if (g.kind != GatheredKey::Kind::kValue) return;
    flush();
    make_room();
    // For a key that was asked again only a bound on its version is known, and the client needs no more.
    Emit(g.key, g.value, g.version.timestamp == kMaxTimestamp ? Version{} : g.version);
  };
  bool tried_whole = false;
  for (RecordBatch::Iterator it(answer.records, answer.merged_bytes); it.Valid() && !full_; it.Next()) {
    if (last && k == end && !tried_whole) {
      flush();
      tried_whole = true;
      if (AppendRestOfAnswer()) return;
    }
    const RecordView& record = it.record();
    while (!full_ && k < end && Before(s.keys[k].key, record.key)) emit_gathered(s.keys[k++]);
    if (full_ || (!last && k == end && !Before(record.key, s.keys[end].key))) break;
    const size_t record_bytes = RecordBatch::kHeaderBytes + record.key.size() + record.value.size();
    if (k < end && s.keys[k].key == record.key) {
      const GatheredKey& gathered = s.keys[k++];
      const bool tc_wins = gathered.kind != GatheredKey::Kind::kAskDc && gathered.version > record.version;
      if (tc_wins && DEUT_STEP("S5.larger_wins")) {
        flush();  // the records before this one
        answer.merged_bytes += record_bytes;
        ++answer.merged_records;
        run_begin = answer.merged_bytes;
        emit_gathered(gathered);
        continue;
      }
    }
    answer.merged_bytes += record_bytes;
    ++answer.merged_records;
    run_bytes += record_bytes;
    ++run_records;
    if (Full(run_records, run_bytes)) StopAfter(record.key);
  }
  flush();
  while (!full_ && k < end) emit_gathered(s.keys[k++]);
}

}  // namespace deut::tc
