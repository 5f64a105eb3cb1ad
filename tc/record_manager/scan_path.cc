#include "tc/record_manager/scan_path.h"

#include <algorithm>
#include <utility>

#include "common/testing/test_points.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"

namespace deut::tc {
namespace {

// The DC is asked for at most this much at once: a page-size batch.
constexpr uint32_t kBatchBytes = 64 << 10;
// Gathered keys kept of one stretch: a quarter more than the batch may still take (some show nothing), within these limits. With more, it
// ends behind the last one kept.
constexpr size_t kMinGathered = 64;
constexpr size_t kMaxGathered = 4096;

}  // namespace

ScanPath::ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline)
    : engine_(engine),
      txn_(txn),
      scan_(scan),
      result_(result),
      deadline_(deadline),
      low_(scan.low),
      high_(scan.high),
      gather_(engine, txn, scan.direction, scan.for_update) {
  const uint32_t own_below = scan.scan_sequence != 0 ? scan.scan_sequence : txn.next_sequence_;
  view_ = ReaderView{.timestamp = txn.timestamp_,
                     .self = txn.record_,
                     .own_below = DEUT_OMITTED("R10.own_below") ? UINT32_MAX : own_below};
  result->scan_sequence = own_below;
}

bool ScanPath::Exhausted() const { return !high_.empty() && low_ >= high_; }

Status ScanPath::Run() {
  DEUT_ASSIGN_OR_RETURN(const TableState* const table, FindTable(engine_, txn_, scan_.table, scan_.for_update));
  if (scan_.low.size() > kMaxKeyBytes + 1 || scan_.high.size() > kMaxKeyBytes + 1) {
    return DEUT_ERROR(kInvalidArgument, "a scan's bound has at most ", kMaxKeyBytes + 1, " bytes");
  }
  if (scan_.for_update && txn_.snapshot()) return DEUT_ERROR(kWrongState, "a snapshot transaction is read-only");
  engine_.counters.dc_scans.fetch_add(1, std::memory_order_relaxed);
  while (!full_) {
    if (Exhausted()) break;
    Stretch stretch;
    DEUT_RETURN_IF_ERROR(gather_.Next(*table, low_, high_, MostKept(), &stretch));
    DEUT_RETURN_IF_ERROR(Deliver(*table, stretch));
    if (full_) break;
    if (ascending()) {
      if (stretch.high.empty()) {
        result_->complete = true;
        return Status::Ok();
      }
      low_ = stretch.high;
    } else {
      if (stretch.low.empty()) {
        result_->complete = true;
        return Status::Ok();
      }
      high_ = stretch.low;
    }
  }
  result_->complete = Exhausted();
  if (!result_->complete) result_->resume = ascending() ? low_ : high_;
  return Status::Ok();
}

size_t ScanPath::MostKept() const {
  if (scan_.limit_records == 0) return kMaxGathered;
  const size_t left = scan_.limit_records - result_->records.size();
  return std::clamp(left + left / 4, kMinGathered, kMaxGathered);
}

Status ScanPath::AskDc(const TableState& table, const Stretch& stretch, size_t keys_left, DataRequest* request) {
  request->kind = DataRequest::Kind::kScan;
  request->table = table.id();
  request->low = stretch.low;
  request->high = stretch.high;
  request->direction = scan_.direction;
  const size_t left = scan_.limit_records == 0 ? 0 : scan_.limit_records - result_->records.size();
  // Gathered keys may remove or replace what the DC returns.
  request->limit_records = left == 0 ? 0 : static_cast<uint32_t>(std::min<size_t>(left + keys_left, UINT32_MAX));
  request->limit_bytes = std::min(kBatchBytes, std::max<uint32_t>(scan_.limit_bytes, 1));
  if (!DcKnows(engine_, table)) {
    request->complete = true;
    return Status::Ok();
  }
  DataRequest* const requests[] = {request};
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(requests, deadline_));
  return request->status;
}

Status ScanPath::Deliver(const TableState& table, Stretch& stretch) {
  size_t next_key = 0;
  for (;;) {
    DEUT_POINT("scan.before_dc");
    DataRequest request;
    DEUT_RETURN_IF_ERROR(AskDc(table, stretch, stretch.keys.size() - next_key, &request));
    DEUT_POINT("scan.after_dc");
    // S4: TC keys are emitted only up to the bound that this batch covers.
    size_t end = stretch.keys.size();
    if (!request.complete && !DEUT_OMITTED("S4.covered_bound")) {
      if (ascending() ? request.covered <= stretch.low : (!stretch.high.empty() && request.covered >= stretch.high)) {
        return DEUT_ERROR(kInternal, "the data component answered a scan of table ", table.id().value,
                          " without progress");
      }
      const auto covers = [&](const GatheredKey& g) {
        return ascending() ? g.key < request.covered : g.key >= request.covered;
      };
      end = static_cast<size_t>(
          std::partition_point(stretch.keys.begin() + static_cast<ptrdiff_t>(next_key), stretch.keys.end(), covers) -
          stretch.keys.begin());
    }
    std::vector<DataRequest> again;
    DEUT_RETURN_IF_ERROR(Resolve(table, stretch, next_key, end, &again));
    DEUT_RETURN_IF_ERROR(Merge(stretch, &next_key, end, std::move(request.answer)));
    if (full_ || request.complete) return Status::Ok();
    (ascending() ? stretch.low : stretch.high) = request.covered;
    (ascending() ? low_ : high_) = request.covered;
  }
}

