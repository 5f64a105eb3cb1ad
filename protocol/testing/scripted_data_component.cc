#include "protocol/testing/scripted_data_component.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace deut::testing {

class ScriptedDataComponent::Scan final : public ScanStream {
 public:
  Scan(ScriptedDataComponent& owner, const ScanSpec& spec) : owner_(owner), spec_(spec) {
    MutexLock lock(owner_.mutex_);
    ++owner_.scans_;
  }
  ~Scan() override {
    MutexLock lock(owner_.mutex_);
    --owner_.scans_;
  }

  Status Grant(std::string_view bound, uint64_t bytes) override {
    bound_ = bound;
    credit_ += bytes;
    MutexLock lock(owner_.mutex_);
    owner_.granted_bytes_ += bytes;
    owner_.granted_bound_ = bound;
    return Status::Ok();
  }

  Status Next(ScanBatch* batch, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(owner_.await_window(deadline));
    const bool ascending = spec_.direction == Direction::kAscending;
    const bool bounded = !bound_.empty() &&
                         (ascending ? spec_.range.high.empty() || bound_ < spec_.range.high : bound_ > spec_.range.low);
    if (credit_ == 0) return Status(ErrorCode::kWrongState, "nothing is granted");
    batch->records.Clear();
    owner_.ReadRange(spec_.table, ascending || !bounded ? spec_.range.low : bound_,
                     ascending && bounded ? bound_ : spec_.range.high, spec_.direction, 0,
                     std::min<uint64_t>(credit_, spec_.batch_bytes), &batch->records, &batch->complete,
                     &batch->covered);
    if (batch->complete && bounded) {
      batch->complete = false;
      batch->covered = bound_;
    }
    credit_ -= std::min<uint64_t>(credit_, batch->records.bytes().size());
    (ascending ? spec_.range.low : spec_.range.high) = batch->covered;
    return Status::Ok();
  }

 private:
  ScriptedDataComponent& owner_;
  ScanSpec spec_;  // its range shrinks to the unread part
  std::string bound_;
  uint64_t credit_ = 0;
};

class ScriptedDataComponent::ApplyLog final : public ApplyLogStream {
 public:
  ApplyLog(ScriptedDataComponent& owner, ApplyLogListener* listener) : owner_(owner), listener_(listener) {}
  ~ApplyLog() override {
    Close(Status(ErrorCode::kCancelled, "destroyed"));
    MutexLock lock(owner_.mutex_);
    --owner_.apply_logs_;
    if (owner_.current_log_ == this) owner_.current_log_ = nullptr;
  }

  Status Send(const LogBatch& batch, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(owner_.await_window(deadline));
    DEUT_RETURN_IF_ERROR(owner_.on_batch(batch));
    ApplyAck ack{.incarnation = owner_.incarnation_, .applied = batch.to, .stable = batch.from, .free_bytes = 1 << 30};
    {
      MutexLock lock(owner_.mutex_);
      if (owner_.current_log_ != this) return Status(ErrorCode::kUnavailable, "replaced by another log stream");
      for (LogBatch::Iterator it(batch); it.Valid(); it.Next()) {
        const LogEntryView& entry = it.entry();
        Records& records = owner_.tables_[entry.table];
        if (entry.kind == LogEntryKind::kPut) records[std::string(entry.key)] = entry.value;
        if (entry.kind == LogEntryKind::kDelete) records.erase(std::string(entry.key));
      }
      owner_.applied_ = batch.to;
    }
    listener_->OnAck(ack);
    return Status::Ok();
  }

  void Close(const Status& status) {
    if (!closed_.exchange(true)) listener_->OnClosed(status);
  }

 private:
  ScriptedDataComponent& owner_;
  ApplyLogListener* const listener_;
  std::atomic<bool> closed_{false};
};

ScriptedDataComponent::ScriptedDataComponent(Runtime& runtime, uint64_t incarnation)
    : runtime_(runtime), incarnation_(incarnation), mutex_(runtime) {}

ScriptedDataComponent::~ScriptedDataComponent() {
  std::vector<DataRequest*> held;
  {
    MutexLock lock(mutex_);
    held.swap(held_);
    DEUT_CHECK(scans_ == 0 && apply_logs_ == 0);
  }
  for (DataRequest* request : held) {
    request->status = Status(ErrorCode::kUnavailable, "the data component ends");
    request->Finish(runtime_);
  }
}

void ScriptedDataComponent::Put(TableId table, const std::string& key, const std::string& value) {
  MutexLock lock(mutex_);
  tables_[table][key] = value;
  names_.emplace(table, "table" + std::to_string(table.value));
}

size_t ScriptedDataComponent::Release() {
  std::vector<DataRequest*> held;
  {
    MutexLock lock(mutex_);
    held.swap(held_);
  }
  for (auto it = held.rbegin(); it != held.rend(); ++it) Answer(*it);
  return held.size();
}

size_t ScriptedDataComponent::held() {
  MutexLock lock(mutex_);
  return held_.size();
}

size_t ScriptedDataComponent::abandoned() {
  MutexLock lock(mutex_);
  return abandoned_;
}

size_t ScriptedDataComponent::apply_logs() {
  MutexLock lock(mutex_);
  return apply_logs_;
}

size_t ScriptedDataComponent::scans() {
  MutexLock lock(mutex_);
  return scans_;
}

uint64_t ScriptedDataComponent::granted_bytes() {
  MutexLock lock(mutex_);
  return granted_bytes_;
}

std::string ScriptedDataComponent::granted_bound() {
  MutexLock lock(mutex_);
  return granted_bound_;
}

