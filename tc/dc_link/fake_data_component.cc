#include "tc/dc_link/fake_data_component.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace deut::tc {
namespace {

constexpr uint64_t kIncarnationOffset = 100;  // incarnations are no small numbers that could be confused with counts

}  // namespace

class FakeDataComponent::Stream final : public ApplyLogStream {
 public:
  Stream(FakeDataComponent& dc, ApplyLogListener* listener) : dc_(dc), listener_(listener) {}
  ~Stream() override {
    MutexLock lock(dc_.mutex_);
    if (dc_.stream_ == this) dc_.CloseStreamLocked(DEUT_ERROR(kCancelled, "the stream was destroyed"));
  }

  Status Send(const LogBatch& batch, Deadline) override {
    MutexLock lock(dc_.mutex_);
    if (dc_.stream_ != this) return DEUT_ERROR(kUnavailable, "the stream is closed");
    if (dc_.on_send_) dc_.on_send_(batch);
    ++dc_.counts_.batches;
    dc_.log_durable_ = std::max(dc_.log_durable_, batch.durable);
    dc_.queue_.push_back(batch);
    dc_.changes_.Bump();
    return Status::Ok();
  }

  ApplyLogListener* listener() { return listener_; }

 private:
  FakeDataComponent& dc_;
  ApplyLogListener* const listener_;
};

// Reads the map when Next is called, only inside the grant (S4).
class FakeDataComponent::Scan final : public ScanStream {
 public:
  Scan(FakeDataComponent& dc, DcIncarnation incarnation, ScanSpec spec)
      : dc_(dc), incarnation_(incarnation), spec_(std::move(spec)) {}

  Status Grant(std::string_view bound, uint64_t bytes) override {
    MutexLock lock(dc_.mutex_);
    DEUT_RETURN_IF_ERROR(CheckLifeLocked());
    granted_ = true;
    bound_ = bound;
    bytes_ += bytes;
    return Status::Ok();
  }

  Status Next(ScanBatch* batch, Deadline deadline) override {
    for (;;) {
      const uint32_t seen = dc_.changes_.seen();
      {
        MutexLock lock(dc_.mutex_);
        DEUT_RETURN_IF_ERROR(CheckLifeLocked());
        if (granted_ && bytes_ > 0 && !dc_.hold_reads_) {
          NextLocked(batch);
          return Status::Ok();
        }
      }
      if (!dc_.changes_.Wait(seen, deadline)) return DEUT_ERROR(kDeadlineExceeded, "nothing granted is left");
    }
  }

 private:
  Status CheckLifeLocked() const DEUT_REQUIRES(dc_.mutex_) {
    if (!dc_.alive_) return DEUT_ERROR(kUnavailable, "the DC is down");
    if (dc_.incarnations_ + kIncarnationOffset != incarnation_.value)
      return DEUT_ERROR(kWrongIncarnation, "the scan's DC has ended");
    return Status::Ok();
  }

  void NextLocked(ScanBatch* batch) DEUT_REQUIRES(dc_.mutex_) {
    batch->records.Clear();
    const bool ascending = spec_.direction == Direction::kAscending;
    KeyRange granted = spec_.range;
    bool whole = bound_.empty();
    if (ascending) {
      whole = whole || (!granted.high.empty() && bound_ >= granted.high);
      if (!whole) granted.high = bound_;
    } else {
      whole = whole || bound_ <= granted.low;
      if (!whole) granted.low = bound_;
    }
    const uint64_t limit = std::min<uint64_t>(spec_.batch_bytes, bytes_);
    dc_.memory_.Scan(spec_.table, granted.low, granted.high, spec_.direction, 0, limit, &batch->records,
                     &batch->complete, &batch->covered);
    if (batch->complete && !whole) {
      batch->complete = false;
      batch->covered = bound_;
    }
    bytes_ -= std::min<uint64_t>(bytes_, batch->records.bytes().size());
    (ascending ? spec_.range.low : spec_.range.high) = batch->covered;
  }

  FakeDataComponent& dc_;
  const DcIncarnation incarnation_;
  ScanSpec spec_;
  bool granted_ = false;
  std::string bound_;
  uint64_t bytes_ = 0;
};

FakeDataComponent::FakeDataComponent(Runtime& runtime, DcId id)
    : runtime_(runtime), id_(id), changes_(runtime), mutex_(runtime) {
  thread_ = runtime_.StartThread("fake-dc", [this] { Work(); });
}

