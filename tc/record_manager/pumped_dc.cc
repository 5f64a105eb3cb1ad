#include "tc/record_manager/pumped_dc.h"

#include <algorithm>
#include <deque>

#include "common/base/check.h"

namespace deut::tc {

// One bulk scan. It holds the batches that it has read.
class PumpedDc::Scan final : public ScanStream {
 public:
  Scan(PumpedDc& dc, ScanSpec spec, bool reads_ahead)
      : dc_(dc), spec_(std::move(spec)), reads_ahead_(reads_ahead), left_(spec_.range) {}
  ~Scan() override {
    MutexLock lock(dc_.mutex_);
    --dc_.seen_.open_scans;
  }

  Status Grant(std::string_view bound, uint64_t bytes) override {
    MutexLock lock(dc_.mutex_);
    DEUT_RETURN_IF_ERROR(FailLocked());
    bound_ = bound;
    credit_ += bytes;
    dc_.seen_.granted_bytes += bytes;
    dc_.seen_.granted_bound = bound_;
    while (reads_ahead_ && MayReadLocked()) ReadLocked();
    return Status::Ok();
  }

  Status Next(ScanBatch* batch, Deadline) override {
    MutexLock lock(dc_.mutex_);
    DEUT_RETURN_IF_ERROR(FailLocked());
    if (batches_.empty() && MayReadLocked()) ReadLocked();
    if (batches_.empty()) return DEUT_ERROR(kWrongState, "the scan's grant is used up");
    if (!error_.ok()) return error_;
    *batch = std::move(batches_.front());
    batches_.pop_front();
    return Status::Ok();
  }

  bool ReadsAhead() const override { return reads_ahead_; }

 private:
  bool ascending() const { return spec_.direction == Direction::kAscending; }
  Status FailLocked() DEUT_REQUIRES(dc_.mutex_) {
    if (dc_.behaviour_.scan_errors == 0) return Status::Ok();
    --dc_.behaviour_.scan_errors;
    return dc_.behaviour_.scan_error;
  }
  bool MayReadLocked() const DEUT_REQUIRES(dc_.mutex_) {
    if (complete_ || credit_ == 0 || !error_.ok()) return false;
    if (bound_.empty()) return true;
    return ascending() ? left_.low < bound_ : left_.high.empty() || left_.high > bound_;
  }
  void ReadLocked() DEUT_REQUIRES(dc_.mutex_) {
    if (dc_.applied_ < dc_.ever_applied_) dc_.PumpLocked(UINT64_MAX, dc_.ever_applied_);
    DataRequest request;
    request.kind = DataRequest::Kind::kScan;
    request.table = spec_.table;
    std::string& end = ascending() ? left_.high : left_.low;
    const bool inside = !bound_.empty() && (end.empty() || (ascending() ? bound_ < end : bound_ > end));
    request.low = ascending() || !inside ? left_.low : bound_;
    request.high = ascending() && inside ? bound_ : left_.high;
    request.direction = spec_.direction;
    request.limit_bytes = static_cast<uint32_t>(std::min<uint64_t>(spec_.batch_bytes, credit_));
    dc_.AnswerLocked(&request);
    error_ = request.status;
    ScanBatch& batch = batches_.emplace_back();
    credit_ -= std::min<uint64_t>(credit_, request.answer.bytes().size());
    batch.records = std::move(request.answer);
    if (request.complete) {
      complete_ = batch.complete = !inside;
      request.covered = inside ? bound_ : end;
    }
    batch.covered = request.covered;
    (ascending() ? left_.low : left_.high) = request.covered;
  }

