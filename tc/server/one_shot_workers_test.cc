// Many transactions on one stream. None waits for another, all are answered, and a peer that breaks the protocol or
// hangs up ends the stream.
#include "tc/server/one_shot_workers.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/one_shot_limits.h"
#include "protocol/wire/namespace.h"
#include "tc/server/one_shot_workers_fixture.h"

namespace deut::tc {
namespace {

using ::testing::HasSubstr;

TEST_F(OneShotWorkersTest, RunsAllCallsOfAMessageAndAnswersInOneMessage) {
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

TEST_F(OneShotWorkersTest, AWaitingCallDelaysNoOther) {
  Event go;
  std::atomic<int> waiting{0};
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    // The first five calls wait.
    if (call == "one_shot" && waiting.fetch_add(1) < 5) go.Wait(runtime_, deadline);
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 10; ++id) Add(id, Put("k", "v"), &message);
  stream_.Send(message);
  // Five of the ten are answered while five wait, and later messages are read.
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

// A waiting thread is patient only while no other call could run, and not for long.
TEST_F(OneShotWorkersTest, PatienceHoldsUpNoCallThatIsThereAndNoneThatComesForLong) {
  for (const bool there : {true, false}) {
    Event go;
    std::atomic<int> calls{0};
    scripted_.before = [&](std::string_view call, Deadline deadline) {
      if (call != "one_shot") return Status::Ok();
      if (calls.fetch_add(1) == 0) {
        go.Wait(runtime_, deadline);
      } else {
        go.Signal(runtime_);
      }
      return Status::Ok();
    };
    PlayedStream stream(runtime_, scripted_, {.patience = there ? seconds(3600) : milliseconds(1)});
    wire::OneShotCalls first = Opening(), second;
    Add(1, Put("k", "v"), &first);
    Add(2, Put("k", "w"), there ? &first : &second);
    stream.Send(first);
    if (!there) stream.Send(second);
    EXPECT_TRUE(FromWire(stream.Answer(1).status()).ok());
    EXPECT_TRUE(FromWire(stream.Answer(2).status()).ok());
  }
}

TEST_F(OneShotWorkersTest, WithoutMoreThreadsAWaitingCallDelaysTheOthers) {
  Event go;
  std::atomic<int> waiting{0};
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    if (call == "one_shot" && waiting.fetch_add(1) < 2) go.Wait(runtime_, deadline);
    return Status::Ok();
  };
  PlayedStream stream(runtime_, scripted_, {.threads = 2});
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 4; ++id) Add(id, Get("k"), &message);
  stream.Send(message);
  while (waiting.load() < 2) runtime_.Yield();
  EXPECT_FALSE(stream.Answered(3));
  go.Signal(runtime_);
  for (uint64_t id = 1; id <= 4; ++id) EXPECT_TRUE(FromWire(stream.Answer(id).status()).ok());
}

TEST_F(OneShotWorkersTest, ALongQueueIsShared) {
  std::atomic<int> inside{0};
  Event both;
  // Each call waits, without announcing it, until another one runs, too.
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "one_shot") return Status::Ok();
    ++inside;
    const MonotonicTime end = runtime_.Now() + milliseconds(1);
    while (runtime_.Now() < end) runtime_.Yield();
    if (inside.load() > 1) both.Signal(runtime_);
    --inside;
    return Status::Ok();
  };
  Start({.max_running = 2});
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

// Like the test above, with small answers and several threads.
TEST_F(OneShotWorkersTest, APeerThatTakesNoSmallAnswersIsNotReadFrom) {
  std::atomic<int> calls{0};
  scripted_.before = [&](std::string_view call, Deadline) {
    // Some calls wait, and other threads come in their place. So one thread goes on while another writes.
    if (call == "one_shot" && calls.fetch_add(1) % 10 == 2) runtime_.SleepUntil(runtime_.Now() + microseconds(100));
    return Status::Ok();
  };
  Start({.max_running = 2, .share_after = microseconds(1)});
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
  // Waits until nothing happens for a while.
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
  WaitForEnd();

  message = Opening();
  message.mutable_open()->set_protocol_version(kProtocolVersion + 1);
  {
    PlayedStream other(runtime_, scripted_, {});
    other.Send(message);
    EXPECT_TRUE(other.WaitForEnd().ok());
    EXPECT_EQ(FromWire(other.Opened().status()).code(), ErrorCode::kVersionMismatch);
  }
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
  WaitForEnd();
  EXPECT_EQ(ended_.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(scripted_.commits(), 0u);

  PlayedStream at_once(runtime_, scripted_, {});
  message.mutable_open()->set_protocol_version(kProtocolVersion);
  at_once.Send(message);
  EXPECT_EQ(at_once.WaitForEnd().code(), ErrorCode::kInvalidArgument);
}

TEST_F(OneShotWorkersTest, BegunCallsGoOnWhenThePeerIsGone) {
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
  WaitForEnd();
  EXPECT_EQ(scripted_.Value(TableId(1), "k"), "v");
  EXPECT_EQ(scripted_.sessions(), 0u);
}

// Waits of random lengths at random places.
TEST_F(OneShotWorkersTest, ManyMessagesOfCallsThatWaitAndCallsThatDoNot) {
  std::atomic<uint64_t> calls{0};
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "one_shot") return Status::Ok();
    const uint64_t n = calls.fetch_add(1) * 0x9e3779b97f4a7c15ull >> 60;
    if (n < 3) runtime_.SleepUntil(runtime_.Now() + microseconds(20 * n));
    return Status::Ok();
  };
  Start({.threads = 8, .max_running = 2, .share_after = microseconds(1)});
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
}  // namespace deut::tc