FakeDataComponent::~FakeDataComponent() {
  Kill();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changes_.Bump();
  }
  thread_.reset();
}

void FakeDataComponent::Start() {
  MutexLock lock(mutex_);
  DEUT_CHECK(!alive_);
  alive_ = true;
  ++incarnations_;
  ++number_;
  memory_ = stable_;
  changes_.Bump();
}

void FakeDataComponent::Kill() {
  MutexLock lock(mutex_);
  if (!alive_) return;
  alive_ = false;
  CloseStreamLocked(DEUT_ERROR(kUnavailable, "the DC went away"));
  for (DataRequest* request : held_reads_) {
    request->status = DEUT_ERROR(kUnavailable, "the DC went away");
    request->Finish(runtime_);
  }
  held_reads_.clear();
  changes_.Bump();
}

void FakeDataComponent::MakeStable() {
  MutexLock lock(mutex_);
  stable_ = memory_;
  AckLocked();
}

void FakeDataComponent::CopyFolder() {
  MutexLock lock(mutex_);
  copy_ = stable_;
  copy_number_ = number_;
}

void FakeDataComponent::PutBackCopy() {
  MutexLock lock(mutex_);
  DEUT_CHECK(!alive_);
  stable_ = copy_;
  number_ = copy_number_;
}

void FakeDataComponent::BecomeFork(const ObeyedTc& obeyed, Position applied) {
  MutexLock lock(mutex_);
  DEUT_CHECK(!alive_);
  tc_ = obeyed.tc;
  epoch_ = obeyed.epoch;
  nonce_ = obeyed.nonce;
  log_durable_ = Lsn{applied.commit.value + 1};
  stable_.applied = applied;
}

void FakeDataComponent::AcceptAnyHello(bool any) {
  MutexLock lock(mutex_);
  accept_any_hello_ = any;
}

void FakeDataComponent::OnInquiry(std::function<void()> observer) {
  MutexLock lock(mutex_);
  on_inquiry_ = std::move(observer);
}

ObeyedTc FakeDataComponent::obeyed() {
  MutexLock lock(mutex_);
  return ObeyedLocked();
}

Lsn FakeDataComponent::log_durable() {
  MutexLock lock(mutex_);
  return log_durable_;
}

void FakeDataComponent::LoseStable(Position left) {
  MutexLock lock(mutex_);
  stable_ = FakeImage{};
  stable_.applied = left;
}

void FakeDataComponent::HoldApply(bool hold) {
  MutexLock lock(mutex_);
  hold_apply_ = hold;
  changes_.Bump();
}

void FakeDataComponent::HoldAcks(bool hold) {
  MutexLock lock(mutex_);
  hold_acks_ = hold;
}

void FakeDataComponent::DeliverHeldAcks() {
  MutexLock lock(mutex_);
  for (const ApplyAck& ack : held_acks_) {
    if (stream_ != nullptr) stream_->listener()->OnAck(ack);
  }
  held_acks_.clear();
}

void FakeDataComponent::LoseAcks(bool lose) {
  MutexLock lock(mutex_);
  lose_acks_ = lose;
}

void FakeDataComponent::DuplicateAcks(bool duplicate) {
  MutexLock lock(mutex_);
  duplicate_acks_ = duplicate;
}

void FakeDataComponent::HoldReads(bool hold) {
  MutexLock lock(mutex_);
  hold_reads_ = hold;
  if (!hold) {
    for (DataRequest* request : held_reads_) AnswerLocked(request);
    held_reads_.clear();
  }
  changes_.Bump();
}

void FakeDataComponent::AnswerReadsAs(DcIncarnation other) {
  MutexLock lock(mutex_);
  answer_as_ = other;
}

void FakeDataComponent::BreakStream(const Status& status) {
  MutexLock lock(mutex_);
  CloseStreamLocked(status);
}

void FakeDataComponent::RefuseStreams(const Status& status) {
  MutexLock lock(mutex_);
  refuse_streams_ = status;
}

void FakeDataComponent::AnswerDirectly(std::function<bool(std::string_view)> in_memory) {
  MutexLock lock(mutex_);
  in_memory_ = std::move(in_memory);
}

// Direct reads for one sender and one incarnation, checked as its requests are.
class FakeDataComponent::Direct final : public DirectReads {
 public:
  Direct(FakeDataComponent& dc, const Sender& sender) : dc_(dc), sender_(sender) {}

