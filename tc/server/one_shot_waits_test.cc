// Waits that many transactions of one stream share: prefetches, and the disk.
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

// Two calls are held back for their reads. Calls that need no such read, in the same message and after it, are answered
// meanwhile.
TEST_F(OneShotWorkersTest, PrefetchedReadsAreSentTogetherAndDelayNoOtherCall) {
  Event asked, go;
  std::atomic<int> starts{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "start_prefetch") ++starts;
    if (call == "await_prefetch") {
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
    if (call != "start_prefetch") return Status::Ok();
    ++refused;
    return Status(ErrorCode::kUnavailable, "not now");
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 4; ++id) Add(id, Get(id == 3 ? "near" : "far"), &message);
  stream_.Send(message);
  for (uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(stream_.Answer(id).results_size(), 1);
  EXPECT_EQ(refused.load(), 1);
  // A single call sends its own reads.
  Send(5, Get("far"));
  EXPECT_EQ(stream_.Answer(5).results_size(), 1);
  EXPECT_EQ(refused.load(), 1);
}

// A thread that gets no session when it wants to prefetch asks for one again with each call.
TEST_F(OneShotWorkersTest, CallsAreAnsweredThoughAThreadGetsNoSession) {
  for (const bool comes_later : {true, false}) {
    Event go;
    std::atomic<int> one_shots{0}, sessions{0}, starts{0};
    scripted_.reads_ahead = "far";
    scripted_.before = [&](std::string_view call, Deadline) {
      if (call == "start_prefetch") ++starts;
      if (call == "one_shot" && one_shots.fetch_add(1) == 0) go.Wait(runtime_, kNoDeadline);
      if (call != "new_session") return Status::Ok();
      const int before = sessions.fetch_add(1);
      if (before == 0 || (comes_later && before > 1)) return Status::Ok();
      return Status(ErrorCode::kResourceExhausted, "full");
    };
    PlayedStream stream(runtime_, scripted_, {});
    wire::OneShotCalls first = Opening(), second;
    Add(1, Get("near"), &first);
    for (uint64_t id = 2; id <= 5; ++id) Add(id, id == 4 ? Scan("far") : Get("far"), &second);
    stream.Send(first);
    stream.Send(second);
    for (uint64_t id = 2; id <= 5; ++id) {
      const wire::SessionAnswer answer = stream.Answer(id);
      EXPECT_EQ(FromWire(answer.status()).code(), comes_later ? ErrorCode::kOk : ErrorCode::kResourceExhausted) << id;
      EXPECT_EQ(answer.results_size(), comes_later ? 1 : 0) << id;
    }
    EXPECT_FALSE(stream.Answered(1));
    EXPECT_GE(sessions.load(), comes_later ? 3 : 6);
    EXPECT_EQ(starts.load(), 0);
    go.Signal(runtime_);
    EXPECT_EQ(stream.Answer(1).results_size(), 1);
  }
  EXPECT_EQ(scripted_.sessions(), 0u);
}

// A prefetch raises last reads, and so may cost an earlier writer an abort.
TEST_F(OneShotWorkersTest, NothingIsReadAheadForSnapshots) {
  std::atomic<int> starts{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "start_prefetch") ++starts;
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

class PeerGoesTest : public OneShotWorkersTest {
 protected:
  // The peer hangs up while the reads of its four calls are in flight. `begun` of them are begun by then.
  void GoWhileAsked(const Operation& operation, int begun) {
    Event asked, go;
    scripted_.reads_ahead = "far";
    scripted_.before = [&](std::string_view call, Deadline) {
      if (call == "await_prefetch") {
        asked.Signal(runtime_);
        go.Wait(runtime_, kNoDeadline);
      }
      return Status::Ok();
    };
    Start();
    wire::OneShotCalls message = Opening();
    for (uint64_t id = 1; id <= 4; ++id) Add(id, operation, &message);
    stream_.Send(message);
    EXPECT_TRUE(asked.Wait(runtime_, kNoDeadline));
    EXPECT_EQ(scripted_.begun(), begun);
    stream_.HangUp();
    go.Signal(runtime_);
    WaitForEnd();
    EXPECT_EQ(scripted_.begun(), 0);
    EXPECT_EQ(scripted_.sessions(), 0u);
  }
};

TEST_F(PeerGoesTest, WhileSomethingIsReadAhead) { GoWhileAsked(Get("far"), 0); }

TEST_F(PeerGoesTest, BegunCallsEnd) { GoWhileAsked(Scan("far"), 4); }

// Scans are begun together with the reads of their message. A prefetched scan is continued, and ends, on any thread.
// Each goes on in its own call, though point reads are held back before and between them.
TEST_F(OneShotWorkersTest, ScansAreBegunTogetherAndDelayNoOtherCall) {
  Event asked, go;
  std::atomic<int> starts{0}, taken{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "start_prefetch") ++starts;
    if (call == "take_begun") ++taken;
    if (call == "await_prefetch") {
      asked.Signal(runtime_);
      go.Wait(runtime_, kNoDeadline);
    }
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  Add(1, Get("far1"), &message);
  Add(2, Put("near", "v"), &message);
  Add(3, Scan("far2"), &message);
  Add(4, Get("far3"), &message);
  Add(5, Scan("near"), &message);
  Add(6, Scan("far4"), &message);
  Add(7, Get("far5"), &message);
  stream_.Send(message);
  EXPECT_TRUE(asked.Wait(runtime_, kNoDeadline));
  EXPECT_EQ(stream_.Answer(5).results_size(), 1);
  EXPECT_TRUE(FromWire(stream_.Answer(2).status()).ok());
  Send(8, Scan("far6"));  // a single call sends its own reads
  EXPECT_EQ(stream_.Answer(8).results_size(), 1);
  for (const uint64_t id : {1, 3, 4, 6, 7}) EXPECT_FALSE(stream_.Answered(id));
  EXPECT_EQ(scripted_.begun(), 2);
  EXPECT_EQ(taken.load(), 0);
  go.Signal(runtime_);
  for (const uint64_t id : {1, 3, 4, 6, 7}) {
    const wire::SessionAnswer answer = stream_.Answer(id);
    EXPECT_TRUE(FromWire(answer.status()).ok()) << id << ": " << FromWire(answer.status()).ToString();
    EXPECT_EQ(answer.results_size(), 1);
  }
  EXPECT_EQ(starts.load(), 1);
  EXPECT_EQ(taken.load(), 2);
  EXPECT_EQ(scripted_.begun(), 0);
}

// One of the begun calls waits. Threads that did not begin the others run them meanwhile.
TEST_F(OneShotWorkersTest, BegunCallsAreRunByOthersWhileOneOfThemWaits) {
  Event waiting, go;
  std::atomic<int> taken{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "take_begun" && taken.fetch_add(1) == 0) {
      waiting.Signal(runtime_);
      go.Wait(runtime_, kNoDeadline);
    }
    return Status::Ok();
  };
  Start();
  wire::OneShotCalls message = Opening();
  for (uint64_t id = 1; id <= 4; ++id) Add(id, Scan("far"), &message);
  stream_.Send(message);
  EXPECT_TRUE(waiting.Wait(runtime_, kNoDeadline));
  for (uint64_t id = 2; id <= 4; ++id) EXPECT_EQ(stream_.Answer(id).results_size(), 1);
  EXPECT_FALSE(stream_.Answered(1));
  go.Signal(runtime_);
  EXPECT_EQ(stream_.Answer(1).results_size(), 1);
  EXPECT_EQ(scripted_.begun(), 0);
}

// The length of the wait is unknown. So no begun call, for which others might wait, stays in the queue.
TEST_F(OneShotWorkersTest, BegunCallsEndBeforeThePeerIsWaitedFor) {
  std::atomic<int> taken{0};
  scripted_.reads_ahead = "far";
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "take_begun") ++taken;
    return Status::Ok();
  };
  Start();
  stream_.Send(Opening());
  {
    wire::OneShotCalls message;
    Add(1, Put("far", std::string(300 << 10, 'v')), &message);
    stream_.Send(message);
  }
  EXPECT_TRUE(FromWire(stream_.Answer(1).status()).ok());
  stream_.TakeNothing(true);
  constexpr uint64_t kCalls = 60;
  wire::OneShotCalls message;
  for (uint64_t id = 2; id <= kCalls; ++id) Add(id, Scan("far"), &message);
  stream_.Send(message);
  // Some have run before the room for answers was used up.
  const Deadline deadline = runtime_.Now() + seconds(20);
  const auto no_room = [&] { return taken.load() != 0 && scripted_.begun() == 0 && stream_.writing(); };
  while (!no_room() && runtime_.Now() < deadline) runtime_.Yield();
  EXPECT_EQ(scripted_.begun(), 0);
  EXPECT_TRUE(stream_.writing());
  EXPECT_LT(taken.load(), 59);
  stream_.TakeNothing(false);
  for (uint64_t id = 2; id <= kCalls; ++id) EXPECT_EQ(stream_.Answer(id).results_size(), 1);
}

// Many calls wait for the disk, and one thread waits for all of them. Commits that are not durable are not shown, and
// new calls run meanwhile.
TEST_F(OneShotWorkersTest, ACommitIsAnsweredWhenItIsDurable) {
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
  EXPECT_EQ(stream_.Answer(41).results_size(), 1);  // with two threads: the others left their answers behind
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

// The calls use the processor and never wait. The thread that runs them also asks for durability.
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

// Each withheld answer has a deadline of its own, even if it comes during the wait for another one without a deadline.
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

TEST_F(OneShotWorkersTest, ACommitThatDoesNotBecomeDurableIsUnknown) {
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

// While the disk hangs and the peer gets no answers, the server does not read from it for ever.
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

}  // namespace
}  // namespace deut::tc
