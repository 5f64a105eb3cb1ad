// Many transactions on one stream: none waits for another, all are answered, and a peer that sends nonsense, or nothing any more, ends it.
#include "protocol/one_shot_workers.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/before_wait.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/convert_transaction_service.h"
#include "protocol/limits.h"
#include "protocol/one_shot_limits.h"
#include "protocol/testing/scripted_transaction_service.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

// A peer: what it sends is read in order, what it is sent is kept.
class FakeStream final : public OneShotWorkers::Stream {
 public:
  explicit FakeStream(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  void Send(const wire::OneShotCalls& message) {
    MutexLock lock(mutex_);
    incoming_.push_back(message);
    changed_.NotifyAll(runtime_);
  }
  void HangUp() {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll(runtime_);
  }
  void TakeNothing(bool nothing) {
    MutexLock lock(mutex_);
    stuck_ = nothing;
    changed_.NotifyAll(runtime_);
  }
  // Waits until all parts of the answer to `id` are there, together.
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
  size_t unread() {
    MutexLock lock(mutex_);
    return incoming_.size();
  }

  bool Read(wire::OneShotCalls* message) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(reading_);
    reading_ = true;
    while (incoming_.empty() && !over_) changed_.Wait(mutex_);
    reading_ = false;
    if (incoming_.empty()) return false;
    message->Swap(&incoming_.front());
    incoming_.pop_front();
    return true;
  }
  bool Write(const wire::OneShotAnswers& message) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(writing_);
    writing_ = true;
    while (stuck_ && !over_) changed_.Wait(mutex_);
    writing_ = false;
    if (over_) return false;
    EXPECT_LE(message.ByteSizeLong(), kMaxMessageBytes);
    if (messages_++ == 0) opened_ = message;
    for (const wire::OneShotAnswer& answer : message.answers()) {
      EXPECT_EQ(finished_.count(answer.id()), 0u) << "answered twice: " << answer.id();
      parts_[answer.id()].push_back(answer.answer());
      if (!answer.answer().more()) ++finished_[answer.id()];
    }
    changed_.NotifyAll(runtime_);
    return true;
  }

 private:
  Runtime& runtime_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<wire::OneShotCalls> incoming_ DEUT_GUARDED_BY(mutex_);
  bool over_ DEUT_GUARDED_BY(mutex_) = false;
  bool stuck_ DEUT_GUARDED_BY(mutex_) = false;
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  size_t messages_ DEUT_GUARDED_BY(mutex_) = 0;
  wire::OneShotAnswers opened_ DEUT_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<wire::SessionAnswer>> parts_ DEUT_GUARDED_BY(mutex_);
  std::map<uint64_t, int> finished_ DEUT_GUARDED_BY(mutex_);
};

class OneShotWorkersTest : public ::testing::Test {
 protected:
  ~OneShotWorkersTest() override { Stop(); }

  void Start(const OneShotWorkers::Options& options = {}) {
    thread_ = runtime_.StartThread("stream", [this, options] {
      OneShotWorkers workers(runtime_, scripted_, allowance_, options, &stream_);
      ended_ = workers.Run();
    });
  }
  void Stop() {
    stream_.HangUp();
    thread_.reset();
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
  void Send(uint64_t id, const Operation& operation) {
    wire::OneShotCalls message;
    Add(id, operation, &message);
    stream_.Send(message);
  }

  TellingRuntime runtime_{RealRuntime()};
  testing::ScriptedTransactionService scripted_{runtime_};
  ThreadAllowance allowance_{100};
  FakeStream stream_{runtime_};
  Status ended_;
  std::unique_ptr<Thread> thread_;
};

TEST_F(OneShotWorkersTest, RunsWhatOneMessageHoldsAndAnswersInOne) {
  Start({.share_after = seconds(1000)});
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 20; ++id) Add(id, Put("k" + std::to_string(id), "v"), &message);
  stream_.Send(message);
  for (uint64_t id = 1; id <= 20; ++id) {
    const wire::SessionAnswer answer = stream_.Answer(id);
    EXPECT_TRUE(FromWire(answer.status()).ok());
    EXPECT_EQ(answer.results_size(), 1);
    EXPECT_NE(answer.commit_lsn(), 0u);
  }
  EXPECT_EQ(stream_.Opened().protocol_version(), kProtocolVersion);
  EXPECT_EQ(stream_.messages(), 2u);
  Stop();
  EXPECT_TRUE(ended_.ok());
  EXPECT_EQ(scripted_.commits(), 20u);
  EXPECT_EQ(scripted_.sessions(), 0u);
}