  Answered TryAnswer(absl::Span<DataRequest* const> requests) override {
    MutexLock lock(dc_.mutex_);
    if (!dc_.in_memory_ || !dc_.CheckSenderLocked(sender_).ok()) return Answered::kNone;
    bool all = true;
    for (DataRequest* const request : requests) {
      request->answer.Clear();
      request->missed_in_memory = !dc_.in_memory_(request->key);
      all = all && !request->missed_in_memory;
      if (!request->missed_in_memory) dc_.FindLocked(request);
    }
    return all ? Answered::kAll : Answered::kSome;
  }

 private:
  FakeDataComponent& dc_;
  const Sender sender_;
};

std::shared_ptr<DirectReads> FakeDataComponent::OpenReads(const Sender& sender) {
  MutexLock lock(mutex_);
  return in_memory_ ? std::make_shared<Direct>(*this, sender) : nullptr;
}

void FakeDataComponent::SendFalseAck(const ApplyAck& ack) {
  MutexLock lock(mutex_);
  if (stream_ != nullptr) stream_->listener()->OnAck(ack);
}

void FakeDataComponent::set_free_bytes(uint64_t bytes) {
  MutexLock lock(mutex_);
  free_bytes_ = bytes;
}

void FakeDataComponent::set_extra_applied(Position applied) {
  MutexLock lock(mutex_);
  extra_applied_ = applied;
}

void FakeDataComponent::OnEntry(std::function<void(const LogEntryView&)> observer) {
  MutexLock lock(mutex_);
  on_entry_ = std::move(observer);
}

void FakeDataComponent::OnSend(std::function<void(const LogBatch&)> observer) {
  MutexLock lock(mutex_);
  on_send_ = std::move(observer);
}

HelloRequest FakeDataComponent::last_hello() {
  MutexLock lock(mutex_);
  return last_hello_;
}

FakeDataComponent::Counts FakeDataComponent::counts() {
  MutexLock lock(mutex_);
  return counts_;
}

std::vector<FakeDataComponent::Seen> FakeDataComponent::seen() {
  MutexLock lock(mutex_);
  return seen_;
}

Position FakeDataComponent::applied() {
  MutexLock lock(mutex_);
  return memory_.applied;
}

DcIncarnation FakeDataComponent::incarnation() {
  MutexLock lock(mutex_);
  return DcIncarnation{incarnations_ + kIncarnationOffset};
}

std::optional<std::string> FakeDataComponent::Get(TableId table, const std::string& key) {
  MutexLock lock(mutex_);
  const FakeImage::Record* const record = memory_.Find(table, key);
  if (record == nullptr) return std::nullopt;
  return record->value;
}

size_t FakeDataComponent::records() {
  MutexLock lock(mutex_);
  return memory_.records.size();
}

bool FakeDataComponent::WaitUntil(const std::function<bool()>& condition, Duration limit) {
  const Deadline deadline = runtime_.Now() + limit;
  for (;;) {
    const uint32_t seen = changes_.seen();
    if (condition()) return true;
    if (runtime_.Now() >= deadline) return false;
    // The condition may depend on more than this object, so it is evaluated again every 2 ms.
    changes_.Wait(seen, std::min(deadline, runtime_.Now() + milliseconds(2)));
  }
}

Status FakeDataComponent::CheckSenderLocked(const Sender& sender) {
  if (!alive_) return DEUT_ERROR(kUnavailable, "the DC is down");
  if (sender.epoch < epoch_ || (sender.epoch == epoch_ && sender.nonce != nonce_)) {
    ++counts_.refused;
    return DEUT_ERROR(kFenced, "epoch ", sender.epoch.value, " was fenced by ", epoch_.value);
  }
  if (sender.incarnation.value != incarnations_ + kIncarnationOffset) {
    return DEUT_ERROR(kWrongIncarnation, "meant for ", sender.incarnation.value, ", this is ",
                      incarnations_ + kIncarnationOffset);
  }
  return Status::Ok();
}

Status FakeDataComponent::CheckBasisLocked(const HelloRequest& request) {
  if (!request.decided_on || accept_any_hello_) return Status::Ok();
  const HelloAnswer now = AnswerHelloLocked();
  HelloBasis found{now.incarnation, now.obeyed, now.applied, now.log_durable};
  if (found.obeyed == ObeyedTc{request.tc, request.epoch, request.nonce}) {
    found.applied = request.decided_on->applied;
    found.log_durable = request.decided_on->log_durable;
  }
  return found == *request.decided_on ? Status::Ok() : DEUT_ERROR(kUnavailable, "decided on something else");
}