  PumpedDc& dc_;
  const ScanSpec spec_;
  const bool reads_ahead_;
  KeyRange left_;
  std::string bound_;
  uint64_t credit_ = 0;
  bool complete_ = false;
  Status error_;
  std::deque<ScanBatch> batches_;
};

PumpedDc::PumpedDc(Runtime& runtime, RedoLog& log, ActiveTransactions& active)
    : runtime_(runtime),
      log_(log),
      active_(active),
      first_(log.first_lsn()),
      mutex_(runtime),
      reader_(log.NewReader(first_)) {}

void PumpedDc::AddTable(TableId table) {
  MutexLock lock(mutex_);
  tables_.insert(table.value);
  old_tables_.insert(table.value);
}

uint64_t PumpedDc::Pump(uint64_t commits) {
  MutexLock lock(mutex_);
  return PumpLocked(commits, Position{});
}

uint64_t PumpedDc::PumpLocked(uint64_t commits, Position at_least) {
  const Timestamp low_water = active_.AdvanceNow();
  const Lsn tail = log_.tail();
  uint64_t applied = 0;
  while (reader_->position() < tail && applied < commits) {
    LogRecord record;
    const Status read = reader_->Next(&record, runtime_.Now() + seconds(20));
    if (!read.ok()) FailStop(read.ToString());
    if (record.type != RecordType::kCommit) continue;
    // S1. Commits that an earlier incarnation had applied were below low-water then.
    const Position position{record.lsn, UINT32_MAX};
    if (record.timestamp >= low_water && position > at_least) {
      reader_->Seek(record.lsn);
      break;
    }
    for (size_t i = 0; i < record.chunks.size(); ++i) {
      LogRecord chunk;
      const Status chunk_read = reader_->ReadChunk(record, record.chunks[i], &chunk);
      if (!chunk_read.ok()) FailStop(chunk_read.ToString());
      ApplyLocked(record, chunk.updates);
    }
    ApplyLocked(record, record.updates);
    applied_ = position;
    ever_applied_ = std::max(ever_applied_, applied_);
    ++applied;
  }
  return applied;
}

void PumpedDc::ApplyLocked(const LogRecord& record, const UpdateList& updates) {
  for (const Update& update : updates) {
    if (update.kind == LogEntryKind::kCreateTable) {
      tables_.insert(update.table.value);
      options_[update.table.value] = std::string(update.value);
      continue;
    }
    if (update.kind == LogEntryKind::kDropTable) {
      tables_.erase(update.table.value);
      dropped_.insert(update.table.value);
      records_.erase(records_.lower_bound(Key(update.table.value, "")),
                     records_.lower_bound(Key(update.table.value + 1, "")));
      continue;
    }
    if (dropped_.contains(update.table.value)) continue;
    DEUT_CHECK(tables_.contains(update.table.value));
    const Key key(update.table.value, std::string(update.key));
    const Version version{record.timestamp, update.sequence};
    const auto found = records_.find(key);
    DEUT_CHECK(found == records_.end() || found->second.version < version);  // X2: log order is timestamp order
    if (update.kind == LogEntryKind::kDelete) {
      records_.erase(key);
    } else {
      records_[key] = Record{version, std::string(update.value)};
    }
  }
}

void PumpedDc::Restart() {
  MutexLock lock(mutex_);
  records_.clear();
  tables_ = old_tables_;
  dropped_.clear();
  applied_ = Position{};
  reader_->Seek(first_);
}

void PumpedDc::TrimLog() {
  MutexLock lock(mutex_);
  const Lsn to = std::min(reader_->position(), log_.durable());
  if (to <= log_.redo_start().lsn) return;
  const Status trimmed = log_.AdvanceRedoStart(RedoStart{to, {}}, runtime_.Now() + seconds(20));
  if (!trimmed.ok()) FailStop(trimmed.ToString());
}

void PumpedDc::set_error(const Status& error) {
  MutexLock lock(mutex_);
  behaviour_.error = error;
}

void PumpedDc::SetTimestamp(TableId table, const std::string& key, Timestamp timestamp) {
  MutexLock lock(mutex_);
  records_.at(Key(table.value, key)).version.timestamp = timestamp;
}

void PumpedDc::set_has_space(bool has_space) {
  MutexLock lock(mutex_);
  behaviour_.has_space = has_space;
}

void PumpedDc::set_knows_table_options(bool knows_table_options) {
  MutexLock lock(mutex_);
  behaviour_.knows_table_options = knows_table_options;
}

std::string PumpedDc::OptionsOf(TableId table) {
  MutexLock lock(mutex_);
  return options_.at(table.value);
}

void PumpedDc::LoseAsked(bool lose) {
  MutexLock lock(mutex_);
  behaviour_.loses_asked = lose;
}

void PumpedDc::set_scan_records(uint32_t records) {
  MutexLock lock(mutex_);
  behaviour_.scan_records = records;
}

void PumpedDc::AlterScans(std::function<void(DataRequest*)> alter) {
  MutexLock lock(mutex_);
  behaviour_.alter_scans = std::move(alter);
}

void PumpedDc::set_reads_ahead(bool reads_ahead) {
  MutexLock lock(mutex_);
  behaviour_.reads_ahead = reads_ahead;
}

void PumpedDc::FailScans(const Status& error, uint64_t times) {
  MutexLock lock(mutex_);
  behaviour_.scan_error = error;
  behaviour_.scan_errors = times;
}

uint64_t PumpedDc::open_scans() {
  MutexLock lock(mutex_);
  return seen_.open_scans;
}

uint64_t PumpedDc::scans_opened() {
  MutexLock lock(mutex_);
  return seen_.scans_opened;
}

uint64_t PumpedDc::granted_bytes() {
  MutexLock lock(mutex_);
  return seen_.granted_bytes;
}

std::string PumpedDc::granted_bound() {
  MutexLock lock(mutex_);
  return seen_.granted_bound;
}

uint64_t PumpedDc::requests() {
  MutexLock lock(mutex_);
  return seen_.requests;
}

size_t PumpedDc::records() {
  MutexLock lock(mutex_);
  return records_.size();
}

Status PumpedDc::Read(absl::Span<DataRequest* const> requests, Deadline) {
  MutexLock lock(mutex_);
  if (!behaviour_.error.ok()) return behaviour_.error;
  if (applied_ < ever_applied_) PumpLocked(UINT64_MAX, ever_applied_);
  for (DataRequest* request : requests) {
    ++seen_.requests;
    AnswerLocked(request);
  }
  return Status::Ok();
}

void PumpedDc::CollectReads(absl::Span<DataRequest* const> requests, Deadline) {
  MutexLock lock(mutex_);
  if (!behaviour_.loses_asked) return;
  for (DataRequest* const request : requests) request->status = DEUT_ERROR(kDeadlineExceeded, "not in time");
}

void PumpedDc::AnswerLocked(DataRequest* request) {
  request->answer.Clear();
  request->covered.clear();
  request->complete = false;
  if (!tables_.contains(request->table.value)) {
    request->status = DEUT_ERROR(kNotFound, "the DC knows no table ", request->table.value);
    return;
  }
  request->status = Status::Ok();
  if (request->kind == DataRequest::Kind::kScan) {
    ScanLocked(request);
    if (behaviour_.alter_scans) behaviour_.alter_scans(request);
    return;
  }
  const auto found = records_.find(Key(request->table.value, std::string(request->key)));
  if (found != records_.end()) request->answer.Append(request->key, found->second.value, found->second.version);
}

void PumpedDc::ScanLocked(DataRequest* request) {
  const bool ascending = request->direction == Direction::kAscending;
  const uint32_t table = request->table.value;
  auto begin = records_.lower_bound(Key(table, std::string(request->low)));
  auto end = request->high.empty() ? records_.lower_bound(Key(table + 1, ""))
                                   : records_.lower_bound(Key(table, std::string(request->high)));
  uint64_t limit = request->limit_records == 0 ? UINT64_MAX : request->limit_records;
  if (behaviour_.scan_records != 0) limit = std::min<uint64_t>(limit, behaviour_.scan_records);
  if (!request->high.empty() && request->low >= request->high) end = begin;
  while (begin != end) {
    const auto at = ascending ? begin : std::prev(end);
    if (!request->answer.empty() &&
        (request->answer.size() >= limit || request->answer.bytes().size() >= request->limit_bytes)) {
      return;
    }
    request->answer.Append(at->first.second, at->second.value, at->second.version);
    request->covered = ascending ? at->first.second + '\0' : at->first.second;
    if (ascending) {
      ++begin;
    } else {
      end = at;
    }
  }
  request->complete = true;
}

void PumpedDc::set_refuses_scans(bool refuses_scans) {
  MutexLock lock(mutex_);
  behaviour_.refuses_scans = refuses_scans;
}

Result<std::unique_ptr<ScanStream>> PumpedDc::OpenScan(const ScanSpec& spec, Deadline) {
  MutexLock lock(mutex_);
  if (!behaviour_.error.ok()) return behaviour_.error;
  if (behaviour_.refuses_scans) return DEUT_ERROR(kResourceExhausted, "no thread is left for a scan");
  ++seen_.open_scans;
  ++seen_.scans_opened;
  return std::unique_ptr<ScanStream>(std::make_unique<Scan>(*this, spec, behaviour_.reads_ahead));
}

Position PumpedDc::applied() const {
  MutexLock lock(mutex_);
  return applied_;
}

bool PumpedDc::HasSpace(uint64_t) const {
  MutexLock lock(mutex_);
  return behaviour_.has_space;
}

bool PumpedDc::KnowsTableOptions() const {
  MutexLock lock(mutex_);
  return behaviour_.knows_table_options;
}

}  // namespace deut::tc
