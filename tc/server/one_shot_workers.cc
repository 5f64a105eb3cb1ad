#include "tc/server/one_shot_workers.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "common/runtime/blocking_hook.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"

namespace deut::tc {
namespace {

// When more bytes of answers than this wait for the writer, threads that have more answers stop.
constexpr size_t kMaxReadyBytes = 4 * kAnswerMessageBytes;
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
  explicit Worker(OneShotWorkers& owner)
      : answers(owner.messages_.NewAnswers()), owner_(owner), hand_over_([this] { HandOver(); }) {}

  // Runs one call and adds its answer to `answers`.
  void RunCall(QueuedOneShot call);
  // True: the call that has just ended brought another thread in this thread's place.
  bool TakeHandedOver() { return std::exchange(handed_over_, false); }

  // Returns notes that own the session until their prefetch has ended.
  PrefetchNotes TakeNotes();
  // True: the call's reads need the DC, the session will ask for them, and the call is held back. It may be begun for
  // that, with this tag.
  bool NotePrefetch(const QueuedOneShot& call, size_t tag, PrefetchNotes* notes);

  const std::unique_ptr<UnpublishedAnswers> answers;
  std::unique_ptr<TransactionSession> session;  // null before the first call, and during a prefetch
  Duration patience = Duration(0);              // of the call that it runs
  MonotonicTime since;                          // the last time that it checked the queue's length
  const std::function<void()>& hand_over() const { return hand_over_; }

 private:
  Result<CommitAnswer> Execute(const OneShotBatch& batch, int call, std::unique_ptr<BegunOneShot> begun,
                               Lsn* durable_at);
  // Runs before a wait.
  void HandOver();