Result<HelloAnswer> FakeDataComponent::Hello(const HelloRequest& request, Deadline) {
  Result<HelloAnswer> answer = AnswerHello(request);
  std::function<void()> asked;
  {
    MutexLock lock(mutex_);
    if (request.inquiry && answer.ok()) asked = on_inquiry_;
  }
  if (asked) asked();
  return answer;
}

Result<HelloAnswer> FakeDataComponent::AnswerHello(const HelloRequest& request) {
  MutexLock lock(mutex_);
  changes_.Bump();
  last_hello_ = request;
  if (!request.inquiry) ++counts_.hellos;
  if (!alive_) return DEUT_ERROR(kUnavailable, "the DC is down");
  if (request.inquiry) return AnswerHelloLocked();
  if (request.epoch < epoch_ || (request.epoch == epoch_ && request.nonce != nonce_)) {
    ++counts_.refused;
    return DEUT_ERROR(kFenced, "epoch ", request.epoch.value, " was fenced by ", epoch_.value);
  }
  if (const Status same = CheckBasisLocked(request); !same.ok()) {
    ++counts_.refused;
    return same;
  }
  if (request.epoch > epoch_) {  // X5: drains the requests and batches of lower epochs
    for (const LogBatch& batch : queue_) ApplyLocked(batch);
    queue_.clear();
    CloseStreamLocked(DEUT_ERROR(kFenced, "epoch ", request.epoch.value, " has taken over"));
    log_durable_ = Lsn();
  }
  epoch_ = request.epoch;
  nonce_ = request.nonce;
  tc_ = request.tc;
  log_durable_ = std::max(log_durable_, request.log_durable);
  return AnswerHelloLocked();
}

HelloAnswer FakeDataComponent::AnswerHelloLocked() {
  HelloAnswer answer;
  answer.dc = id_;
  answer.incarnation = DcIncarnation{incarnations_ + kIncarnationOffset};
  answer.number = IncarnationNumber{number_};
  answer.obeyed = ObeyedLocked();
  answer.log_durable = log_durable_;
  answer.applied = std::max(memory_.applied, extra_applied_);
  answer.stable = stable_.applied;
  answer.free_bytes = free_bytes_;
  for (const auto& [id, name] : memory_.tables) answer.tables.push_back(TableInfo{TableId{id}, name});
  return answer;
}

void FakeDataComponent::Submit(absl::Span<DataRequest* const> requests) {
  MutexLock lock(mutex_);
  for (DataRequest* request : requests) {
    ++counts_.reads;
    if (hold_reads_ && alive_) {
      held_reads_.push_back(request);
    } else {
      AnswerLocked(request);
    }
  }
  changes_.Bump();
}

void FakeDataComponent::AnswerLocked(DataRequest* request) {
  request->status = CheckSenderLocked(request->sender);
  request->answered_by = DcIncarnation{incarnations_ + kIncarnationOffset};
  if (request->status.ok() && answer_as_.value != 0) {
    request->answered_by = answer_as_;
  } else if (request->status.ok() && request->kind == DataRequest::Kind::kScan) {
    memory_.Scan(request->table, request->low, request->high, request->direction, request->limit_records,
                 request->limit_bytes, &request->answer, &request->complete, &request->covered);
  } else if (request->status.ok()) {
    FindLocked(request);
  }
  request->missed_in_memory = false;
  request->Finish(runtime_);
}

void FakeDataComponent::FindLocked(DataRequest* request) {
  request->status = Status();
  const FakeImage::Record* const record = memory_.Find(request->table, request->key);
  if (record != nullptr) request->answer.Append(request->key, record->value, memory_.VersionOf(*record));
}

void FakeDataComponent::Abandon(DataRequest* request) {
  MutexLock lock(mutex_);
  std::erase(held_reads_, request);
}

Result<std::unique_ptr<ScanStream>> FakeDataComponent::OpenScan(const Sender& sender, const ScanSpec& spec, Deadline) {
  MutexLock lock(mutex_);
  ++counts_.scans;
  DEUT_RETURN_IF_ERROR(CheckSenderLocked(sender));
  return std::unique_ptr<ScanStream>(new Scan(*this, sender.incarnation, spec));
}