Status ScanPath::Resolve(const TableState& table, Stretch& stretch, size_t begin, size_t end,
                         std::vector<DataRequest>* again) {
  size_t ask = 0;
  {
    ReclamationDomain::Guard guard(engine_.domain);
    for (size_t i = begin; i < end; ++i) {
      GatheredKey& gathered = stretch.keys[i];
      gathered.kind = GatheredKey::Kind::kAskDc;
      RecordEntry* const entry = engine_.records.Find(gathered.hash, table.id(), gathered.key);
      Visible visible = entry == nullptr ? Visible{} : FindVisible(entry->word.Load().head, view_);
      // An earlier writer that is uncommitted now published its key after our look (else the stretch had ended before the key, or it had been a
      // conflict), so its own check meets our last_read and it aborts: what is below its version is the reader's.
      while (visible.kind == Visible::Kind::kConflict) {
        visible = FindVisible(visible.version->older.load(std::memory_order_seq_cst), view_);
      }
      if (visible.kind == Visible::Kind::kNothing) {
        ++ask;
        continue;
      }
      gathered.kind = visible.version->tombstone ? GatheredKey::Kind::kTombstone : GatheredKey::Kind::kValue;
      gathered.version = visible.version->version();
      gathered.value.assign(visible.version->value());
      // D1: the scan rests on this commit, and on no later one of the key. (What is not in the chain any more was durable when it was shipped.)
      if (visible.version->transaction != txn_.record_ && !DEUT_OMITTED("D1.depend_on_scanned"))
        txn_.DependOn(visible.version->transaction->commit_lsn());
    }
  }
  if (ask == 0 || DEUT_OMITTED("S5.ask_again") || !DcKnows(engine_, table)) return Status::Ok();
  engine_.counters.asked_again.fetch_add(ask, std::memory_order_relaxed);
  *again = std::vector<DataRequest>(ask);
  std::vector<DataRequest*> requests;
  for (size_t i = begin; i < end; ++i) {
    GatheredKey& gathered = stretch.keys[i];
    if (gathered.kind != GatheredKey::Kind::kAskDc) continue;
    DataRequest& request = (*again)[requests.size()];
    request.table = table.id();
    request.key = gathered.key;
    gathered.again = &request;
    requests.push_back(&request);
  }
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(absl::MakeSpan(requests), deadline_));
  for (size_t i = begin; i < end; ++i) {
    GatheredKey& gathered = stretch.keys[i];
    if (gathered.again == nullptr || gathered.kind != GatheredKey::Kind::kAskDc) continue;
    DEUT_RETURN_IF_ERROR(gathered.again->status);
    gathered.kind = GatheredKey::Kind::kTombstone;  // the DC has nothing
    gathered.version = Version{kMaxTimestamp, 0};   // and what it says now is newer than what it said before
    for (RecordBatch::Iterator it(gathered.again->answer); it.Valid(); it.Next()) {
      DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), txn_.timestamp_));
      gathered.kind = GatheredKey::Kind::kValue;
      gathered.value.assign(it.record().value);
    }
    gathered.again = nullptr;
  }
  return Status::Ok();
}

bool ScanPath::Full(size_t more_records, size_t more_bytes) const {
  return (scan_.limit_records != 0 && result_->records.size() + more_records >= scan_.limit_records) ||
         result_->records.bytes().size() + more_bytes >= scan_.limit_bytes;
}

void ScanPath::StopAfter(std::string_view key) {
  full_ = true;
  if (ascending()) {
    low_ = KeyBehind(key);
  } else {
    high_ = std::string(key);
  }
}

void ScanPath::Emit(std::string_view key, std::string_view value, Version version) {
  result_->records.Append(key, value, version);
  if (Full(0, 0)) StopAfter(key);
}

Status ScanPath::Merge(Stretch& stretch, size_t* next_key, size_t end, RecordBatch records) {
  // Records that go on as they are, all in a row: they are copied in one piece, or, if they are all there is, not at all.
  const char* run_begin = records.bytes().data();
  size_t run_bytes = 0, run_records = 0;
  const auto flush = [&] {
    if (run_records != 0) result_->records.AppendRun({run_begin, run_bytes}, run_records);
    run_bytes = run_records = 0;
  };
  const auto emit_gathered = [&](const GatheredKey& g) {
    if (g.kind != GatheredKey::Kind::kValue) return;
    flush();
    // The version of a key asked again is only bounded: the answer's own does not matter to the client.
    Emit(g.key, g.value, g.version.timestamp == kMaxTimestamp ? Version{} : g.version);
  };
  size_t& k = *next_key;
  for (RecordBatch::Iterator it(records); it.Valid() && !full_; it.Next()) {
    const RecordView& record = it.record();
    DEUT_RETURN_IF_ERROR(CheckVisible(record, txn_.timestamp_));
    while (!full_ && k < end && Before(stretch.keys[k].key, record.key)) emit_gathered(stretch.keys[k++]);
    if (full_) break;
    if (k < end && stretch.keys[k].key == record.key) {
      const GatheredKey& gathered = stretch.keys[k++];
      const bool tc_wins = gathered.kind != GatheredKey::Kind::kAskDc && gathered.version > record.version;
      if (tc_wins && !DEUT_OMITTED("S5.larger_wins")) {
        flush();  // up to here
        emit_gathered(gathered);
        continue;
      }
    }
    if (run_records == 0) run_begin = record.key.data() - RecordBatch::kHeaderBytes;
    run_bytes = static_cast<size_t>(record.value.data() + record.value.size() - run_begin);
    ++run_records;
    if (Full(run_records, run_bytes)) StopAfter(record.key);
  }
  if (run_records == records.size() && result_->records.empty()) {
    result_->records = std::move(records);
    run_records = 0;
  }
  flush();
  while (!full_ && k < end) emit_gathered(stretch.keys[k++]);
  return Status::Ok();
}

}  // namespace deut::tc