TEST_F(OneShotWorkersTest, WhatWaitsHoldsUpNobody) {
  Event go;
  std::atomic<int> waiting{0};
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    // The first five to come wait.
    if (call == "one_shot" && waiting.fetch_add(1) < 5) go.Wait(runtime_, deadline);
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 10; ++id) Add(id, Put("k", "v"), &message);
  stream_.Send(message);
  // Of the ten, five are answered while five wait; and what comes later is read.
  Send(11, Put("k", "w"));
  EXPECT_TRUE(FromWire(stream_.Answer(11).status()).ok());
  const auto answered = [&] {
    int n = 0;
    for (uint64_t id = 1; id <= 10; ++id) n += stream_.Answered(id) ? 1 : 0;
    return n;
  };
  while (answered() < 5) runtime_.Yield();
  EXPECT_EQ(answered(), 5);
  go.Signal(runtime_);
  for (uint64_t id = 1; id <= 10; ++id) EXPECT_TRUE(FromWire(stream_.Answer(id).status()).ok());
}

TEST_F(OneShotWorkersTest, WithoutMoreThreadsWhatWaitsIsWaitedFor) {
  for (const bool of_stream : {true, false}) {
    Event go;
    std::atomic<int> waiting{0};
    scripted_.before = [&](std::string_view call, Deadline deadline) {
      if (call == "one_shot" && waiting.fetch_add(1) < 2) go.Wait(runtime_, deadline);
      return Status::Ok();
    };
    FakeStream stream(runtime_);
    ThreadAllowance allowance(of_stream ? 100 : 1);
    OneShotWorkers workers(runtime_, scripted_, allowance, {.threads = of_stream ? 2 : 100}, &stream);
    const auto thread = runtime_.StartThread("stream", [&] { (void)workers.Run(); });
    wire::OneShotCalls message = Opening();
    for (uint64_t id = 1; id <= 4; ++id) Add(id, Get("k"), &message);
    stream.Send(message);
    while (waiting.load() < 2) runtime_.Yield();
    EXPECT_FALSE(stream.Answered(3));
    go.Signal(runtime_);
    for (uint64_t id = 1; id <= 4; ++id) EXPECT_TRUE(FromWire(stream.Answer(id).status()).ok());
    stream.HangUp();
    thread->Join();
    EXPECT_TRUE(allowance.Take());  // it has been given back
  }
}

TEST_F(OneShotWorkersTest, ALongQueueIsShared) {
  std::atomic<int> inside{0};
  Event both;
  // Each waits until another one is in its call, too, without a wait that anybody is told of.
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "one_shot") return Status::Ok();
    ++inside;
    const MonotonicTime end = runtime_.Now() + milliseconds(1);
    while (runtime_.Now() < end) runtime_.Yield();
    if (inside.load() > 1) both.Signal(runtime_);
    --inside;
    return Status::Ok();
  };
  Start({.parallel = 2});
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 200; ++id) Add(id, Get("k"), &message);
  stream_.Send(message);
  EXPECT_TRUE(both.Wait(runtime_, kNoDeadline));
  for (uint64_t id = 1; id <= 200; ++id) EXPECT_TRUE(FromWire(stream_.Answer(id).status()).ok());
}

TEST_F(OneShotWorkersTest, LargeResultsTravelInParts) {
  wire::OneShotCalls message = Opening();
  const std::string value(100 << 10, 'v');
  for (uint64_t id = 1; id <= 10; ++id) Add(id, Put("k", value), &message);
  for (int i = 0; i < 10; ++i) ToWire(Get("k"), message.mutable_calls(9)->mutable_one_shot()->add_operations());
  Start();
  stream_.Send(message);
  const wire::SessionAnswer answer = stream_.Answer(10);
  ASSERT_EQ(answer.results_size(), 11);
  for (int i = 1; i < 11; ++i) EXPECT_GT(answer.results(i).records().size(), size_t{100 << 10});
  EXPECT_GT(stream_.Parts(10), 2u);
}

