// The common parts of the tests of OneShotWorkers: a stream's peer without gRPC, and workers that run on a scripted
// service.
#ifndef TC_SERVER_ONE_SHOT_WORKERS_FIXTURE_H_
#define TC_SERVER_ONE_SHOT_WORKERS_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/limits.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transactions/one_shot_scheduler.h"
#include "protocol/transactions/wire_one_shot_messages.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"
#include "tc/server/one_shot_workers.h"

namespace deut::tc {

// Starts a thread for each piece of work.
class FakeThreads final : public OneShotScheduler::Threads {
 public:
  explicit FakeThreads(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  Posted Post(std::function<void()> work) override {
    MutexLock lock(mutex_);
    threads_.push_back(runtime_.StartThread("work", std::move(work)));
    return Posted::kComes;
  }
  void BeforeBlocking() override { blocked_.fetch_add(1); }
  bool MayHaveDelay() override { return true; }
  int blocked() const { return blocked_.load(); }
  // REQUIRES: nothing is posted any more.
  void Join() {
    std::vector<std::unique_ptr<Thread>> threads;
    MutexLock lock(mutex_);
    threads.swap(threads_);
    for (const auto& thread : threads) thread->Join();
  }

 private:
  Runtime& runtime_;
  Mutex mutex_;
  std::atomic<int> blocked_{0};
  std::vector<std::unique_ptr<Thread>> threads_ DEUT_GUARDED_BY(mutex_);
};

// A peer. Its messages are read in order, and it keeps the messages that it gets. Reads and writes end on threads of
// their own.
class FakeStream : public WireOneShotMessages::Stream {
 public:
  explicit FakeStream(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  void Serve(OneShotWorkers& workers, FakeThreads& threads) {
    workers_ = &workers;
    threads_ = &threads;
    workers.Start();
  }

  void Send(const wire::OneShotCalls& message) {
    MutexLock lock(mutex_);
    incoming_.push_back(message);
    MoveLocked();
  }
  void HangUp() {
    MutexLock lock(mutex_);
    over_ = true;
    MoveLocked();
  }
  void TakeNothing(bool nothing) {
    MutexLock lock(mutex_);
    stuck_ = nothing;
    MoveLocked();
  }
  // Waits until all parts of the answer to `id` have come, and returns them merged.
  wire::SessionAnswer Answer(uint64_t id) {
    MutexLock lock(mutex_);
    while (finished_.count(id) == 0) changed_.Wait(mutex_);
    wire::SessionAnswer whole;
    for (const wire::SessionAnswer& part : parts_[id]) whole.MergeFrom(part);
    return whole;
  }
  size_t Parts(uint64_t id) {
    MutexLock lock(mutex_);
    return parts_[id].size();
  }
  bool Answered(uint64_t id) {
    MutexLock lock(mutex_);
    return finished_.count(id) != 0;
  }
  wire::OneShotAnswers Opened() {
    MutexLock lock(mutex_);
    while (messages_ == 0) changed_.Wait(mutex_);
    return opened_;
  }
  size_t messages() {
    MutexLock lock(mutex_);
    return messages_;
  }
  bool writing() {
    MutexLock lock(mutex_);
    return writing_;
  }
  size_t unread() {
    MutexLock lock(mutex_);
    return incoming_.size();
  }

  // Waits until the workers have ended the stream, and returns the reason.
  Status Ended() {
    MutexLock lock(mutex_);
    while (!ended_) changed_.Wait(mutex_);
    return reason_;
  }

  void StartRead(wire::OneShotCalls* message) override {
    MutexLock lock(mutex_);
    EXPECT_EQ(reading_, nullptr);
    EXPECT_FALSE(ended_);
    reading_ = message;
    MoveLocked();
  }
  void StartWrite(const wire::OneShotAnswers& message) override {
    EXPECT_LE(message.ByteSizeLong(), kMaxMessageBytes);
    MutexLock lock(mutex_);
    EXPECT_FALSE(writing_);
    EXPECT_FALSE(ended_);
    writing_ = true;
    outgoing_ = message;
    MoveLocked();
  }
  void End(const Status& reason) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(ended_);
    ended_ = true;
    reason_ = reason;
    changed_.NotifyAll(runtime_);
  }

