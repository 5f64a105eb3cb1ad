#include "protocol/transactions/thread_per_one_shot.h"

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/sync/mutex.h"

namespace deut::testing {
namespace {

class ThreadPerOneShot final : public OneShotScheduler {
 public:
  ThreadPerOneShot(Runtime& runtime, TransactionService& service, Threads& threads, OneShotMessages& messages)
      : runtime_(runtime), service_(service), threads_(threads), messages_(messages) {}

  void Start() override {
    MutexLock lock(messages_.mutex);
    StartReadLocked();
  }
  void ReadDone(bool ok) override;
  void WriteDone(bool ok) override;
  bool EndIfIdle(const Status& reason) override;

 private:
  void OpenLocked(const OneShotBatch& first) DEUT_REQUIRES(messages_.mutex);
  void PostCallsLocked(OneShotBatch* batch) DEUT_REQUIRES(messages_.mutex);
  void RunLocked(OneShotBatch* batch, int call) DEUT_REQUIRES(messages_.mutex);
  Result<CommitAnswer> Execute(const OneShotBatch& batch, int call, std::vector<OperationResult>* results);
  void StartReadLocked() DEUT_REQUIRES(messages_.mutex);
  void WriteLocked() DEUT_REQUIRES(messages_.mutex);
  void EndLocked(Status reason) DEUT_REQUIRES(messages_.mutex);
  // The calling thread is no longer inside. The last one ends a stream that is over.
  void LeaveAndUnlock() __attribute__((release_capability(messages_.mutex)));

  Runtime& runtime_;
  TransactionService& service_;
  Threads& threads_;
  OneShotMessages& messages_;
  const std::function<void()> before_blocking_ = [this] { threads_.BeforeBlocking(); };

  // Made by the opening. It shows a test that the stream exists.
  std::unique_ptr<TransactionSession> session_ DEUT_GUARDED_BY(messages_.mutex);
  bool opened_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool refused_ DEUT_GUARDED_BY(messages_.mutex) = false;  // the answer to the opening has the reason
  bool reading_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool writing_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool over_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool finished_ DEUT_GUARDED_BY(messages_.mutex) = false;
  Status reason_ DEUT_GUARDED_BY(messages_.mutex);
  int inside_ DEUT_GUARDED_BY(messages_.mutex) = 0;  // threads, also posted ones that are about to come
};

void ThreadPerOneShot::ReadDone(bool ok) {
  messages_.mutex.Lock();
  reading_ = false;
  ++inside_;
  if (!ok || over_) {
    EndLocked(Status::Ok());
  } else if (const Result<OneShotBatch*> batch = messages_.TakeRead(/*first=*/!opened_); !batch.ok()) {
    EndLocked(batch.status());
  } else {
    if (!std::exchange(opened_, true)) OpenLocked(**batch);
    PostCallsLocked(*batch);
    StartReadLocked();
  }
  LeaveAndUnlock();
}

void ThreadPerOneShot::OpenLocked(const OneShotBatch& first) {
  Timestamp not_before;
  messages_.mutex.Unlock();
  Status status = messages_.CheckOpening(first);
  std::unique_ptr<TransactionSession> session;
  if (status.ok()) {
    Result<std::unique_ptr<TransactionSession>> fresh = service_.NewSession(kNoDeadline);
    status = fresh.status();
    if (fresh.ok()) {
      session = std::move(fresh).value();
      not_before = session->not_before();
    }
  }
  messages_.mutex.Lock();
  session_ = std::move(session);
  refused_ = !status.ok();
  messages_.AnswerOpening(status, not_before);
  WriteLocked();
}

void ThreadPerOneShot::PostCallsLocked(OneShotBatch* batch) {
  const int size = batch->size();
  if (size == 0 || refused_ || over_) return messages_.Recycle(batch);
  batch->SetDeadlines(runtime_);
  batch->left = size;
  for (int call = 0; call < size; ++call) {
    ++inside_;
    const Threads::Posted posted = threads_.Post([this, batch, call] {
      messages_.mutex.Lock();
      RunLocked(batch, call);
      LeaveAndUnlock();
    });
    if (posted != Threads::Posted::kNo) continue;
    RunLocked(batch, call);
    --inside_;
  }
}

// A call that has not begun when the stream is over is dropped, because its client would not learn its outcome.
void ThreadPerOneShot::RunLocked(OneShotBatch* batch, int call) {
  if (!over_) {
    messages_.mutex.Unlock();
    const std::unique_ptr<UnpublishedAnswers> answers = messages_.NewAnswers();
    std::vector<OperationResult> results;
    const Result<CommitAnswer> commit = Execute(*batch, call, &results);
    answers->Add(*batch, call, results, commit, [&] {
      MutexLock lock(messages_.mutex);
      messages_.Publish(answers.get());
      WriteLocked();
    });
    messages_.mutex.Lock();
    messages_.Publish(answers.get());
    WriteLocked();
  }
  if (--batch->left == 0) messages_.Recycle(batch);
}

Result<CommitAnswer> ThreadPerOneShot::Execute(const OneShotBatch& batch, int call,
                                               std::vector<OperationResult>* results) {
  TransactionOptions options;
  std::vector<Operation> operations;
  DEUT_RETURN_IF_ERROR(batch.GetOptions(call, &options));
  DEUT_RETURN_IF_ERROR(batch.GetOperations(call, &operations));
  const Deadline deadline = batch.deadlines[static_cast<size_t>(call)];
  // A call that waits for nothing brings no other thread in its thread's place. Thus a thousand quick calls need few threads.
  const BlockingHook blocking_hook(before_blocking_);
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<TransactionSession> session, service_.NewSession(deadline));
  return session->ExecuteOneShot(options, operations, results, deadline);
}

void ThreadPerOneShot::StartReadLocked() {
  if (reading_ || over_ || refused_) return;
  reading_ = true;
  messages_.StartRead();
}

void ThreadPerOneShot::WriteLocked() {
  if (over_) return messages_.DropAnswers();
  if (writing_ || !messages_.backlog().ready) return;
  writing_ = true;
  messages_.StartWrite();
}

void ThreadPerOneShot::WriteDone(bool ok) {
  messages_.mutex.Lock();
  ++inside_;
  writing_ = false;
  messages_.WriteEnded();
  if (!ok || (refused_ && !messages_.backlog().ready)) EndLocked(Status::Ok());
  WriteLocked();
  LeaveAndUnlock();
}

bool ThreadPerOneShot::EndIfIdle(const Status& reason) {
  {
    MutexLock lock(messages_.mutex);
    if (over_ || !reading_ || writing_ || inside_ != 0) return false;
    EndLocked(reason);
    finished_ = true;
  }
  messages_.End(reason);
  return true;
}

void ThreadPerOneShot::EndLocked(Status reason) {
  if (over_) return;
  over_ = true;
  reason_ = std::move(reason);
  messages_.DropAnswers();
}

void ThreadPerOneShot::LeaveAndUnlock() {
  --inside_;
  const bool finished = over_ && inside_ == 0 && !reading_ && !writing_ && !std::exchange(finished_, true);
  const Status reason = reason_;
  messages_.mutex.Unlock();
  if (finished) messages_.End(reason);
}

}  // namespace

std::unique_ptr<OneShotScheduler> NewThreadPerOneShot(Runtime& runtime, TransactionService& service,
                                                      OneShotScheduler::Threads& threads, OneShotMessages& messages) {
  return std::make_unique<ThreadPerOneShot>(runtime, service, threads, messages);
}

}  // namespace deut::testing