TEST_F(OneShotWorkersTest, APeerThatTakesNothingIsNotReadFrom) {
  Start();
  wire::OneShotCalls message = Opening();
  Add(1, Put("k", std::string(1 << 20, 'v')), &message);
  stream_.Send(message);
  EXPECT_TRUE(FromWire(stream_.Answer(1).status()).ok());
  stream_.TakeNothing(true);
  for (uint64_t id = 2; id <= 50; ++id) Send(id, Get("k"));
  while (stream_.unread() == 49) runtime_.Yield();
  EXPECT_GE(stream_.unread(), 40u);
  stream_.TakeNothing(false);
  for (uint64_t id = 2; id <= 50; ++id) EXPECT_EQ(stream_.Answer(id).results_size(), 1);
}

// Also where each answer is small and several threads work.
TEST_F(OneShotWorkersTest, APeerThatTakesNoSmallAnswersIsNotReadFrom) {
  std::atomic<int> calls{0};
  scripted_.before = [&](std::string_view call, Deadline) {
    // Some wait, and others come for them: while one writes, another goes on.
    if (call == "one_shot" && calls.fetch_add(1) % 10 == 2) runtime_.SleepUntil(runtime_.Now() + microseconds(100));
    return Status::Ok();
  };
  Start({.parallel = 2, .share_after = microseconds(1)});
  wire::OneShotCalls message = Opening();
  Add(1, Put("k", std::string(2 << 10, 'v')), &message);
  for (uint64_t id = 2; id <= 20; ++id) Add(id, Get("k"), &message);
  stream_.Send(message);
  for (uint64_t id = 1; id <= 20; ++id) EXPECT_TRUE(FromWire(stream_.Answer(id).status()).ok());
  stream_.TakeNothing(true);
  constexpr uint64_t kMessages = 100, kCalls = 50;  // 10 MB of answers
  for (uint64_t m = 1; m <= kMessages; ++m) {
    wire::OneShotCalls more;
    for (uint64_t i = 0; i < kCalls; ++i) Add(m * 1000 + i, Get("k"), &more);
    stream_.Send(more);
  }
  // Until nothing happens for a while.
  for (int seen = -1; seen != calls.load();) {
    seen = calls.load();
    runtime_.SleepUntil(runtime_.Now() + milliseconds(100));
  }
  EXPECT_GE(stream_.unread(), kMessages / 2);
  stream_.TakeNothing(false);
  for (uint64_t m = 1; m <= kMessages; ++m)
    for (uint64_t i = 0; i < kCalls; ++i) EXPECT_EQ(stream_.Answer(m * 1000 + i).results_size(), 1);
}

TEST_F(OneShotWorkersTest, FirstComesTheVersion) {
  Start();
  wire::OneShotCalls message;
  Add(1, Get("k"), &message);
  stream_.Send(message);
  EXPECT_EQ(FromWire(stream_.Opened().status()).code(), ErrorCode::kWrongState);
  thread_.reset();

  FakeStream other(runtime_);
  OneShotWorkers workers(runtime_, scripted_, allowance_, {}, &other);
  message = Opening();
  message.mutable_open()->set_protocol_version(kProtocolVersion + 1);
  other.Send(message);
  EXPECT_TRUE(workers.Run().ok());
  EXPECT_EQ(FromWire(other.Opened().status()).code(), ErrorCode::kVersionMismatch);
  EXPECT_EQ(scripted_.sessions(), 0u);
}

