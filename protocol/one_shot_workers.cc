#include "protocol/one_shot_workers.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/runtime/blocking_hook.h"
#include "common/testing/test_points.h"
#include "protocol/convert_transaction_service.h"
#include "protocol/limits.h"
#include "protocol/one_shot_limits.h"

namespace deut {
namespace {

// When more bytes of answers than this wait for the writer, threads that have more answers stop.
constexpr size_t kMaxReadyBytes = 4 * kAnswerMessageBytes;
constexpr size_t kMaxFreeBatches = 4;
// The bytes for which an answer counts, apart from its results.
constexpr size_t kAnswerBytes = 32;
// The most calls whose reads are examined together.
constexpr size_t kMaxExaminedTogether = 128;
// After a prefetch that the DC did not answer in time, there is none for this long: each held-back call asks again.
constexpr Duration kPauseAfterMissedPrefetch = milliseconds(100);
// A wait for the disk ends at least this often, for calls whose deadline passes meanwhile. It is not short: a caller
// with little time does not write the log itself (RedoLog::WaitDurable).
constexpr Duration kDeadlineCheckInterval = seconds(2);

}  // namespace

// The session, buffers and answers of one thread.
class OneShotWorkers::Worker {
 public:
  explicit Worker(OneShotWorkers& owner) : owner_(owner), hand_over_([this] { HandOver(); }) {}

  // Runs one call and gathers its answer.
  void RunCall(const wire::OneShotCall& call, Deadline deadline, std::unique_ptr<BegunOneShot> begun);
  // True: the call that has just ended brought another thread in this thread's place.
  bool TakeHandedOver() { return std::exchange(handed_over_, false); }

  // True: the call's reads need the DC, the session will ask for them, and the call is held back. It may be begun for
  // that.
  bool NotePrefetch(const wire::OneShotCall& call, std::unique_ptr<BegunOneShot>* begun);

  Answers answers;
  std::vector<WithheldAnswers::Answer> withheld;
  std::unique_ptr<TransactionSession> session;
  Duration patience = Duration(0);  // of the call that it runs
  MonotonicTime since;              // the last time that it checked the queue's length
  const std::function<void()>& hand_over() const { return hand_over_; }

 private:
  Result<CommitAnswer> Execute(const wire::OneShot& one_shot, Deadline deadline, Lsn* durable_at,
                               std::unique_ptr<BegunOneShot> begun);
  // Runs before a wait.
  void HandOver();
  wire::SessionAnswer* NewAnswer(uint64_t id);
  void AddResults(uint64_t id, wire::SessionAnswer** answer);
  // Moves the last answer, which is complete, out of `answers`, because it must not be shown yet.
  void Withhold(const Result<CommitAnswer>& commit, Lsn durable_at, Deadline deadline);