std::map<std::string, std::string> ScriptedDataComponent::Contents(TableId table) {
  MutexLock lock(mutex_);
  return tables_[table];
}

void ScriptedDataComponent::CloseApplyLog(const Status& status) {
  MutexLock lock(mutex_);
  DEUT_CHECK(current_log_ != nullptr);
  current_log_->Close(status);
  current_log_ = nullptr;
}

Result<HelloAnswer> ScriptedDataComponent::Hello(const HelloRequest& request, Deadline) {
  DEUT_RETURN_IF_ERROR(check_hello(request));
  MutexLock lock(mutex_);
  return HelloAnswer{.dc = DcId(77),
                     .incarnation = incarnation_,
                     .applied = applied_,
                     .stable = Position(),
                     .free_bytes = 1 << 30,
                     .tables = TablesLocked()};
}

void ScriptedDataComponent::Submit(absl::Span<DataRequest* const> requests) {
  for (DataRequest* request : requests) {
    if (hold(*request)) {
      MutexLock lock(mutex_);
      held_.push_back(request);
    } else {
      Answer(request);
    }
  }
}

void ScriptedDataComponent::Abandon(DataRequest* request) {
  MutexLock lock(mutex_);
  const auto found = std::find(held_.begin(), held_.end(), request);
  if (found == held_.end()) return;
  held_.erase(found);
  ++abandoned_;
}

void ScriptedDataComponent::Answer(DataRequest* request) {
  reads_.fetch_add(1);
  request->answer.Clear();
  request->answered_by = incarnation_;
  request->status = check_sender(request->sender);
  if (request->status.ok() && request->sender.incarnation != incarnation_) {
    request->status = Status(ErrorCode::kWrongIncarnation, "meant for another life");
  }
  if (!request->status.ok()) {
    request->Finish(runtime_);
    return;
  }
  if (request->kind == DataRequest::Kind::kScan) {
    ReadRange(request->table, request->low, request->high, request->direction, request->limit_records,
              request->limit_bytes, &request->answer, &request->complete, &request->covered);
  } else {
    MutexLock lock(mutex_);
    const Records& records = tables_[request->table];
    const auto found = records.find(std::string(request->key));
    if (found != records.end()) request->answer.Append(found->first, found->second, Version{Timestamp(9), 1});
  }
  request->Finish(runtime_);
}

void ScriptedDataComponent::ReadRange(TableId table, std::string_view low, std::string_view high, Direction direction,
                                      uint32_t limit_records, uint64_t limit_bytes, RecordBatch* out, bool* complete,
                                      std::string* covered) {
  MutexLock lock(mutex_);
  const Records& records = tables_[table];
  std::vector<const Records::value_type*> inside;
  for (const auto& record : records) {
    if (record.first >= low && (high.empty() || record.first < high)) inside.push_back(&record);
  }
  if (direction == Direction::kDescending) std::reverse(inside.begin(), inside.end());
  *complete = true;
  covered->assign(direction == Direction::kAscending ? high : low);
  for (size_t i = 0; i < inside.size(); ++i) {
    if (!out->empty() && ((limit_records != 0 && out->size() >= limit_records) || out->bytes().size() >= limit_bytes)) {
      *complete = false;
      *covered = direction == Direction::kAscending ? inside[i]->first : inside[i - 1]->first;
      return;
    }
    out->Append(inside[i]->first, inside[i]->second, Version{Timestamp(9), 1});
  }
}

Result<std::unique_ptr<ScanStream>> ScriptedDataComponent::OpenScan(const Sender& sender, const ScanSpec& spec,
                                                                    Deadline) {
  DEUT_RETURN_IF_ERROR(check_sender(sender));
  return std::unique_ptr<ScanStream>(new Scan(*this, spec));
}

Result<std::unique_ptr<ApplyLogStream>> ScriptedDataComponent::OpenApplyLog(const Sender& sender,
                                                                            ApplyLogListener* listener, Deadline) {
  DEUT_RETURN_IF_ERROR(check_sender(sender));
  auto log = std::make_unique<ApplyLog>(*this, listener);
  MutexLock lock(mutex_);
  ++apply_logs_;
  if (current_log_ != nullptr) current_log_->Close(Status(ErrorCode::kUnavailable, "replaced by another log stream"));
  current_log_ = log.get();
  return std::unique_ptr<ApplyLogStream>(std::move(log));
}

Result<std::vector<std::string>> ScriptedDataComponent::Partition(const Sender& sender, TableId table, uint32_t n,
                                                                  Deadline) {
  DEUT_RETURN_IF_ERROR(check_sender(sender));
  MutexLock lock(mutex_);
  const Records& records = tables_[table];
  std::vector<std::string> keys;
  size_t i = 0;
  for (const auto& [key, value] : records) {
    if (++i > 1 && keys.size() + 1 < n) keys.push_back(key);
  }
  return keys;
}

std::vector<TableInfo> ScriptedDataComponent::TablesLocked() {
  std::vector<TableInfo> tables;
  for (const auto& [id, name] : names_) {
    tables.push_back(TableInfo{.id = id, .name = name, .records = tables_[id].size(), .bytes = 100});
  }
  return tables;
}

Result<std::vector<TableInfo>> ScriptedDataComponent::Tables(const Sender& sender, Deadline) {
  DEUT_RETURN_IF_ERROR(check_sender(sender));
  MutexLock lock(mutex_);
  return TablesLocked();
}

Result<std::vector<CounterValue>> ScriptedDataComponent::Counters(Deadline) {
  return std::vector<CounterValue>{CounterValue{.name = "reads", .value = reads_.load()}};
}

}  // namespace deut::testing