TEST_F(OneShotWorkersTest, BadCallsAreRefusedEachByItself) {
  Start();
  wire::OneShotCalls message = Opening();
  Add(1, Put("", "v"), &message);
  Add(2, Put("k", "v"), &message);
  message.add_calls()->set_id(3);
  message.mutable_calls(2)->mutable_one_shot()->mutable_begin()->set_isolation(static_cast<wire::Isolation>(9));
  stream_.Send(message);
  EXPECT_EQ(FromWire(stream_.Answer(1).status()).code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(FromWire(stream_.Answer(2).status()).ok());
  EXPECT_THAT(FromWire(stream_.Answer(3).status()).ToString(), HasSubstr("begin.isolation"));
}

TEST_F(OneShotWorkersTest, TooManyCallsEndTheStream) {
  Start();
  wire::OneShotCalls message = Opening();
  stream_.Send(message);
  message = wire::OneShotCalls();
  for (int i = 0; i <= kMaxOneShotsPerMessage; ++i) Add(i, Get("k"), &message);
  stream_.Send(message);
  thread_.reset();
  EXPECT_EQ(ended_.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(scripted_.commits(), 0u);

  FakeStream at_once(runtime_);
  message.mutable_open()->set_protocol_version(kProtocolVersion);
  at_once.Send(message);
  EXPECT_EQ(OneShotWorkers(runtime_, scripted_, allowance_, {}, &at_once).Run().code(), ErrorCode::kInvalidArgument);
}

TEST_F(OneShotWorkersTest, WhatHasBegunGoesOnWhenThePeerIsGone) {
  Event inside, go;
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    if (call == "commit" && !inside.IsSet()) {
      inside.Signal(runtime_);
      go.Wait(runtime_, deadline);
    }
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  Add(1, Put("k", "v"), &message);
  stream_.Send(message);
  ASSERT_TRUE(inside.Wait(runtime_, kNoDeadline));
  stream_.HangUp();
  go.Signal(runtime_);
  thread_.reset();
  EXPECT_EQ(scripted_.Value(TableId(1), "k"), "v");
  EXPECT_EQ(scripted_.sessions(), 0u);
}

// Two calls are held back for what they read; what needs nothing of it, in their message and after it, is answered meanwhile.
TEST_F(OneShotWorkersTest, WhatIsReadAheadIsAskedForTogetherAndHoldsUpNobodyElse) {
  Event asked, go;
  std::atomic<int> starts{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "start_reads") ++starts;
    if (call == "finish_reads") {
      asked.Signal(runtime_);
      go.Wait(runtime_, kNoDeadline);
    }
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  Add(1, Get("far1"), &message);
  Add(2, Put("near", "v"), &message);
  Add(3, Get("far2"), &message);
  Add(4, Get("near"), &message);
  stream_.Send(message);
  EXPECT_TRUE(asked.Wait(runtime_, kNoDeadline));
  EXPECT_TRUE(FromWire(stream_.Answer(2).status()).ok());
  EXPECT_EQ(stream_.Answer(4).results_size(), 1);
  Send(5, Get("near"));
  EXPECT_EQ(stream_.Answer(5).results_size(), 1);
  EXPECT_FALSE(stream_.Answered(1));
  EXPECT_FALSE(stream_.Answered(3));
  EXPECT_EQ(starts.load(), 1);
  go.Signal(runtime_);
  EXPECT_EQ(stream_.Answer(1).results_size(), 1);
  EXPECT_EQ(stream_.Answer(3).results_size(), 1);
}

TEST_F(OneShotWorkersTest, WithoutReadingAheadEachReadsForItself) {
  std::atomic<int> refused{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "start_reads") return Status::Ok();
    ++refused;
    return Status(ErrorCode::kUnavailable, "not now");
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 4; ++id) Add(id, Get(id == 3 ? "near" : "far"), &message);
  stream_.Send(message);
  for (uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(stream_.Answer(id).results_size(), 1);
  EXPECT_EQ(refused.load(), 1);
  // A call alone asks for itself.
  Send(5, Get("far"));
  EXPECT_EQ(stream_.Answer(5).results_size(), 1);
  EXPECT_EQ(refused.load(), 1);
}

// As it raises what is read, and so may cost an earlier writer an abort.
TEST_F(OneShotWorkersTest, NothingIsReadAheadForSnapshots) {
  std::atomic<int> starts{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "start_reads") ++starts;
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 4; ++id) {
    Add(id, Get("far"), &message);
    message.mutable_calls(static_cast<int>(id - 1))->mutable_one_shot()->mutable_begin()->set_isolation(wire::SNAPSHOT);
  }
  stream_.Send(message);
  for (uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(stream_.Answer(id).results_size(), 1);
  EXPECT_EQ(starts.load(), 0);
}

TEST_F(OneShotWorkersTest, ThePeerGoesWhileSomethingIsReadAhead) {
  Event asked, go;
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "finish_reads") {
      asked.Signal(runtime_);
      go.Wait(runtime_, kNoDeadline);
    }
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 4; ++id) Add(id, Get("far"), &message);
  stream_.Send(message);
  EXPECT_TRUE(asked.Wait(runtime_, kNoDeadline));
  stream_.HangUp();
  go.Signal(runtime_);
  thread_.reset();
  EXPECT_EQ(scripted_.sessions(), 0u);
}

