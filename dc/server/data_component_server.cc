#include "dc/server/data_component_server.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/folder_owner.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"
#include "dc/page_cache/page_loader.h"
#include "dc/server/bulk_scan.h"
#include "protocol/limits.h"

namespace deut::dc {
namespace {

constexpr Duration kProgressInterval = std::chrono::seconds(2);

constexpr FolderOwner kDcFolder = {FolderKind::kDataComponent, [](std::string_view name) {
                                     return name == StateFile::kLockName || name == "dc_state" ||
                                            name == "dc_state.new" || name == "pages";
                                   }};

Status CheckBound(std::string_view name, std::string_view bound) {
  if (bound.size() <= kMaxBoundBytes) return Status::Ok();
  return DEUT_ERROR(kInvalidArgument, name, " of ", bound.size(), " bytes, the limit is ", kMaxBoundBytes);
}

bool SameSender(const Sender& a, const Sender& b) {
  return a.incarnation == b.incarnation && a.epoch == b.epoch && a.nonce == b.nonce && a.tc == b.tc;
}

// Largest number of point reads that are answered together: the first waits a little longer for the others.
constexpr size_t kMaxReadsPerGroup = 8;
// A checkpoint is taken early when the unflushed updates may need more than 1 / kEarlyCheckpointDivisor of the room on
// the disk.
constexpr uint64_t kEarlyCheckpointDivisor = 2;
// Up to 1 / kCoarseBoundDivisor of the room, a coarse bound of the unflushed bytes suffices.
constexpr uint64_t kCoarseBoundDivisor = 16;

// Pages that one scan may read. Pages whose records were all deleted add no record to the answer, so the limits of
// records and bytes do not bound the work. Requests behind the scan in the same stream wait for it.
constexpr uint64_t kMaxPagesPerScan = 256;

// A scan that goes on on a thread of the loader reads this much at a time: other loads and requests wait for it.
constexpr RecordOperations::ScanTurn kTurnOnLoadThread = {.pages = 8, .bytes = 64 << 10};

bool IsGoodRead(const DataRequest& request) {
  return request.kind == DataRequest::Kind::kRead && !request.key.empty() && request.key.size() <= kMaxKeyBytes;
}

// Returns how many requests, from the first on, are point reads that memory may answer.
size_t CountLeadingReads(absl::Span<DataRequest* const> requests) {
  const size_t most = std::min(requests.size(), kMaxReadsPerGroup);
  size_t count = 0;
  while (count < most && IsGoodRead(*requests[count]) && !requests[count]->missed_in_memory) ++count;
  return count;
}
size_t ReadsOfOneSender(absl::Span<DataRequest* const> requests) {
  const size_t most = CountLeadingReads(requests);
  size_t count = 0;
  while (count < most && SameSender(requests[count]->sender, requests[0]->sender)) ++count;
  return count;
}

// Returns the state for a scan on this thread, which keeps its buffers from scan to scan. Null for a point read.
RecordOperations::ScanState* OwnScanFor(const DataRequest& request) {
  if (request.kind != DataRequest::Kind::kScan) return nullptr;
  static thread_local RecordOperations::ScanState scan;
  return &scan;
}

void Prepare(DataRequest* request, DcIncarnation answered_by) {
  request->answer.Clear();
  request->complete = false;
  request->answered_by = answered_by;
}

// Logs the progress of a recovery every kProgressInterval.
class ProgressLog {
 public:
  ProgressLog(Runtime& runtime, const RecoveryProgress& progress)
      : runtime_(runtime), thread_(runtime.StartThread("dc-progress", [this, &progress] {
          while (over_ == 0) {
            if (!runtime_.Wait(over_, 0, runtime_.Now() + kProgressInterval)) LogInfo(progress.Text());
          }
        })) {}
  ~ProgressLog() {
    over_ = 1;
    runtime_.WakeAll(over_);
  }
  ProgressLog(const ProgressLog&) = delete;
  ProgressLog& operator=(const ProgressLog&) = delete;