Result<std::unique_ptr<ApplyLogStream>> FakeDataComponent::OpenApplyLog(const Sender& sender,
                                                                        ApplyLogListener* listener, Deadline) {
  MutexLock lock(mutex_);
  ++counts_.streams;
  DEUT_RETURN_IF_ERROR(CheckSenderLocked(sender));
  DEUT_RETURN_IF_ERROR(refuse_streams_);
  CloseStreamLocked(DEUT_ERROR(kCancelled, "another stream took its place"));
  auto stream = std::make_unique<Stream>(*this, listener);
  stream_ = stream.get();
  return std::unique_ptr<ApplyLogStream>(std::move(stream));
}

void FakeDataComponent::CloseStreamLocked(const Status& status) {
  queue_.clear();
  if (stream_ == nullptr) return;
  std::exchange(stream_, nullptr)->listener()->OnClosed(status);
}

void FakeDataComponent::ApplyLocked(const LogBatch& batch) {
  Status valid = batch.Validate();
  if (valid.ok() && batch.from > memory_.applied) {
    ++counts_.gaps;
    valid = DEUT_ERROR(kPositionGap, "a batch does not join on");
  }
  if (!valid.ok()) {
    CloseStreamLocked(valid);
    return;
  }
  for (LogBatch::Iterator it(batch); it.Valid(); it.Next()) ApplyEntryLocked(it.entry());
  memory_.applied = std::max(memory_.applied, batch.to);
}

void FakeDataComponent::ApplyEntryLocked(const LogEntryView& entry) {
  if (on_entry_) on_entry_(entry);
  seen_.push_back(Seen{entry.kind, entry.position, entry.timestamp, std::string(entry.key)});
  if (!memory_.Apply(entry)) ++counts_.duplicates;
}

void FakeDataComponent::AckLocked() {
  ApplyAck ack;
  ack.incarnation = DcIncarnation{incarnations_ + kIncarnationOffset};
  ack.applied = memory_.applied;
  ack.stable = stable_.applied;
  ack.free_bytes = free_bytes_;
  if (hold_acks_) {
    held_acks_.push_back(ack);
  } else if (!lose_acks_ && stream_ != nullptr) {
    stream_->listener()->OnAck(ack);
    if (duplicate_acks_ && stream_ != nullptr) stream_->listener()->OnAck(ack);
  }
}

void FakeDataComponent::Work() {
  for (;;) {
    const uint32_t seen = changes_.seen();
    {
      MutexLock lock(mutex_);
      if (ending_) return;
      if (!hold_apply_ && !queue_.empty()) {
        const LogBatch batch = std::move(queue_.front());
        queue_.pop_front();
        ApplyLocked(batch);
        AckLocked();
        changes_.Bump();
        continue;
      }
    }
    changes_.Wait(seen, kNoDeadline);
  }
}

Result<std::vector<std::string>> FakeDataComponent::Partition(const Sender& sender, TableId table, uint32_t n,
                                                              Deadline) {
  MutexLock lock(mutex_);
  DEUT_RETURN_IF_ERROR(CheckSenderLocked(sender));
  std::vector<std::string> keys;
  for (const auto& [key, record] : memory_.records) {
    if (key.first == table.value) keys.push_back(key.second);
  }
  std::vector<std::string> cuts;
  for (uint32_t i = 1; i < n && n <= keys.size(); ++i) cuts.push_back(keys[keys.size() * i / n]);
  return cuts;
}

Result<std::vector<TableInfo>> FakeDataComponent::Tables(const Sender& sender, Deadline) {
  MutexLock lock(mutex_);
  DEUT_RETURN_IF_ERROR(CheckSenderLocked(sender));
  std::vector<TableInfo> tables;
  std::map<uint32_t, uint64_t> records;
  for (const auto& [key, record] : memory_.records) records[key.first] += record.tombstone ? 0 : 1;
  for (const auto& [id, name] : memory_.tables) {
    TableInfo& info = tables.emplace_back();
    info.id = TableId{id};
    info.name = name;
    info.records = records[id];
  }
  return tables;
}

Result<std::vector<CounterValue>> FakeDataComponent::Counters(Deadline) {
  MutexLock lock(mutex_);
  if (!alive_) return DEUT_ERROR(kUnavailable, "the DC is down");
  return std::vector<CounterValue>{CounterValue{"reads", counts_.reads}};
}

}  // namespace deut::tc