  OneShotWorkers& owner_;
  const std::function<void()> hand_over_;
  bool handed_over_ = false;
  TransactionOptions options_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> results_;
  size_t bytes_before_ = 0;  // bytes of `answers` before the last one
};

void OneShotWorkers::Worker::HandOver() {
  DEUT_POINT("one_shot_workers.hand_over");
  {
    MutexLock lock(owner_.mutex_);
    handed_over_ = true;
    owner_.PublishLocked(*this);
    --owner_.running_;
    if (owner_.running_ == 0) {
      if (!owner_.queue_.empty() || owner_.NeedsAcknowledgerLocked()) {
        owner_.SummonLocked();
      } else if (owner_.RoomLocked()) {
        owner_.StartReadLocked();
      }
    }
    // No thread would run the begun calls, so they end.
    if (owner_.running_ == 0) owner_.EndBegunLocked();
    owner_.WriteLocked();
  }
  owner_.threads_.BeforeBlocking();
}

bool OneShotWorkers::Worker::NotePrefetch(const wire::OneShotCall& call, std::unique_ptr<BegunOneShot>* begun) {
  if (session == nullptr) {
    Result<std::unique_ptr<TransactionSession>> fresh = owner_.service_.NewSession(kNoDeadline);
    if (!fresh.ok()) return false;
    session = std::move(fresh).value();
  }
  // A prefetch can cost other transactions an abort, which a snapshot never does.
  if (call.one_shot().begin().isolation() == wire::SNAPSHOT) return false;
  // An invalid call gets its error when it is run.
  if (!FromWire(call.one_shot().operations(), &operations_).ok() || operations_.empty()) return false;
  if (operations_.front().kind == OperationKind::kScan && FromWire(call.one_shot().begin(), &options_).ok()) {
    *begun = session->BeginForPrefetch(options_, operations_);
  }
  return session->NotePrefetch(operations_) || *begun != nullptr;
}

Result<CommitAnswer> OneShotWorkers::Worker::Execute(const wire::OneShot& one_shot, Deadline deadline, Lsn* durable_at,
                                                     std::unique_ptr<BegunOneShot> begun) {
  const Status begin = FromWire(one_shot.begin(), &options_);
  if (!begin.ok()) return Status(begin.code(), "begin." + std::string(begin.message()));
  DEUT_RETURN_IF_ERROR(FromWire(one_shot.operations(), &operations_));
  const BlockingHook blocking_hook(hand_over_, patience);
  if (session == nullptr) {
    DEUT_ASSIGN_OR_RETURN(session, owner_.service_.NewSession(deadline));
  }
  return session->ExecuteOneShotWithoutWait(options_, operations_, &results_, deadline, durable_at, std::move(begun));
}

wire::SessionAnswer* OneShotWorkers::Worker::NewAnswer(uint64_t id) {
  bytes_before_ = answers.bytes;
  wire::OneShotAnswer* added = answers.message.add_answers();
  added->set_id(id);
  answers.bytes += kAnswerBytes;
  return added->mutable_answer();
}

void OneShotWorkers::Worker::AddResults(uint64_t id, wire::SessionAnswer** answer) {
  for (const OperationResult& result : results_) {
    const size_t bytes = WireBytes(result);
    if (answers.bytes > kAnswerBytes && answers.bytes + bytes > kAnswerMessageBytes) {
      (*answer)->set_more(true);
      MutexLock lock(owner_.mutex_);
      owner_.PublishLocked(*this);
      owner_.WriteLocked();
      owner_.AwaitRoomLocked();
      *answer = NewAnswer(id);
    }
    ToWire(result, (*answer)->add_results());
    answers.bytes += bytes;
  }
}

void OneShotWorkers::Worker::RunCall(const wire::OneShotCall& call, Deadline deadline,
                                     std::unique_ptr<BegunOneShot> begun) {
  Lsn durable_at(0);
  const Result<CommitAnswer> commit = Execute(call.one_shot(), deadline, &durable_at, std::move(begun));
  wire::SessionAnswer* answer = NewAnswer(call.id());
  AddResults(call.id(), &answer);
  if (!commit.ok()) answer->set_timestamp(FailedPreconditionAt(results_).value);
  results_.clear();  // there may be many, and the worker may be idle for long
  if (commit.ok()) {
    answer->set_timestamp(commit->timestamp.value);
    answer->set_commit_lsn(commit->commit_lsn.value);
  } else {
    ToWire(commit.status(), answer->mutable_status());
    answers.bytes += commit.status().message().size();
  }
  if (durable_at != Lsn(0) && DEUT_STEP("D1.withhold")) Withhold(commit, durable_at, deadline);
}

void OneShotWorkers::Worker::Withhold(const Result<CommitAnswer>& commit, Lsn durable_at, Deadline deadline) {
  const size_t bytes = answers.bytes - bytes_before_;
  const bool wrote = commit.ok() && commit->commit_lsn != Lsn(0);
  WithheldAnswers::Answer& answer = withheld.emplace_back(
      WithheldAnswers::Answer{.durable_at = durable_at, .deadline = deadline, .wrote = wrote, .bytes = bytes});
  answer.message.Swap(answers.message.mutable_answers(answers.message.answers_size() - 1));
  answers.message.mutable_answers()->RemoveLast();
  answers.bytes = bytes_before_;
}

OneShotWorkers::OneShotWorkers(Runtime& runtime, TransactionService& service, Threads& threads, const Options& options,
                               Stream* stream)
    : runtime_(runtime), service_(service), threads_(threads), options_(options), stream_(stream), mutex_(runtime) {}

OneShotWorkers::~OneShotWorkers() = default;

void OneShotWorkers::Start() {
  MutexLock lock(mutex_);
  StartReadLocked();
}

void OneShotWorkers::ReadDone(bool ok) {
  mutex_.Lock();
  reading_ = false;
  std::unique_ptr<Batch> batch = std::move(reading_batch_);
  ++inside_;
  ++running_;
  if (!ok || over_) {
    EndLocked(Status::Ok());
  } else if (Status valid = CheckFigure("calls", batch->message.calls_size(), opened_ ? 1 : 0, kMaxOneShotsPerMessage);
             !valid.ok()) {
    EndLocked(std::move(valid));
  } else if (opened_) {
    QueueLocked(std::move(batch));
  } else {
    OpenLocked(std::move(batch));
  }
  Work();
  UnlockAndFinish();
}

void OneShotWorkers::OpenLocked(std::unique_ptr<Batch> first) {
  auto own = std::make_unique<Worker>(*this);
  wire::OneShotAnswers opened;
  opened.set_protocol_version(kProtocolVersion);
  mutex_.Unlock();
  Status status = first->message.has_open()
                      ? CheckProtocolVersion("the client", first->message.open().protocol_version())
                      : DEUT_ERROR(kWrongState, "calls: the first message of a stream has to have `open`");
  if (status.ok()) {
    Result<std::unique_ptr<TransactionSession>> session = service_.NewSession(kNoDeadline);
    status = session.status();
    if (session.ok()) {
      own->session = std::move(session).value();
      opened.set_not_before(own->session->not_before().value);
    }
  }
  mutex_.Lock();
  opened_ = true;
  refused_ = !status.ok();
  if (refused_) ToWire(status, opened.mutable_status());
  // The size makes sure that no other answer joins this message.
  ready_.push_back({.message = std::move(opened), .bytes = kAnswerMessageBytes});
  ready_bytes_ += kAnswerMessageBytes;
  spare_.push_back(std::move(own));
  if (!refused_) QueueLocked(std::move(first));
}

std::unique_ptr<OneShotWorkers::Worker> OneShotWorkers::GetWorkerLocked() {
  if (spare_.empty()) return std::make_unique<Worker>(*this);
  std::unique_ptr<Worker> worker = std::move(spare_.back());
  spare_.pop_back();
  return worker;
}

void OneShotWorkers::Work() {
  std::unique_ptr<Worker> own = GetWorkerLocked();
  Worker& worker = *own;
  worker.since = runtime_.Now();
  for (;;) {
    if (queue_.empty() || !queue_.front().examined) {
      if (!queue_.empty()) {
        PrefetchLocked(worker);
      } else if (!Rest(worker)) {
        break;
      }
      worker.since = runtime_.Now();
      continue;
    }
    Item item = std::move(queue_.front());
    queue_.pop_front();
    worker.patience = PatienceLocked(worker);
    mutex_.Unlock();
    worker.RunCall(item.batch->message.calls(item.index), item.batch->deadlines[item.index], std::move(item.begun));
    const MonotonicTime now = runtime_.Now();
    mutex_.Lock();
    if (worker.TakeHandedOver()) {
      ++running_;
      worker.since = now;
    }
    DoneLocked(item.batch);
    if (now - worker.since < options_.share_after || BegunLocked() != 0) continue;
    worker.since = now;
    // Finished answers do not wait for the rest of a long queue.
    PublishLocked(worker);
    WriteLocked();
    // Commits that are to become durable do not wait for it either. A thread must ask for that, and takes up the queue
    // again afterwards.
    if (NeedsAcknowledgerLocked() && (OthersCanRunLocked() || withheld_.bytes() > kMaxReadyBytes)) {
      AcknowledgeLocked(worker);
      worker.since = runtime_.Now();
    }
    AwaitRoomLocked();
    if (!queue_.empty() && running_ < options_.max_running) SummonLocked();
  }
  --running_;
  --inside_;
  spare_.push_back(std::move(own));
}

void OneShotWorkers::UnlockAndFinish() {
  const bool finished = over_ && inside_ == 0 && !reading_ && !writing_ && !std::exchange(finished_, true);
  const Status reason = reason_;
  mutex_.Unlock();
  if (finished) stream_->End(reason);
}

void OneShotWorkers::PrefetchLocked(Worker& worker) {
  std::vector<Item> examined;
  while (!queue_.empty() && !queue_.front().examined && examined.size() < kMaxExaminedTogether) {
    examined.push_back(std::move(queue_.front()));
    examined.back().examined = true;
    queue_.pop_front();
  }
  absl::Span<Item> items = absl::MakeSpan(examined);
  // A single call sends its own reads when it is run.
  if (examined.size() > 1 && runtime_.Now() >= no_prefetch_until_) {
    mutex_.Unlock();
    Deadline until = runtime_.Now() + options_.hold_back;
    for (Item& item : examined) {
      item.held = worker.NotePrefetch(item.batch->message.calls(item.index), &item.begun);
      if (item.held) until = std::min(until, item.batch->deadlines[item.index]);
    }
    DEUT_POINT("one_shot_workers.examined");
    const bool asked = worker.session != nullptr && worker.session->StartPrefetch();
    if (asked) std::ranges::stable_partition(examined, [](const Item& item) { return !item.held; });
    mutex_.Lock();
    if (asked) {
      const auto others = static_cast<size_t>(std::ranges::count(examined, false, &Item::held));
      QueueFirstLocked(items.subspan(0, others));
      items.remove_prefix(others);
      AwaitPrefetchLocked(worker, until);
    }
  }
  QueueFirstLocked(items);
}

// A session that prefetches holds back the low-water. So its thread does nothing else until the prefetch has ended. Any
// call it ran might wait for that end, such as a snapshot that wants to be later than it.
void OneShotWorkers::AwaitPrefetchLocked(Worker& worker, Deadline until) {
  const Duration patience = PatienceLocked(worker);
  mutex_.Unlock();
  const bool all = [&] {
    const BlockingHook blocking_hook(worker.hand_over(), patience);
    return worker.session->AwaitPrefetch(until);
  }();
  const MonotonicTime now = runtime_.Now();
  mutex_.Lock();
  if (worker.TakeHandedOver()) ++running_;
  if (!all) no_prefetch_until_ = now + kPauseAfterMissedPrefetch;
}

Duration OneShotWorkers::PatienceLocked(const Worker& worker) const {
  const bool nothing_else = queue_.empty() && worker.answers.message.answers_size() == 0 && worker.withheld.empty();
  return nothing_else && threads_.MayHaveDelay() ? options_.patience : Duration(0);
}

void OneShotWorkers::QueueFirstLocked(absl::Span<Item> items) {
  if (over_) {
    // Drops them, as EndLocked drops queued calls.
    for (const Item& item : items) --item.batch->left;
    return;
  }
  const auto behind = std::ranges::stable_partition(items, [](const Item& item) { return item.begun != nullptr; });
  queue_.insert(queue_.begin() + BegunLocked(), std::move_iterator(behind.begin()), std::move_iterator(behind.end()));
  queue_.insert(queue_.begin(), std::move_iterator(items.begin()), std::move_iterator(behind.begin()));
}

ptrdiff_t OneShotWorkers::BegunLocked() const {
  return std::ranges::find_if(queue_, [](const Item& item) { return item.begun == nullptr; }) - queue_.begin();
}

void OneShotWorkers::EndBegunLocked() {
  for (Item& item : queue_) {
    if (item.begun == nullptr || DEUT_OMITTED("L1.begun_ends_before_writing")) return;
    item.begun.reset();
  }
}

void OneShotWorkers::AcknowledgeLocked(Worker& worker) {
  acknowledging_ = true;
  const Lsn first = withheld_.first();
  // Answers that are added meanwhile have deadlines, too. kDeadlineCheckInterval bounds the wait for them.
  const Deadline deadline = std::min(withheld_.EarliestDeadline(), Deadline(runtime_.Now() + kDeadlineCheckInterval));
  mutex_.Unlock();
  const Result<Lsn> durable = [&] {
    const BlockingHook blocking_hook(worker.hand_over());
    return service_.AwaitDurable(first, deadline);
  }();
  const MonotonicTime now = runtime_.Now();
  mutex_.Lock();
  if (worker.TakeHandedOver()) ++running_;
  acknowledging_ = false;
  withheld_.Release(durable, now, [this](wire::OneShotAnswer* answer, size_t bytes) DEUT_REQUIRES(mutex_) {
    if (ready_.empty() || ready_.back().bytes + bytes > kAnswerMessageBytes) ready_.emplace_back();
    ready_.back().message.add_answers()->Swap(answer);
    ready_.back().bytes += bytes;
    ready_bytes_ += bytes;
  });
  written_.NotifyAll(runtime_);
}

bool OneShotWorkers::Rest(Worker& worker) {
  PublishLocked(worker);
  WriteLocked();
  if (over_) return false;
  if (!queue_.empty()) return true;  // a message came while the mutex was unlocked
  if (NeedsAcknowledgerLocked()) {
    AcknowledgeLocked(worker);
    return true;
  }
  if (RoomLocked()) StartReadLocked();
  return !queue_.empty();
}

bool OneShotWorkers::RoomLocked() const {
  return !(writing_ && ready_bytes_ > kMaxReadyBytes) && !(acknowledging_ && withheld_.bytes() > kMaxReadyBytes);
}

void OneShotWorkers::StartReadLocked() {
  if (reading_ || over_ || refused_) return;
  if (free_.empty()) {
    reading_batch_ = std::make_unique<Batch>();
  } else {
    reading_batch_ = std::move(free_.back());
    free_.pop_back();
  }
  reading_ = true;
  wire::OneShotCalls* const message = &reading_batch_->message;
  mutex_.Unlock();
  stream_->StartRead(message);
  mutex_.Lock();
}

void OneShotWorkers::QueueLocked(std::unique_ptr<Batch> batch) {
  batch->left = batch->message.calls_size();
  if (batch->left == 0 || over_) return;
  batch->deadlines.clear();
  for (int i = 0; i < batch->left; ++i) {
    batch->deadlines.push_back(DeadlineFromWire(runtime_, batch->message.calls(i).timeout_us()));
    queue_.push_back(Item{.batch = batch.get(), .index = i});
  }
  used_.push_back(std::move(batch));
}

void OneShotWorkers::DoneLocked(Batch* batch) {
  if (--batch->left != 0) return;
  const auto found = std::find_if(used_.begin(), used_.end(), [batch](const auto& one) { return one.get() == batch; });
  DEUT_CHECK(found != used_.end());
  if (free_.size() < kMaxFreeBatches) free_.push_back(std::move(*found));
  used_.erase(found);
}

void OneShotWorkers::PublishLocked(Worker& worker) {
  for (WithheldAnswers::Answer& answer : worker.withheld) withheld_.Add(std::move(answer));
  worker.withheld.clear();
  if (worker.answers.message.answers_size() == 0) return;
  ready_bytes_ += worker.answers.bytes;
  ready_.push_back(std::move(worker.answers));
  worker.answers = Answers();
}

// Joins small messages into one.
void OneShotWorkers::WriteLocked() {
  if (over_) {
    ready_.clear();
    ready_bytes_ = writing_ ? writing_bytes_ : 0;
    return;
  }
  if (writing_ || ready_.empty()) return;
  Answers answers = std::move(ready_.front());
  ready_.pop_front();
  while (!ready_.empty() && answers.bytes + ready_.front().bytes <= kAnswerMessageBytes) {
    Answers& next = ready_.front();
    answers.bytes += next.bytes;
    for (wire::OneShotAnswer& answer : *next.message.mutable_answers()) {
      answers.message.add_answers()->Swap(&answer);
    }
    ready_.pop_front();
  }
  writing_ = true;
  writing_bytes_ = answers.bytes;
  mutex_.Unlock();
  stream_->StartWrite(answers.message);
  mutex_.Lock();
}

void OneShotWorkers::WriteDone(bool ok) {
  mutex_.Lock();
  writing_ = false;
  ready_bytes_ -= writing_bytes_;
  writing_bytes_ = 0;
  written_.NotifyAll(runtime_);
  if (!ok || (refused_ && ready_.empty())) EndLocked(Status::Ok());
  WriteLocked();
  // Reading may have stopped because there was no room.
  if (running_ == 0 && queue_.empty() && RoomLocked()) StartReadLocked();
  UnlockAndFinish();
}

bool OneShotWorkers::EndIfIdle(const Status& reason) {
  {
    MutexLock lock(mutex_);
    const bool idle =
        !over_ && reading_ && inside_ == 0 && queue_.empty() && ready_.empty() && !writing_ && withheld_.empty();
    if (!idle) return false;
    EndLocked(reason);
    finished_ = true;
  }
  stream_->End(reason);
  return true;
}

// A thread that waits here runs no call, so the begun calls end first.
void OneShotWorkers::AwaitRoomLocked() {
  while (!over_ && !RoomLocked()) {
    EndBegunLocked();
    threads_.BeforeBlocking();
    written_.Wait(mutex_);
  }
}

void OneShotWorkers::EndLocked(Status reason) {
  if (over_) return;
  over_ = true;
  reason_ = std::move(reason);
  // Drops calls that have not begun, because their client would not learn their outcome.
  for (const Item& item : queue_) --item.batch->left;
  queue_.clear();
  withheld_.Clear();
  written_.NotifyAll(runtime_);
}

void OneShotWorkers::SummonLocked() {
  if (over_ || inside_ >= options_.threads) return;
  ++inside_;
  ++running_;
  const Threads::Posted posted = threads_.Post([this] {
    mutex_.Lock();
    Work();
    UnlockAndFinish();
  });
  if (posted == Threads::Posted::kNo) {
    --inside_;
    --running_;
  }
  if (posted == Threads::Posted::kWhenFree) EndBegunLocked();
}

}  // namespace deut