 private:
  Runtime& runtime_;
  std::atomic<uint32_t> over_{0};
  const std::unique_ptr<Thread> thread_;
};

}  // namespace

Result<ClaimedDirectory> DataComponentServer::Claim(const DataComponentOptions& options, Storage& storage,
                                                    Runtime& runtime) {
  ClaimedDirectory claimed;
  claimed.disk = std::make_unique<WatchedStorage>(
      runtime, storage,
      DiskWatchOptions{options.disk_slow_after, options.disk_timeout, /*on_stuck=*/options.records.on_failure});
  WatchedStorage& disk = *claimed.disk;
  // The check precedes every change: the folder may belong to another component.
  DEUT_RETURN_IF_ERROR(CheckFolder(disk, options.directory, kDcFolder));
  DEUT_RETURN_IF_ERROR(disk.CreateDirectory(options.directory));
  DEUT_ASSIGN_OR_RETURN(claimed.lock, disk.Lock(Concat(options.directory, "/", StateFile::kLockName)));
  claimed.lock->RemoveWhenReleased(true);  // until the state is saved
  StateFile file(disk, options.directory);
  DEUT_ASSIGN_OR_RETURN(const std::optional<DcState> found, file.Load());
  claimed.state = found.value_or(DcState());
  while (claimed.state.dc.value == 0) claimed.state.dc = DcId(runtime.RandomSeed());
  ++claimed.state.number.value;
  // X3: a copy of this folder has the same number of starts, so with the number alone two incarnations could pass for
  // one. A start from a copy draws another identity. Positions that one of them has reported are never taken for the
  // other's.
  do {
    claimed.state.incarnation = DEUT_OMITTED("X3.draw_incarnation") ? DcIncarnation(claimed.state.number.value)
                                                                    : DcIncarnation(runtime.RandomSeed());
  } while (claimed.state.incarnation.value == 0);
  // A folder that cannot be used stays unchanged, so nothing is written before its pages are read. A new folder has
  // nothing to preserve. It gets its state first, because pages without a state would not be accepted as a data
  // directory.
  if (!found) {
    DEUT_RETURN_IF_ERROR(ClaimFolder(disk, options.directory, kDcFolder));
    DEUT_RETURN_IF_ERROR(file.Save(claimed.state));
    claimed.saved = true;
    claimed.lock->RemoveWhenReleased(false);
  }
  return claimed;
}

Result<std::unique_ptr<DataComponentServer>> DataComponentServer::Recover(const DataComponentOptions& options,
                                                                          Runtime& runtime, ClaimedDirectory claimed,
                                                                          RecoveryProgress* progress) {
  RecoveryProgress of_its_own;
  if (progress == nullptr) progress = &of_its_own;
  const ProgressLog log(runtime, *progress);
  RecordStoreOptions store_options = options.records;
  const uint32_t processors =
      std::clamp(std::thread::hardware_concurrency(), 1U, DataComponentOptions::kMaxApplyThreads);
  store_options.apply_helpers = (options.apply_threads == 0 ? processors : options.apply_threads) - 1;
  DEUT_ASSIGN_OR_RETURN(
      std::unique_ptr<RecordStore> records,
      RecordStore::Open(
          runtime,
          RecordStore::Location{*claimed.disk, Concat(options.directory, "/pages"), claimed.state.dc,
                                // Checkpoint files name the incarnation that wrote them by its number.
                                DcIncarnation(claimed.state.number.value), progress, claimed.state.oldest_kept},
          store_options));
  // No TC knows this incarnation yet: only the server, which begins here, answers requests and Hello.
  if (!claimed.saved) {
    DEUT_RETURN_IF_ERROR(ClaimFolder(*claimed.disk, options.directory, kDcFolder));
    // From now on the recovered checkpoint is reported as stable, so `oldest_kept` must cover it. It may not do so yet:
    // after a crash just behind a checkpoint, or in a folder of an earlier version.
    claimed.state.oldest_kept = std::max(claimed.state.oldest_kept, records->oldest_kept());
    DEUT_RETURN_IF_ERROR(StateFile(*claimed.disk, options.directory).Save(claimed.state));
    claimed.saved = true;
    claimed.lock->RemoveWhenReleased(false);
  }
  return std::unique_ptr<DataComponentServer>(
      new DataComponentServer(options, runtime, std::move(claimed), std::move(records)));
}

Result<std::unique_ptr<DataComponentServer>> DataComponentServer::Open(const DataComponentOptions& options,
                                                                       Storage& storage, Runtime& runtime) {
  DEUT_ASSIGN_OR_RETURN(ClaimedDirectory claimed, Claim(options, storage, runtime));
  return Recover(options, runtime, std::move(claimed), /*progress=*/nullptr);
}

DataComponentServer::DataComponentServer(const DataComponentOptions& options, Runtime& runtime,
                                         ClaimedDirectory claimed, std::unique_ptr<RecordStore> records)
    : runtime_(runtime),
      disk_(std::move(claimed.disk)),
      options_(options),
      lock_(std::move(claimed.lock)),
      id_(claimed.state.dc),
      number_(claimed.state.number),
      state_(runtime, *disk_, options.directory, claimed.state),
      records_(std::move(records)),
      operations_(records_->operations()),
      fencing_(runtime, claimed.state.incarnation, claimed.state.fence),
      applied_(records_->recovered()),
      apply_environment_{runtime,
                         fencing_,
                         *records_,
                         applied_,
                         [this] { return FreeBytes(); },
                         [this](Position applied) { checkpoints_.NoteApplied(applied); },
                         [this](Lsn durable) { state_.NoteLogDurable(durable); }},
      submits_(runtime),
      checkpoints_(
          runtime, *records_, options.checkpoints, [this] { return applied_.load(); },
          [this](CheckpointNumber oldest_kept) { return state_.RecordKept(oldest_kept); }),
      mutex_(runtime),
      misses_(runtime, submits_,
              [this](DataRequest* request, RecordOperations::ScanState* scan, bool missing, LoadWaiter* waiter) {
                return ContinueMissed(request, scan, missing, waiter);
              }) {
  // A TC may hear of this incarnation from now on, so a later start must find it in the folder.
  DEUT_CHECK(claimed.saved);
}

DataComponentServer::~DataComponentServer() {
  {
    const MutexLock lock(mutex_);
    CloseLogStream(DEUT_ERROR(kUnavailable, "the data component has ended"));
  }
  DEUT_POINT("dc.ending");
  // The missed requests are answered before the fence's gate closes. Behind a closed gate they would get FENCED, and
  // their TC would stop serving.
  misses_.Stop();
  fencing_.End();
}

// X3, X5: the gate is open while this incarnation obeys the sender. So a call inside sees a live object that belongs
// to that sender, and needs no further check. Only the caller's own thread knows a request before it is answered, so
// nothing needs Abandon either.
class DataComponentServer::Reads final : public DirectReads {
 public:
  Reads(DataComponentServer& server, std::shared_ptr<CallDrain> gate) : server_(server), gate_(std::move(gate)) {}