// Many wait for the disk, and one thread waits for them: what is not durable is not shown, what comes meanwhile is run.
TEST_F(OneShotWorkersTest, WhatIsNotDurableIsAnsweredWhenItIs) {
  Event waiting, go;
  std::atomic<int> waits{0};
  scripted_.withholds = true;
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "await_durable") {
      ++waits;
      waiting.Signal(runtime_);
      go.Wait(runtime_, kNoDeadline);
    }
    return Status::Ok();
  };
  Start({.threads = 2});
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 20; ++id) Add(id, Put("k" + std::to_string(id), "v"), &message);
  stream_.Send(message);
  EXPECT_TRUE(waiting.Wait(runtime_, runtime_.Now() + seconds(20)));
  for (uint64_t id = 21; id <= 40; ++id) Send(id, Put("k", "v"));
  Send(41, Get("k"));
  EXPECT_EQ(stream_.Answer(41).results_size(), 1);  // with two threads: the others have left theirs
  EXPECT_EQ(scripted_.commits(), 41u);
  for (uint64_t id = 1; id <= 40; ++id) EXPECT_FALSE(stream_.Answered(id));
  EXPECT_EQ(waits.load(), 1);
  go.Signal(runtime_);
  for (uint64_t id = 1; id <= 40; ++id) {
    const wire::SessionAnswer answer = stream_.Answer(id);
    EXPECT_TRUE(FromWire(answer.status()).ok());
    EXPECT_NE(answer.commit_lsn(), 0u);
  }
}

// Calls that take the processor, and wait for nothing: whoever runs them sees to what is to become durable.
TEST_F(OneShotWorkersTest, ALongQueueDoesNotHoldUpTheDisk) {
  std::atomic<bool> asked{false}, asked_before_the_last{false};
  std::atomic<uint64_t> begun{0};
  scripted_.withholds = true;
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "await_durable") asked.store(true);
    if (call == "one_shot") {
      const MonotonicTime end = runtime_.Now() + microseconds(100);
      while (runtime_.Now() < end) runtime_.Yield();
      if (begun.fetch_add(1) == 199) asked_before_the_last.store(asked.load());
    }
    return Status::Ok();
  };
  Start({.threads = 2});
  wire::OneShotCalls message = Opening();
  Add(1, Put("k", "v"), &message);
  for (uint64_t id = 2; id <= 200; ++id) Add(id, Get("k"), &message);
  stream_.Send(message);
  for (uint64_t id = 1; id <= 200; ++id) EXPECT_TRUE(FromWire(stream_.Answer(id).status()).ok());
  EXPECT_TRUE(asked_before_the_last.load());
  Stop();
}

// Each answer that is withheld has a deadline of its own, also one that comes while another, without one, is waited for.
TEST_F(OneShotWorkersTest, DeadlinesThatComeWhileTheDiskIsWaitedForAreKept) {
  Event waiting;
  std::atomic<bool> hung_up{false};
  scripted_.withholds = true;
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    if (call != "await_durable") return Status::Ok();
    waiting.Signal(runtime_);
    Event never;  // the disk hangs
    while (!hung_up.load()) {
      if (deadline <= runtime_.Now()) return Status(ErrorCode::kDeadlineExceeded, "the disk hangs");
      never.Wait(runtime_, std::min(deadline, Deadline(runtime_.Now() + milliseconds(10))));
    }
    return Status(ErrorCode::kUnavailable, "stopped");
  };
  Start({.threads = 3});
  wire::OneShotCalls message = Opening();
  Add(1, Put("k", "v"), &message);
  stream_.Send(message);
  waiting.Wait(runtime_, kNoDeadline);
  wire::OneShotCalls hurried;
  Add(2, Put("k", "w"), &hurried);
  hurried.mutable_calls(0)->set_timeout_us(50'000);
  stream_.Send(hurried);
  EXPECT_EQ(FromWire(stream_.Answer(2).status()), ErrorCode::kOutcomeUnknown);
  EXPECT_FALSE(stream_.Answered(1));
  hung_up.store(true);
  Stop();
}

