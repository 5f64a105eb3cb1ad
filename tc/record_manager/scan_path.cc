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
// Gathered keys kept of one stretch: twice what the batch may still take (some show nothing), within these limits. With more, the stretch
// ends behind the last one kept.
constexpr size_t kMinGathered = 64;
constexpr size_t kMaxGathered = 4096;
// Keys of large write sets that one gather sorts, about: the rest is walked, and sorted by the next ones.
constexpr int64_t kSortedPerGather = 32 << 10;

bool Inside(std::string_view key, std::string_view low, std::string_view high) {
  return key >= low && (high.empty() || key < high);
}

std::string Successor(std::string_view key) {
  std::string successor(key);
  successor.push_back('\0');
  return successor;
}

// The smaller of two upper bounds; empty is above every key.
std::string_view LowerBound(std::string_view a, std::string_view b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return std::min(a, b);
}

}  // namespace

ScanPath::ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline)
    : engine_(engine),
      txn_(txn),
      scan_(scan),
      result_(result),
      deadline_(deadline),
      low_(scan.low),
      high_(scan.high),
      wait_(engine, txn.timestamp_) {
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
    DEUT_RETURN_IF_ERROR(NextStretch(*table, &stretch));
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

Status ScanPath::NextStretch(const TableState& table, Stretch* stretch) {
  for (bool done = false;;) {
    DEUT_RETURN_IF_ERROR(Look(table, stretch, &done));
    if (done) return Status::Ok();
    wait_.Wait();
    if (DEUT_OMITTED("R9.look_again")) return Status::Ok();
  }
}

Status ScanPath::Look(const TableState& table, Stretch* stretch, bool* done) {
  ReclamationDomain::Guard guard(engine_.domain);
  for (bool sealed = true; sealed;) {
    const RangeMap& map = table.map();
    Range& range = map.at(ascending() ? map.IndexOf(low_) : map.IndexBelow(high_));
    stretch->low = std::max<std::string_view>(low_, range.low());
    stretch->high = LowerBound(high_, range.high());
    candidates_.clear();
    pending_ = Pending{};
    may_sort_ = kSortedPerGather;
    DEUT_RETURN_IF_ERROR(RaiseAndGather(table, range, *stretch, &sealed));
    if (sealed) table.HelpRanges();  // P: then the map is another
  }
  if (pending_.writer != nullptr && !EndBeforePending(stretch)) {
    if (wait_.MayWaitFor(*pending_.writer)) return Status::Ok();
    return Conflict(engine_, AbortReason::kRangeWriter, txn_.timestamp_, table.id(),
                    pending_.at_once ? std::string_view(stretch->low) : pending_.key, pending_.writer->timestamp());
  }
  SortAndCut(stretch);
  engine_.counters.gathered_keys.fetch_add(stretch->keys.size(), std::memory_order_relaxed);
  *done = true;
  return Status::Ok();
}

Status ScanPath::RaiseAndGather(const TableState& table, Range& range, const Stretch& stretch, bool* sealed) {
  const bool raise = !txn_.snapshot();
  *sealed = scan_.for_update && !txn_.Post(range, DEUT_OMITTED("R3.post_first"));
  if (*sealed) return Status::Ok();
  DEUT_POINT("scan.before_raise");
  if (raise && !DEUT_OMITTED("R2.raise") && !DEUT_OMITTED("R2.raise_first")) {
    *sealed = !range.RaiseLastRead(txn_.timestamp_);
    if (*sealed) return Status::Ok();
  }
  DEUT_POINT("scan.raised");
  range.ForEachPosting([&](TransactionRecord& record) { return GatherFrom(record, table.id(), stretch); });
  DEUT_POINT("scan.looked");
  if (raise && DEUT_OMITTED("R2.raise_first")) (void)range.RaiseLastRead(txn_.timestamp_);
  if (!scan_.for_update || DEUT_OMITTED("R3.check_last")) return Status::Ok();
  if (const Timestamp read = range.last_read(); read > txn_.timestamp_) {
    return Conflict(engine_, AbortReason::kRangeReadLater, txn_.timestamp_, table.id(), stretch.low, read);
  }
  if (const Timestamp read = table.last_read(); read > txn_.timestamp_ || !table.open()) {
    return Conflict(engine_, AbortReason::kTableReadLater, txn_.timestamp_, table.id(), stretch.low, read);
  }
  return Status::Ok();
}

bool ScanPath::GatherFrom(TransactionRecord& record, TableId table, const Stretch& stretch) {
  if (&record != txn_.record_) {
    // Equality is no other transaction's, save for a snapshot: it may read below the very timestamp of the oldest writer.
    if (record.timestamp() >= txn_.timestamp_ || record.collected()) return true;
    switch (record.status()) {
      case TransactionStatus::kAborted:
        return true;
      case TransactionStatus::kActive:
      case TransactionStatus::kCommitting:
        if (!DEUT_OMITTED("R2.look")) FindPending(record, table, stretch);
        return !pending_.at_once;
      case TransactionStatus::kCommitted:
        break;
    }
  }
  const bool own = &record == txn_.record_;
  if (GatherKeys(record.write_set(), table, stretch, !own) && !own) txn_.DependOn(record.commit_lsn());
  return true;
}

void ScanPath::FindPending(TransactionRecord& writer, TableId table, const Stretch& stretch) {
  if (engine_.range_precision == RangePrecision::kRanges) {
    pending_ = Pending{.writer = &writer, .at_once = true};
    return;
  }
  bool any = false;
  // Published, installed or not; declared (R11), which are checked against last_read no more: so the writer's status decides, not the chain.
  writer.write_set().ForEach([&](const WriteItem& item) {
    if (item.table != table || !Inside(item.key, stretch.low, stretch.high)) return;
    any = true;
    if (pending_.writer == nullptr || Before(item.key, pending_.key)) pending_ = {.writer = &writer, .key = item.key};
  });
  if (!any) engine_.counters.writers_passed.fetch_add(1, std::memory_order_relaxed);
}

bool ScanPath::EndBeforePending(Stretch* stretch) {
  if (pending_.at_once) return false;
  if (DEUT_OMITTED("R8.end_before")) return true;
  if (ascending()) {
    if (stretch->low == pending_.key) return false;
    stretch->high = pending_.key;
  } else {
    std::string after = Successor(pending_.key);
    if (stretch->high == after) return false;
    stretch->low = std::move(after);
  }
  engine_.counters.pending_keys.fetch_add(1, std::memory_order_relaxed);
  std::erase_if(candidates_, [&](const Candidate& c) { return !Inside(c.key, stretch->low, stretch->high); });
  return true;
}

bool ScanPath::GatherKeys(const WriteSet& writes, TableId table, const Stretch& stretch, bool final) {
  const size_t before = candidates_.size();
  const std::vector<WriteSet::Key>* sorted = nullptr;
  if (final && writes.size() >= WriteSet::kWorthSorting) {
    sorted = writes.sorted();
    if (sorted == nullptr && may_sort_ > 0) {
      sorted = &writes.Sort();
      may_sort_ -= static_cast<int64_t>(sorted->size());
    }
  }
  if (sorted == nullptr) {
    writes.ForEach([&](const WriteItem& item) {
      if (item.table == table && Inside(item.key, stretch.low, stretch.high))
        candidates_.push_back({.key = item.key, .hash = item.hash});
    });
    return candidates_.size() > before;
  }
  const auto begin = std::partition_point(sorted->begin(), sorted->end(), [&](const WriteSet::Key& key) {
    return key.table < table || (key.table == table && key.key < stretch.low);
  });
  const auto end = std::partition_point(begin, sorted->end(), [&](const WriteSet::Key& key) {
    return key.table == table && Inside(key.key, stretch.low, stretch.high);
  });
  // One more than is kept, so that the cut is seen.
  const auto count = std::min<ptrdiff_t>(end - begin, static_cast<ptrdiff_t>(MostKept()) + 1);
  const auto first = ascending() ? begin : end - count;
  for (auto it = first; it != first + count; ++it) candidates_.push_back({.key = it->key, .hash = it->hash});
  return count > 0;
}

size_t ScanPath::MostKept() const {
  if (scan_.limit_records == 0) return kMaxGathered;
  const size_t left = scan_.limit_records - result_->records.size();
  return std::clamp(2 * left, kMinGathered, kMaxGathered);
}

void ScanPath::SortAndCut(Stretch* stretch) {
  const auto before = [this](const Candidate& a, const Candidate& b) { return Before(a.key, b.key); };
  if (candidates_.size() > MostKept()) {
    const auto last = candidates_.begin() + static_cast<ptrdiff_t>(MostKept());
    std::nth_element(candidates_.begin(), last, candidates_.end(), before);
    const std::string_view key = last->key;
    if (ascending()) {
      stretch->high = Successor(key);
    } else {
      stretch->low = key;
    }
    std::erase_if(candidates_, [&](const Candidate& candidate) { return Before(key, candidate.key); });
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
  stretch->keys.reserve(candidates_.size());
  for (const Candidate& candidate : candidates_) {
    if (!stretch->keys.empty() && stretch->keys.back().key == candidate.key) continue;
    Gathered& gathered = stretch->keys.emplace_back();
    gathered.key.assign(candidate.key);
    gathered.hash = candidate.hash;
  }
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
      const auto covers = [&](const Gathered& g) {
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
      Gathered& gathered = stretch.keys[i];
      gathered.kind = Gathered::Kind::kAskDc;
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
      gathered.kind = visible.version->tombstone ? Gathered::Kind::kTombstone : Gathered::Kind::kValue;
      gathered.version = visible.version->version();
      gathered.value.assign(visible.version->value());
    }
  }
  if (ask == 0 || DEUT_OMITTED("S5.ask_again") || !DcKnows(engine_, table)) return Status::Ok();
  engine_.counters.asked_again.fetch_add(ask, std::memory_order_relaxed);
  *again = std::vector<DataRequest>(ask);
  std::vector<DataRequest*> requests;
  for (size_t i = begin; i < end; ++i) {
    Gathered& gathered = stretch.keys[i];
    if (gathered.kind != Gathered::Kind::kAskDc) continue;
    DataRequest& request = (*again)[requests.size()];
    request.table = table.id();
    request.key = gathered.key;
    gathered.again = &request;
    requests.push_back(&request);
  }
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(absl::MakeSpan(requests), deadline_));
  for (size_t i = begin; i < end; ++i) {
    Gathered& gathered = stretch.keys[i];
    if (gathered.again == nullptr || gathered.kind != Gathered::Kind::kAskDc) continue;
    DEUT_RETURN_IF_ERROR(gathered.again->status);
    gathered.kind = Gathered::Kind::kTombstone;    // the DC has nothing
    gathered.version = Version{kMaxTimestamp, 0};  // and what it says now is newer than what it said before
    for (RecordBatch::Iterator it(gathered.again->answer); it.Valid(); it.Next()) {
      DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), txn_.timestamp_));
      gathered.kind = Gathered::Kind::kValue;
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
    low_ = Successor(key);
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
  const auto emit_gathered = [&](const Gathered& g) {
    if (g.kind != Gathered::Kind::kValue) return;
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
      const Gathered& gathered = stretch.keys[k++];
      const bool tc_wins = gathered.kind != Gathered::Kind::kAskDc && gathered.version > record.version;
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