  Answered TryAnswer(absl::Span<DataRequest* const> requests) override {
    const CallDrain::Call call(*gate_);
    if (!call.entered()) [[unlikely]]
      return Answered::kNone;
    DEUT_POINT("dc.admission.admitted");
    for (DataRequest* const request : requests) {
      request->answer.Clear();
      request->complete = false;
      request->missed_in_memory = false;
    }
    bool all = true;
    while (!requests.empty()) {
      const size_t reads = CountLeadingReads(requests);
      if (reads > 1) {
        all = server_.TryReads(requests.first(reads)) && all;
      } else {
        requests[0]->status = server_.Execute(requests[0], OwnScanFor(*requests[0]), &requests[0]->missed_in_memory);
        all = !requests[0]->missed_in_memory && all;
      }
      requests.remove_prefix(std::max<size_t>(reads, 1));
    }
    return all ? Answered::kAll : Answered::kSome;
  }

 private:
  DataComponentServer& server_;  // used only inside the gate
  const std::shared_ptr<CallDrain> gate_;
};

std::shared_ptr<DirectReads> DataComponentServer::OpenReads(const Sender& sender) {
  std::shared_ptr<CallDrain> gate = fencing_.GateOf(sender);
  return gate == nullptr ? nullptr : std::make_shared<Reads>(*this, std::move(gate));
}

Status DataComponentServer::CheckDisk() const {
  const DiskWatchStatistics disk = disk_->statistics();
  if (disk.slow_in_flight == 0) return Status::Ok();
  return DEUT_ERROR(kUnavailable, "the data component's disk hangs: ", disk.slow_in_flight,
                    " operations, the oldest for ", duration_cast<milliseconds>(disk.oldest_age).count(), " ms");
}

Result<HelloAnswer> DataComponentServer::Hello(const HelloRequest& request, Deadline /*deadline*/) {
  if (request.protocol_version != kProtocolVersion) {
    return DEUT_ERROR(kVersionMismatch, "the TC speaks protocol version ", request.protocol_version, ", this DC ",
                      kProtocolVersion);
  }
  if (request.expected_dc.value != 0 && request.expected_dc != id_ && DEUT_STEP("X4.check_expected_dc")) {
    return DEUT_ERROR(kWrongState, "this is data component ", id_.value, ", but the redo log of TC ", request.tc.value,
                      " knows data component ", request.expected_dc.value,
                      "; wrong address, or a folder of another cluster; nothing was changed");
  }
  // On a hanging disk, Hello would wait for the older TC's disk operations and then for the disk itself. Under the
  // mutex, every later Hello would wait, too.
  DEUT_RETURN_IF_ERROR(CheckDisk());
  const MutexLock lock(mutex_);
  DEUT_RETURN_IF_ERROR(request.inquiry ? Fencing::CheckTc(state_.fence(), request.tc) : AcceptTc(request));
  HelloAnswer answer;
  answer.dc = id_;
  answer.incarnation = incarnation();
  answer.number = number_;
  const FenceState fence = state_.fence();
  answer.obeyed = ObeyedTc{fence.tc, fence.epoch, fence.nonce};
  answer.log_durable = state_.log_durable();
  answer.applied = applied_.load();
  answer.stable = records_->stable();
  DEUT_CHECK(answer.stable <= applied_.load());  // read in this order, because both only rise
  answer.free_bytes = FreeBytes();
  answer.tables = records_->Tables();
  return answer;
}

Status DataComponentServer::CheckBasis(const HelloRequest& request) {
  if (!request.decided_on) return Status::Ok();
  const FenceState fence = state_.fence();
  HelloBasis found{incarnation(), ObeyedTc{fence.tc, fence.epoch, fence.nonce}, applied_.load(), state_.log_durable()};
  if (fence == FenceState{request.tc, request.epoch, request.nonce}) {
    // The sender is already obeyed: its own batches may have moved both figures meanwhile.
    found.applied = request.decided_on->applied;
    found.log_durable = request.decided_on->log_durable;
  }
  return Fencing::CheckBasis(*request.decided_on, found);
}

Status DataComponentServer::AcceptTc(const HelloRequest& request) {
  const FenceState wanted{request.tc, request.epoch, request.nonce};
  const FenceState current = state_.fence();
  DEUT_RETURN_IF_ERROR(Fencing::CheckHello(current, wanted));
  DEUT_RETURN_IF_ERROR(CheckBasis(request));
  if (wanted == current) {
    state_.NoteLogDurable(request.log_durable);
    return Status::Ok();
  }
  // X4: only the log stream moves `applied`, and no other stream can be opened meanwhile. Suppose that it moved after
  // the comparison. The DC would then obey a TC whose log lacks updates that the DC holds. The next comparison would
  // be with the new TC's own incarnation, and the evidence would be gone.
  if (log_stream_ != nullptr && DEUT_STEP("X4.freeze_first") && DEUT_STEP("X5.close_old_stream")) log_stream_->Pause();
  Status status = CheckBasis(request);
  if (status.ok()) status = state_.SetFence(wanted, request.log_durable);
  if (!status.ok()) {
    CloseLogStream(DEUT_ERROR(kCancelled, "the log stream was stopped for a Hello of TC epoch ", wanted.epoch.value,
                              ", which was refused"));
    return status;
  }
  DEUT_CHECK(state_.fence() == wanted);
  fencing_.Replace(wanted);
  CloseLogStream(DEUT_ERROR(kFenced, "TC epoch ", wanted.epoch.value, " has taken over"));
  return Status::Ok();
}

void DataComponentServer::CloseLogStream(const Status& reason) {
  if (log_stream_ == nullptr) return;
  if (DEUT_STEP("X5.close_old_stream")) log_stream_->Close(reason);
  log_stream_.reset();
}

// HOT PATH: no lock, no system call; allocates only what the answers' buffers still need.
void DataComponentServer::Submit(absl::Span<DataRequest* const> requests) {
  const CallGracePeriod::Call call(submits_);
  std::optional<Fencing::Admission> admission;
  Sender admitted;
  while (!requests.empty()) {
    DataRequest* const request = requests.front();
    if (!admission || !SameSender(request->sender, admitted)) {
      admitted = request->sender;
      admission.emplace(fencing_, admitted);
    }
    const size_t reads = admission->status().ok() ? ReadsOfOneSender(requests) : 0;
    if (reads > 1) {
      SubmitReads(requests.first(reads));
      requests.remove_prefix(reads);
      continue;
    }
    requests.remove_prefix(1);
    Prepare(request, fencing_.incarnation());
    RecordOperations::ScanState* scan = nullptr;
    if (!admission->status().ok()) {
      request->missed_in_memory = false;
      request->status = admission->status();
    } else if (!request->missed_in_memory) {
      scan = OwnScanFor(*request);
      request->status = Execute(request, scan, &request->missed_in_memory);
    }
    Answer(request, scan);
  }
}

void DataComponentServer::SubmitReads(absl::Span<DataRequest* const> requests) {
  for (DataRequest* const request : requests) Prepare(request, fencing_.incarnation());
  TryReads(requests);
  for (DataRequest* const request : requests) Answer(request, /*scan=*/nullptr);
}

bool DataComponentServer::TryReads(absl::Span<DataRequest* const> requests) {
  DEUT_DCHECK(requests.size() <= kMaxReadsPerGroup);
  std::array<RecordOperations::PointRead, kMaxReadsPerGroup> reads;
  for (size_t i = 0; i < requests.size(); ++i) {
    reads[i].table = requests[i]->table;
    reads[i].key = requests[i]->key;
    reads[i].answer = &requests[i]->answer;
  }
  operations_.TryReadSeveral(std::span(reads).first(requests.size()));
  bool all = true;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i]->status = std::move(reads[i].status);
    requests[i]->missed_in_memory = reads[i].missing;
    all = all && !reads[i].missing;
  }
  return all;
}