 private:
  // Ends the read and the write if they can end.
  void MoveLocked() DEUT_REQUIRES(mutex_) {
    changed_.NotifyAll(runtime_);
    if (reading_ != nullptr && (!incoming_.empty() || over_)) {
      const bool read = !incoming_.empty();
      if (read) {
        reading_->Swap(&incoming_.front());
        incoming_.pop_front();
      }
      reading_ = nullptr;
      threads_->Post([this, read] { workers_->ReadDone(read); });
    }
    if (writing_ && (!stuck_ || over_)) {
      const bool written = !over_;
      if (written) KeepLocked(outgoing_);
      writing_ = false;
      threads_->Post([this, written] { workers_->WriteDone(written); });
    }
  }
  void KeepLocked(const wire::OneShotAnswers& message) DEUT_REQUIRES(mutex_) {
    if (messages_++ == 0) opened_ = message;
    for (const wire::OneShotAnswer& answer : message.answers()) {
      EXPECT_EQ(finished_.count(answer.id()), 0u) << "answered twice: " << answer.id();
      parts_[answer.id()].push_back(answer.answer());
      if (!answer.answer().more()) ++finished_[answer.id()];
    }
  }

  Runtime& runtime_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<wire::OneShotCalls> incoming_ DEUT_GUARDED_BY(mutex_);
  bool over_ DEUT_GUARDED_BY(mutex_) = false;
  bool stuck_ DEUT_GUARDED_BY(mutex_) = false;
  wire::OneShotCalls* reading_ DEUT_GUARDED_BY(mutex_) = nullptr;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  wire::OneShotAnswers outgoing_ DEUT_GUARDED_BY(mutex_);
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;
  Status reason_ DEUT_GUARDED_BY(mutex_);
  OneShotWorkers* workers_ = nullptr;
  FakeThreads* threads_ = nullptr;
  size_t messages_ DEUT_GUARDED_BY(mutex_) = 0;
  wire::OneShotAnswers opened_ DEUT_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<wire::SessionAnswer>> parts_ DEUT_GUARDED_BY(mutex_);
  std::map<uint64_t, int> finished_ DEUT_GUARDED_BY(mutex_);
};

// A stream and its workers, which start with it. Its destructor ends it.
class PlayedStream final : public FakeStream {
 public:
  PlayedStream(Runtime& runtime, TransactionService& service, const OneShotWorkers::Options& options)
      : FakeStream(runtime),
        threads_(runtime),
        messages_(runtime, this),
        workers_(runtime, service, threads_, options, messages_) {
    Serve(workers_, threads_);
  }
  ~PlayedStream() override {
    HangUp();
    (void)WaitForEnd();
  }
  // Returns the reason with which the workers ended the stream.
  Status WaitForEnd() {
    Status reason = Ended();
    threads_.Join();
    return reason;
  }

 private:
  FakeThreads threads_;
  WireOneShotMessages messages_;
  OneShotWorkers workers_;
};

class OneShotWorkersTest : public ::testing::Test {
 protected:
  ~OneShotWorkersTest() override { Stop(); }

  void Start(const OneShotWorkers::Options& options = {}) {
    messages_.emplace(runtime_, &stream_);
    workers_.emplace(runtime_, scripted_, threads_, options, *messages_);
    stream_.Serve(*workers_, threads_);
  }
  void Stop() {
    stream_.HangUp();
    WaitForEnd();
  }
  void WaitForEnd() {
    if (!workers_.has_value()) return;
    ended_ = stream_.Ended();
    threads_.Join();
    workers_.reset();
  }
  static wire::OneShotCalls Opening() {
    wire::OneShotCalls message;
    message.mutable_open()->set_protocol_version(kProtocolVersion);
    return message;
  }
  static void Add(uint64_t id, const Operation& operation, wire::OneShotCalls* message) {
    wire::OneShotCall* call = message->add_calls();
    call->set_id(id);
    ToWire(operation, call->mutable_one_shot()->add_operations());
  }
  static Operation Put(const std::string& key, const std::string& value) {
    return {.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value};
  }
  static Operation Get(const std::string& key) {
    return {.kind = OperationKind::kGet, .table = TableId(1), .key = key};
  }
  static Operation Scan(const std::string& low) {
    return {.kind = OperationKind::kScan, .table = TableId(1), .low = low};
  }
  void Send(uint64_t id, const Operation& operation) {
    wire::OneShotCalls message;
    Add(id, operation, &message);
    stream_.Send(message);
  }

  BlockingHookRuntime runtime_{RealRuntime()};
  testing::ScriptedTransactionService scripted_{runtime_};
  FakeThreads threads_{runtime_};
  FakeStream stream_{runtime_};
  Status ended_;
  std::optional<WireOneShotMessages> messages_;
  std::optional<OneShotWorkers> workers_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_ONE_SHOT_WORKERS_FIXTURE_H_