TEST_F(OneShotWorkersTest, WhatDoesNotBecomeDurableIsUnknown) {
  std::atomic<int> waits{0};
  scripted_.withholds = true;
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    if (call != "await_durable") return Status::Ok();
    if (waits.fetch_add(1) > 0) return Status(ErrorCode::kIoError, "the disk is gone");
    runtime_.SleepUntil(deadline);
    return Status(ErrorCode::kDeadlineExceeded, "late");
  };
  Start();
  wire::OneShotCalls message = Opening();
  Add(1, Put("k", "v"), &message);
  message.mutable_calls(0)->set_timeout_us(1000);
  Add(2, Put("k", "v"), &message);
  stream_.Send(message);
  EXPECT_EQ(FromWire(stream_.Answer(1).status()).code(), ErrorCode::kOutcomeUnknown);
  const Status second = FromWire(stream_.Answer(2).status());
  EXPECT_EQ(second.code(), ErrorCode::kOutcomeUnknown);
  EXPECT_THAT(second.ToString(), HasSubstr("the disk is gone"));
  EXPECT_EQ(waits.load(), 2);
}

// A peer that is not told anything, as the disk hangs, is not read for ever.
TEST_F(OneShotWorkersTest, WhileMuchIsNotDurableNothingIsRead) {
  Event go;
  scripted_.withholds = true;
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "await_durable") go.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  Start();
  stream_.Send(Opening());
  constexpr uint64_t kMessages = 100;
  const std::string large(100 << 10, 'v');
  {
    wire::OneShotCalls message;
    Add(1, Put("large", large), &message);
    stream_.Send(message);
  }
  for (uint64_t id = 2; id <= kMessages; ++id) {
    wire::OneShotCalls message;
    Add(id, Put("k", "v"), &message);
    ToWire(Get("large"), message.mutable_calls(0)->mutable_one_shot()->add_operations());
    stream_.Send(message);
  }
  while (stream_.unread() == kMessages) runtime_.Yield();
  const auto waits = [&] { return scripted_.commits(); };
  for (size_t seen = SIZE_MAX; seen != waits();) {
    seen = waits();
    runtime_.SleepUntil(runtime_.Now() + milliseconds(50));
  }
  EXPECT_LT(scripted_.commits(), kMessages / 2);
  go.Signal(runtime_);
  for (uint64_t id = 1; id <= kMessages; ++id) EXPECT_TRUE(FromWire(stream_.Answer(id).status()).ok());
}

// Waits of random lengths in random places.
TEST_F(OneShotWorkersTest, ManyMessagesOfCallsThatWaitAndCallsThatDoNot) {
  std::atomic<uint64_t> calls{0};
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "one_shot") return Status::Ok();
    const uint64_t n = calls.fetch_add(1) * 0x9e3779b97f4a7c15ull >> 60;
    if (n < 3) runtime_.SleepUntil(runtime_.Now() + microseconds(20 * n));
    return Status::Ok();
  };
  Start({.threads = 8, .parallel = 2, .share_after = microseconds(1)});
  stream_.Send(Opening());
  constexpr uint64_t kMessages = 200, kCalls = 7;
  for (uint64_t m = 0; m < kMessages; ++m) {
    wire::OneShotCalls message;
    for (uint64_t i = 0; i < kCalls; ++i) Add(m * kCalls + i + 1, Put("k" + std::to_string(i), "v"), &message);
    stream_.Send(message);
  }
  for (uint64_t id = 1; id <= kMessages * kCalls; ++id) EXPECT_TRUE(FromWire(stream_.Answer(id).status()).ok());
  Stop();
  EXPECT_EQ(scripted_.commits(), kMessages * kCalls);
}

}  // namespace
}  // namespace deut