void DataComponentServer::Answer(DataRequest* request, RecordOperations::ScanState* scan) {
  if (std::exchange(request->missed_in_memory, false)) {
    misses_.Park(request, scan);
  } else {
    request->Finish(runtime_);
  }
}

bool DataComponentServer::ContinueMissed(DataRequest* request, RecordOperations::ScanState* scan, bool missing,
                                         LoadWaiter* waiter) {
  DEUT_DCHECK(!request->missed_in_memory);
  DEUT_DCHECK(request->answered_by == fencing_.incarnation());  // X3: Submit has prepared it
  // Each run is a call of its own. A Hello of another TC does not wait for the loads in between; the next run finds
  // that TC and answers FENCED.
  const Fencing::Admission admission(fencing_, request->sender);
  request->status = DEUT_STEP("load.admit_again") ? admission.status() : Status::Ok();
  while (request->status.ok()) {
    if (missing) {
      const Result<bool> started =
          request->kind == DataRequest::Kind::kRead
              ? operations_.StartLoad(request->table, request->key, waiter)
              : operations_.StartLoad(request->table, request->direction, scan, request->answer, waiter);
      // After `true`, another thread may have answered the request already.
      if (started.ok() && *started) return false;
      request->status = started.status();
      if (!started.ok()) break;
    }
    // A scan that has a state goes on; one without begins here.
    const bool continues = request->kind == DataRequest::Kind::kScan && (missing || scan->pages != 0);
    if (!continues) {
      request->status = Execute(request, scan, &missing);
      if (!missing) break;
      continue;
    }
    const Result<RecordOperations::ScanStop> stop =
        ContinueScan(request, scan, PageLoader::OwnsThisThread() ? kTurnOnLoadThread : RecordOperations::ScanTurn());
    request->status = stop.status();
    if (!stop.ok() || *stop == RecordOperations::ScanStop::kEnd) break;
    if (*stop == RecordOperations::ScanStop::kTurn) {
      PageLoader::CallAgain(waiter);
      return false;
    }
    missing = true;
  }
  return true;
}