  OneShotWorkers& owner_;
  const std::function<void()> hand_over_;
  bool handed_over_ = false;
  TransactionOptions options_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> results_;
};

void OneShotWorkers::Worker::HandOver() {
  DEUT_POINT("one_shot_workers.hand_over");
  {
    MutexLock lock(owner_.messages_.mutex);
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
    if (owner_.running_ == 0) owner_.queue_.EndBegun();
    owner_.WriteLocked();
  }
  owner_.threads_.BeforeBlocking();
}

PrefetchNotes OneShotWorkers::Worker::TakeNotes() {
  if (session == nullptr) {
    Result<std::unique_ptr<TransactionSession>> fresh = owner_.service_.NewSession(kNoDeadline);
    if (fresh.ok()) session = std::move(fresh).value();
  }
  return PrefetchNotes(std::move(session));
}

bool OneShotWorkers::Worker::NotePrefetch(const QueuedOneShot& call, size_t tag, PrefetchNotes* notes) {
  const OneShotBatch& batch = *call.batch;
  // A prefetch can cost other transactions an abort, which a snapshot never does.
  if (batch.IsSnapshot(call.index)) return false;
  // An invalid call gets its error when it is run.
  if (!batch.GetOperations(call.index, &operations_).ok() || operations_.empty()) return false;
  const bool begun = operations_.front().kind == OperationKind::kScan && batch.GetOptions(call.index, &options_).ok() &&
                     notes->Begin(options_, operations_, tag);
  return notes->Note(operations_) || begun;
}

Result<CommitAnswer> OneShotWorkers::Worker::Execute(const OneShotBatch& batch, int call,
                                                     std::unique_ptr<BegunOneShot> begun, Lsn* durable_at) {
  DEUT_RETURN_IF_ERROR(batch.GetOptions(call, &options_));
  DEUT_RETURN_IF_ERROR(batch.GetOperations(call, &operations_));
  const Deadline deadline = batch.deadlines[static_cast<size_t>(call)];
  const BlockingHook blocking_hook(hand_over_, patience);
  if (session == nullptr) {
    DEUT_ASSIGN_OR_RETURN(session, owner_.service_.NewSession(deadline));
  }
  return session->ExecuteOneShotWithoutWait(options_, operations_, &results_, deadline, durable_at, std::move(begun));
}

void OneShotWorkers::Worker::RunCall(QueuedOneShot call) {
  Lsn durable_at(0);
  const Result<CommitAnswer> commit = Execute(*call.batch, call.index, std::move(call.begun), &durable_at);
  answers->Add(*call.batch, call.index, results_, commit, [this] {
    MutexLock lock(owner_.messages_.mutex);
    owner_.PublishLocked(*this);
    owner_.WriteLocked();
    owner_.AwaitRoomLocked();
  });
  results_.clear();  // there may be many, and the worker may be idle for long
  if (durable_at != Lsn(0) && DEUT_STEP("D1.withhold")) {
    const bool wrote = commit.ok() && commit->commit_lsn != Lsn(0);
    answers->WithholdLast(wrote, durable_at, call.batch->deadlines[static_cast<size_t>(call.index)]);
  }
}

OneShotWorkers::OneShotWorkers(Runtime& runtime, TransactionService& service, Threads& threads, const Options& options,
                               OneShotMessages& messages)
    : runtime_(runtime), service_(service), threads_(threads), options_(options), messages_(messages) {}

OneShotWorkers::~OneShotWorkers() = default;

void OneShotWorkers::Start() {
  MutexLock lock(messages_.mutex);
  StartReadLocked();
}

void OneShotWorkers::ReadDone(bool ok) {
  messages_.mutex.Lock();
  reading_ = false;
  ++inside_;
  ++running_;
  if (!ok || over_) {
    EndLocked(Status::Ok());
  } else if (const Result<OneShotBatch*> batch = messages_.TakeRead(/*first=*/!opened_); !batch.ok()) {
    EndLocked(batch.status());
  } else if (opened_) {
    QueueLocked(*batch);
  } else {
    OpenLocked(*batch);
  }
  Work();
  UnlockAndFinish();
}

void OneShotWorkers::OpenLocked(OneShotBatch* first) {
  auto own = std::make_unique<Worker>(*this);
  Timestamp not_before;
  messages_.mutex.Unlock();
  Status status = messages_.CheckOpening(*first);
  if (status.ok()) {
    Result<std::unique_ptr<TransactionSession>> session = service_.NewSession(kNoDeadline);
    status = session.status();
    if (session.ok()) {
      own->session = std::move(session).value();
      not_before = own->session->not_before();
    }
  }
  messages_.mutex.Lock();
  opened_ = true;
  refused_ = !status.ok();
  messages_.AnswerOpening(status, not_before);
  spare_.push_back(std::move(own));
  if (!refused_) QueueLocked(first);
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
    if (!queue_.FirstIsExamined()) {
      if (!queue_.empty()) {
        PrefetchLocked(worker);
      } else if (!Rest(worker)) {
        break;
      }
      worker.since = runtime_.Now();
      continue;
    }
    QueuedOneShot call = queue_.TakeFirst();
    OneShotBatch* const batch = call.batch;
    worker.patience = PatienceLocked(worker);
    messages_.mutex.Unlock();
    worker.RunCall(std::move(call));
    const MonotonicTime now = runtime_.Now();
    messages_.mutex.Lock();
    if (worker.TakeHandedOver()) {
      ++running_;
      worker.since = now;
    }
    DoneLocked(batch);
    if (now - worker.since < options_.share_after || queue_.HasBegun()) continue;
    worker.since = now;
    // Finished answers do not wait for the rest of a long queue.
    PublishLocked(worker);
    WriteLocked();
    // Commits that are to become durable do not wait for it either. A thread must ask for that, and takes up the queue
    // again afterwards.
    if (NeedsAcknowledgerLocked() && (OthersCanRunLocked() || messages_.backlog().withheld_bytes > kMaxReadyBytes)) {
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
  messages_.mutex.Unlock();
  if (finished) messages_.End(reason);
}

void OneShotWorkers::PrefetchLocked(Worker& worker) {
  std::vector<QueuedOneShot> examined = queue_.TakeUnexamined(kMaxExaminedTogether);
  absl::Span<QueuedOneShot> calls = absl::MakeSpan(examined);
  // A single call sends its own reads when it is run.
  if (examined.size() > 1 && runtime_.Now() >= no_prefetch_until_) {
    messages_.mutex.Unlock();
    Deadline until = runtime_.Now() + options_.hold_back;
    PrefetchNotes notes = worker.TakeNotes();
    size_t held = 0;
    for (QueuedOneShot& call : examined) {
      call.held = worker.NotePrefetch(call, /*tag=*/held, &notes);
      if (!call.held) continue;
      ++held;
      until = std::min(until, call.batch->deadlines[static_cast<size_t>(call.index)]);
    }
    DEUT_POINT("one_shot_workers.examined");
    PendingPrefetch pending = std::move(notes).Start();
    if (pending.sent()) {
      std::ranges::stable_partition(examined, [](const QueuedOneShot& call) { return !call.held; });
      messages_.mutex.Lock();
      PutFirstLocked(calls.subspan(0, calls.size() - held));
      calls.remove_prefix(calls.size() - held);
      AwaitPrefetchLocked(worker, std::move(pending), calls, until);
    } else {
      worker.session = std::move(pending).Await(until).session;
      messages_.mutex.Lock();
    }
  }
  PutFirstLocked(calls);
}

// A session that prefetches holds back the low-water. So its thread does nothing else until the prefetch has ended. Any
// call it ran might wait for that end, such as a snapshot that wants to be later than it.
void OneShotWorkers::AwaitPrefetchLocked(Worker& worker, PendingPrefetch pending, absl::Span<QueuedOneShot> held,
                                         Deadline until) {
  const Duration patience = PatienceLocked(worker);
  messages_.mutex.Unlock();
  EndedPrefetch ended = [&] {
    const BlockingHook blocking_hook(worker.hand_over(), patience);
    return std::move(pending).Await(until);
  }();
  worker.session = std::move(ended.session);
  for (EndedPrefetch::Begun& begun : ended.begun) held[begun.tag].begun = std::move(begun.transaction);
  const MonotonicTime now = runtime_.Now();
  messages_.mutex.Lock();
  if (worker.TakeHandedOver()) ++running_;
  if (!ended.all_answered) no_prefetch_until_ = now + kPauseAfterMissedPrefetch;
}

Duration OneShotWorkers::PatienceLocked(const Worker& worker) const {
  const bool nothing_else = queue_.empty() && worker.answers->empty();
  return nothing_else && threads_.MayHaveDelay() ? options_.patience : Duration(0);
}

void OneShotWorkers::PutFirstLocked(absl::Span<QueuedOneShot> calls) {
  if (over_) return OneShotQueue::Drop(calls);
  queue_.PutFirst(calls);
}

void OneShotWorkers::AcknowledgeLocked(Worker& worker) {
  acknowledging_ = true;
  const Lsn first = messages_.FirstWithheld();
  // Answers that are added meanwhile have deadlines, too. kDeadlineCheckInterval bounds the wait for them.
  const Deadline deadline = std::min(messages_.EarliestDeadline(), Deadline(runtime_.Now() + kDeadlineCheckInterval));
  messages_.mutex.Unlock();
  const Result<Lsn> durable = [&] {
    const BlockingHook blocking_hook(worker.hand_over());
    return service_.AwaitDurable(first, deadline);
  }();
  const MonotonicTime now = runtime_.Now();
  messages_.mutex.Lock();
  if (worker.TakeHandedOver()) ++running_;
  acknowledging_ = false;
  messages_.Release(durable, now);
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
  const OneShotMessages::Backlog backlog = messages_.backlog();
  return !(writing_ && backlog.ready_bytes > kMaxReadyBytes) &&
         !(acknowledging_ && backlog.withheld_bytes > kMaxReadyBytes);
}

void OneShotWorkers::StartReadLocked() {
  if (reading_ || over_ || refused_) return;
  reading_ = true;
  messages_.StartRead();
}

void OneShotWorkers::QueueLocked(OneShotBatch* batch) {
  if (batch->size() == 0 || over_) return messages_.Recycle(batch);
  batch->SetDeadlines(runtime_);
  queue_.Add(batch);
}

void OneShotWorkers::DoneLocked(OneShotBatch* batch) {
  if (--batch->left == 0) messages_.Recycle(batch);
}

void OneShotWorkers::PublishLocked(Worker& worker) { messages_.Publish(worker.answers.get()); }

void OneShotWorkers::WriteLocked() {
  if (over_) return messages_.DropAnswers();
  if (writing_ || !messages_.backlog().ready) return;
  writing_ = true;
  messages_.StartWrite();
}

void OneShotWorkers::WriteDone(bool ok) {
  messages_.mutex.Lock();
  writing_ = false;
  messages_.WriteEnded();
  written_.NotifyAll(runtime_);
  if (!ok || (refused_ && !messages_.backlog().ready)) EndLocked(Status::Ok());
  WriteLocked();
  // Reading may have stopped because there was no room.
  if (running_ == 0 && queue_.empty() && RoomLocked()) StartReadLocked();
  UnlockAndFinish();
}

bool OneShotWorkers::EndIfIdle(const Status& reason) {
  {
    MutexLock lock(messages_.mutex);
    const OneShotMessages::Backlog backlog = messages_.backlog();
    const bool idle =
        !over_ && reading_ && inside_ == 0 && queue_.empty() && !backlog.ready && !writing_ && !backlog.withheld;
    if (!idle) return false;
    EndLocked(reason);
    finished_ = true;
  }
  messages_.End(reason);
  return true;
}

// A thread that waits here runs no call, so the begun calls end first.
void OneShotWorkers::AwaitRoomLocked() {
  while (!over_ && !RoomLocked()) {
    queue_.EndBegun();
    threads_.BeforeBlocking();
    written_.Wait(messages_.mutex);
  }
}

void OneShotWorkers::EndLocked(Status reason) {
  if (over_) return;
  over_ = true;
  reason_ = std::move(reason);
  // Drops calls that have not begun, because their client would not learn their outcome.
  queue_.DropAll();
  messages_.DropAnswers();
  written_.NotifyAll(runtime_);
}

void OneShotWorkers::SummonLocked() {
  if (over_ || inside_ >= options_.threads) return;
  ++inside_;
  ++running_;
  const Threads::Posted posted = threads_.Post([this] {
    messages_.mutex.Lock();
    Work();
    UnlockAndFinish();
  });
  if (posted == Threads::Posted::kNo) {
    --inside_;
    --running_;
  }
  if (posted == Threads::Posted::kWhenFree) queue_.EndBegun();
}

std::unique_ptr<OneShotScheduler> NewOneShotWorkers(Runtime& runtime, TransactionService& service,
                                                    OneShotScheduler::Threads& threads, OneShotMessages& messages) {
  const OneShotWorkers::Options options{.max_running =
                                            static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))};
  return std::make_unique<OneShotWorkers>(runtime, service, threads, options, messages);
}

}  // namespace deut::tc