Status DataComponentServer::Execute(DataRequest* request, RecordOperations::ScanState* scan, bool* missing) {
  if (request->kind == DataRequest::Kind::kScan) return BeginScan(request, scan, missing);
  if (request->key.empty() || request->key.size() > kMaxKeyBytes) {
    return DEUT_ERROR(kInvalidArgument, "key of ", request->key.size(), " bytes, allowed are 1 to ", kMaxKeyBytes);
  }
  return operations_.TryRead(request->table, request->key, &request->answer, missing);
}

Status DataComponentServer::BeginScan(DataRequest* request, RecordOperations::ScanState* scan, bool* missing) {
  if (std::max(request->low.size(), request->high.size()) > kMaxBoundBytes) [[unlikely]] {
    DEUT_RETURN_IF_ERROR(CheckBound("low bound", request->low));
    DEUT_RETURN_IF_ERROR(CheckBound("high bound", request->high));
  }
  scan->budget = ScanBudget();
  if (request->limit_records != 0) scan->budget.records = request->limit_records;
  scan->budget.bytes = std::min(request->limit_bytes, kMaxScanBytes);
  scan->cursor.low = request->low;
  scan->cursor.high = request->high;
  scan->cursor.complete = false;
  scan->cursor.pages = 0;
  scan->pages = kMaxPagesPerScan;
  scan->ahead = RecordOperations::ScanReadAhead();
  DEUT_ASSIGN_OR_RETURN(const RecordOperations::ScanStop stop,
                        ContinueScan(request, scan, RecordOperations::ScanTurn()));
  *missing = stop == RecordOperations::ScanStop::kMissing;
  return Status::Ok();
}

Result<RecordOperations::ScanStop> DataComponentServer::ContinueScan(DataRequest* request,
                                                                     RecordOperations::ScanState* scan,
                                                                     const RecordOperations::ScanTurn& turn) {
  DEUT_ASSIGN_OR_RETURN(const RecordOperations::ScanStop stop,
                        operations_.ContinueScan(request->table, request->direction, scan, &request->answer, turn));
  if (stop != RecordOperations::ScanStop::kEnd) return stop;
  ScanCursor& cursor = scan->cursor;
  request->complete = cursor.complete;
  if (!cursor.complete)
    request->covered = request->direction == Direction::kAscending ? std::move(cursor.low) : std::move(cursor.high);
  return stop;
}

void DataComponentServer::Abandon(DataRequest* request) { misses_.Abandon(request); }

Result<std::unique_ptr<ScanStream>> DataComponentServer::OpenScan(const Sender& sender, const ScanSpec& spec,
                                                                  Deadline /*deadline*/) {
  const Fencing::Admission admission(fencing_, sender);
  DEUT_RETURN_IF_ERROR(admission.status());
  DEUT_RETURN_IF_ERROR(CheckBound("low bound", spec.range.low));
  DEUT_RETURN_IF_ERROR(CheckBound("high bound", spec.range.high));
  DEUT_RETURN_IF_ERROR(operations_.CheckTable(spec.table));
  ScanSpec within = spec;
  within.batch_bytes = std::clamp<uint32_t>(spec.batch_bytes, 1, kMaxScanBytes);
  return std::unique_ptr<ScanStream>(new BulkScan(fencing_, operations_, sender, within));
}

Result<std::unique_ptr<ApplyLogStream>> DataComponentServer::OpenApplyLog(const Sender& sender,
                                                                          ApplyLogListener* listener,
                                                                          Deadline /*deadline*/) {
  const MutexLock lock(mutex_);
  const Fencing::Admission admission(fencing_, sender);
  DEUT_RETURN_IF_ERROR(admission.status());
  CloseLogStream(DEUT_ERROR(kCancelled, "a newer log stream of the same TC has taken its place"));
  operations_.BeginStream();
  log_stream_ = std::make_shared<ApplyStream>(apply_environment_, sender, listener);
  return std::unique_ptr<ApplyLogStream>(new ApplyStreamHandle(log_stream_));
}

Result<std::vector<std::string>> DataComponentServer::Partition(const Sender& sender, TableId table, uint32_t n,
                                                                Deadline /*deadline*/) {
  const Fencing::Admission admission(fencing_, sender);
  DEUT_RETURN_IF_ERROR(admission.status());
  return operations_.Partition(table, std::min(n, kMaxPartitions));
}

Result<std::vector<TableInfo>> DataComponentServer::Tables(const Sender& sender, Deadline /*deadline*/) {
  const Fencing::Admission admission(fencing_, sender);
  DEUT_RETURN_IF_ERROR(admission.status());
  return records_->Tables();
}

Result<std::vector<CounterValue>> DataComponentServer::Counters(Deadline /*deadline*/) {
  std::vector<CounterValue> counters;
  const auto add = [&counters](std::string name, uint64_t value) {
    counters.push_back(CounterValue{std::move(name), value});
  };
  const Position applied = applied_.load();
  add("incarnation", number_.value);
  add("incarnation_id", incarnation().value);
  add("applied_commit_lsn", applied.commit.value);
  add("applied_sequence", applied.sequence);
  add("stable_commit_lsn", records_->stable().commit.value);
  const DiskWatchStatistics disk = disk_->statistics();
  // A caller that examines a hanging disk must not wait for it.
  add("free_bytes", disk.slow_in_flight == 0 ? FreeBytes() : free_bytes_.load(std::memory_order_relaxed));
  add("recovering", 0);
  add("disk_slow_operations", disk.slow_operations);
  add("disk_waiting_operations", disk.slow_in_flight);
  add("disk_waiting_ms", static_cast<uint64_t>(duration_cast<milliseconds>(disk.oldest_age).count()));
  add("checkpoint_failing", checkpoints_.last_status().ok() ? 0 : 1);
  records_->AppendCounters(&counters);
  return counters;
}

uint64_t DataComponentServer::FreeBytes() {
  // A disk that returns an error counts as full.
  const Result<uint64_t> disk = disk_->FreeBytes(options_.directory);
  const uint64_t room = !disk.ok() ? 0 : *disk - std::min(*disk, records_->reserve_bytes());
  // X7: updates that were applied but are in no checkpoint still have to be written.
  const uint64_t unflushed = records_->unflushed_bytes(/*plenty=*/room / kCoarseBoundDivisor);
  // If the bound takes a large part of the remaining room, a checkpoint shows how much is really needed.
  if (unflushed > room / kEarlyCheckpointDivisor && DEUT_STEP("X7.hurry")) checkpoints_.RequestNow();
  const uint64_t bytes = records_->memory_exhausted() ? 0 : room - std::min(room, unflushed);
  free_bytes_.store(bytes, std::memory_order_relaxed);
  return bytes;
}

}  // namespace deut::dc
