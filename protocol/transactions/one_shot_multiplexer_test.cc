// Calls of many threads in few messages, and their end when answers come, do not come, or the stream ends.
#include "protocol/transactions/one_shot_multiplexer.h"

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/wire/convert.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using Next = OneShotMultiplexer::Next;

class OneShotMultiplexerTest : public ::testing::Test {
 protected:
  // The calls that one caller has in flight.
  struct Calls {
    explicit Calls(size_t n, size_t bytes = 10) : calls(n) {
      group.left = static_cast<int>(n);
      for (OneShotCall& call : calls) {
        call.group = &group;
        call.bytes = bytes;
      }
    }
    std::vector<OneShotCall> calls;
    OneShotGroup group;
  };

  Next Submit(Calls& calls) { return multiplexer_.Submit(absl::MakeSpan(calls.calls)); }
  // Returns the ids of the next message, and keeps the role.
  std::vector<uint64_t> Take() {
    std::vector<uint64_t> ids;
    wire::OneShotCalls message;
    if (!multiplexer_.TakeMessage(&message)) return ids;
    for (const wire::OneShotCall& call : message.calls()) ids.push_back(call.id());
    return ids;
  }
  Next Answer(uint64_t id, uint64_t timestamp, bool more = false) {
    wire::OneShotAnswers answers;
    answers.add_answers()->set_id(id);
    answers.mutable_answers(0)->mutable_answer()->set_timestamp(timestamp);
    answers.mutable_answers(0)->mutable_answer()->set_more(more);
    return multiplexer_.Answered(&answers);
  }
  // Sends each in a message of its own. Afterwards no thread has the role.
  void SendAlone(std::initializer_list<Calls*> each) {
    for (Calls* calls : each) {
      EXPECT_EQ(Submit(*calls), Next::kSend);
      EXPECT_EQ(Take().size(), 1u);
      EXPECT_TRUE(Take().empty());
    }
  }
  void End(const Status& status) {
    if (multiplexer_.StopSending()) multiplexer_.ReleaseSenderRole();
    multiplexer_.FailAll(status);
  }
  bool Done(Calls& calls) { return calls.group.IsDone(); }

  Runtime& runtime_ = RealRuntime();
  OneShotMultiplexer multiplexer_{runtime_, {.message_calls = 3, .message_bytes = 100, .outstanding_calls = 5}};
  const Status broken_{ErrorCode::kUnavailable, "broken"};
};

TEST_F(OneShotMultiplexerTest, RefusesWhileItIsDown) {
  Calls one(1);
  EXPECT_EQ(Submit(one), Next::kDown);
  EXPECT_FALSE(Done(one));
  EXPECT_EQ(multiplexer_.outstanding(), 0u);
  multiplexer_.Up();
  End(broken_);
  EXPECT_EQ(Submit(one), Next::kDown);
}

TEST_F(OneShotMultiplexerTest, OneThreadSendsAllSubmittedCalls) {
  multiplexer_.Up();
  Calls first(1), second(1), third(1);
  EXPECT_EQ(Submit(first), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(Submit(second), Next::kNotSender);
  EXPECT_EQ(Submit(third), Next::kNotSender);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{2, 3}));
  EXPECT_TRUE(Take().empty());
  Answer(3, 30);
  EXPECT_TRUE(Done(third));
  EXPECT_FALSE(Done(second));
  EXPECT_EQ(third.calls[0].parts.at(0).timestamp(), 30u);
  Answer(2, 20);
  Answer(1, 10);
  EXPECT_TRUE(Done(first) && Done(second));
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, MessagesAreBounded) {
  multiplexer_.Up();
  Calls four(4), large(1, 90);
  EXPECT_EQ(Submit(four), Next::kSend);
  EXPECT_EQ(Submit(large), Next::kNotSender);
  EXPECT_EQ(Take().size(), 3u);
  EXPECT_EQ(Take().size(), 2u);  // 10 and 90 bytes
  Calls beyond(1);
  EXPECT_EQ(Submit(beyond), Next::kNotSender);
  EXPECT_TRUE(Done(beyond));
  EXPECT_EQ(beyond.calls[0].lost.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(beyond.calls[0].lost.retry_after_ms(), 0u);
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, AGroupIsWokenOnceWhenItsLastCallIsDone) {
  multiplexer_.Up();
  Calls two(2);
  EXPECT_EQ(Submit(two), Next::kSend);
  Take();
  Answer(2, 20, /*more=*/true);
  Answer(1, 10);
  EXPECT_FALSE(Done(two));
  Answer(2, 21);
  EXPECT_TRUE(Done(two));
  EXPECT_EQ(two.calls[1].answered, 2u);
  EXPECT_EQ(two.calls[1].parts.at(1).timestamp(), 21u);
  Answer(2, 22);  // no call has this id any more
  EXPECT_EQ(two.calls[1].answered, 2u);
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, TheEndDistinguishesSentAndUnsentCalls) {
  multiplexer_.Up();
  Calls sent(1), queued(1);
  EXPECT_EQ(Submit(sent), Next::kSend);
  Take();
  EXPECT_EQ(Submit(queued), Next::kNotSender);
  End(broken_);
  EXPECT_TRUE(Done(sent) && Done(queued));
  EXPECT_TRUE(sent.calls[0].sent);
  EXPECT_FALSE(queued.calls[0].sent);
  EXPECT_EQ(sent.calls[0].lost.ToString(), broken_.ToString());
  // Queued calls of the ended stream are not sent on the next one.
  multiplexer_.Up();
  Calls next(1);
  EXPECT_EQ(Submit(next), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3}));
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, AnAbandonedCallIsNotTouchedAnyMore) {
  multiplexer_.Up();
  const Status late(ErrorCode::kDeadlineExceeded, "late");
  auto two = std::make_unique<Calls>(2);
  EXPECT_EQ(Submit(*two), Next::kSend);
  Take();
  Answer(1, 10);
  EXPECT_TRUE(multiplexer_.Abandon(absl::MakeSpan(two->calls), late));
  EXPECT_TRUE(two->calls[0].lost.ok());
  EXPECT_EQ(two->calls[1].lost.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(multiplexer_.outstanding(), 0u);
  two.reset();
  Answer(2, 20);
  // The call is abandoned before it is sent.
  two = std::make_unique<Calls>(1);
  EXPECT_EQ(Submit(*two), Next::kNotSender);
  EXPECT_TRUE(multiplexer_.Abandon(absl::MakeSpan(two->calls), late));
  EXPECT_FALSE(two->calls[0].sent);
  two.reset();
  // An abandoned call is not sent later, because its caller reports it as not done.
  Calls kept(1), more(2);
  EXPECT_EQ(Submit(kept), Next::kNotSender);
  EXPECT_EQ(Submit(more), Next::kNotSender);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{4, 5}));
  EXPECT_TRUE(multiplexer_.Abandon(absl::MakeSpan(more.calls), late));
  EXPECT_TRUE(Take().empty());
  EXPECT_TRUE(more.calls[0].sent);
  EXPECT_FALSE(more.calls[1].sent);
  End(broken_);
}

// While nothing can be sent, a caller that abandons calls and comes again does not fill the memory.
TEST_F(OneShotMultiplexerTest, AnAbandonedCallCountsUntilItsMessageIsSent) {
  multiplexer_.Up();
  Calls first(1);
  EXPECT_EQ(Submit(first), Next::kSend);
  Take();
  for (int i = 0; i < 8; ++i) {
    Calls again(1);
    EXPECT_EQ(Submit(again), Next::kNotSender);
    EXPECT_EQ(Done(again), i >= 5) << i;
    if (!Done(again)) multiplexer_.Abandon(absl::MakeSpan(again.calls), broken_);
  }
  EXPECT_TRUE(Take().empty());
  Calls next(1);
  EXPECT_EQ(Submit(next), Next::kSend);
  EXPECT_EQ(Take().size(), 1u);
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, GivenUpTooLateIsAnswered) {
  multiplexer_.Up();
  Calls one(1);
  EXPECT_EQ(Submit(one), Next::kSend);
  Take();
  Answer(1, 10);
  EXPECT_FALSE(multiplexer_.Abandon(absl::MakeSpan(one.calls), broken_));
  EXPECT_TRUE(one.group.Wait(runtime_, kNoDeadline));
  EXPECT_TRUE(one.calls[0].lost.ok());
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, WhileTwoMessagesAreUnansweredCallsGather) {
  multiplexer_.Up();
  Calls first(1), second(1), third(1), fourth(1), fifth(1);
  EXPECT_EQ(Submit(first), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(Submit(second), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{2}));
  EXPECT_EQ(Submit(third), Next::kNotSender);
  EXPECT_TRUE(Take().empty());  // held back, and the role is free
  EXPECT_EQ(Submit(fourth), Next::kNotSender);
  // An answer makes room for one message, and only once per message.
  EXPECT_EQ(Answer(2, 20), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3, 4}));
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(Submit(fifth), Next::kNotSender);
  EXPECT_EQ(Answer(2, 21), Next::kNotSender);
  EXPECT_EQ(Answer(4, 40), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{5}));
  EXPECT_EQ(Answer(3, 30), Next::kNotSender);  // the message has been answered before
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, AWholeMessageIsNotHeldBack) {
  multiplexer_.Up();
  Calls first(1), second(1), two(2), third(1), large(1, 95);
  SendAlone({&first, &second});
  EXPECT_EQ(Submit(two), Next::kNotSender);
  EXPECT_EQ(Submit(third), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3, 4, 5}));
  End(broken_);
  // A call that does not fit into the waiting message is not held back either.
  multiplexer_.Up();
  Calls again(1), more(1), small(1);
  SendAlone({&again, &more});
  EXPECT_EQ(Submit(small), Next::kNotSender);
  EXPECT_EQ(Submit(large), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{8}));
  EXPECT_TRUE(Take().empty());
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, StopHoldingBackReleasesTheCallAndThoseBefore) {
  multiplexer_.Up();
  Calls first(1), second(1), third(1), fourth(1), fifth(1);
  SendAlone({&first, &second});
  EXPECT_EQ(multiplexer_.StopHoldingBack(second.calls), Next::kNotSender);  // it is already sent
  EXPECT_EQ(Submit(third), Next::kNotSender);
  EXPECT_EQ(Submit(fourth), Next::kNotSender);
  EXPECT_EQ(multiplexer_.StopHoldingBack(fourth.calls), Next::kSend);
  EXPECT_EQ(Submit(fifth), Next::kNotSender);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(multiplexer_.StopHoldingBack(third.calls), Next::kNotSender);  // it is already sent
  // While another thread sends, that thread takes the call.
  Calls two(2), alone(1);
  Answer(3, 30);
  EXPECT_EQ(multiplexer_.outstanding(), 4u);
  Answer(1, 10);
  Answer(2, 20);
  Answer(4, 40);
  Answer(5, 50);
  EXPECT_EQ(Submit(two), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{6, 7}));
  EXPECT_EQ(Submit(alone), Next::kNotSender);
  EXPECT_EQ(multiplexer_.StopHoldingBack(alone.calls), Next::kNotSender);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{8}));
  End(broken_);
  Calls down(1);
  EXPECT_EQ(Submit(down), Next::kDown);
  EXPECT_EQ(multiplexer_.StopHoldingBack(down.calls), Next::kNotSender);
}

// A thread that was told to send always has a message to send, even if calls were abandoned meanwhile: its stream waits
// for the end of that write.
TEST_F(OneShotMultiplexerTest, ASenderHasAMessageAlthoughTheOneBeforeIsAbandoned) {
  multiplexer_.Up();
  Calls first(1), second(1), small(1), large(1, 95);
  SendAlone({&first, &second});
  EXPECT_EQ(Submit(small), Next::kNotSender);
  EXPECT_EQ(Submit(large), Next::kSend);
  EXPECT_TRUE(multiplexer_.Abandon(absl::MakeSpan(small.calls), broken_));
  EXPECT_EQ(Take(), (std::vector<uint64_t>{4}));
  EXPECT_TRUE(Take().empty());
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, AWholeMessageOfOneCallIsNotHeldBack) {
  multiplexer_.Up();
  Calls first(1), second(1), whole(1, 100);
  SendAlone({&first, &second, &whole});
  End(broken_);
}

// Two slow messages do not hold back all later calls.
TEST_F(OneShotMultiplexerTest, ASlowMessageHoldsBackOthersOnce) {
  multiplexer_.Up();
  Calls slow(1), slower(1), third(1), fourth(1);
  SendAlone({&slow, &slower});
  EXPECT_EQ(Submit(third), Next::kNotSender);
  EXPECT_EQ(multiplexer_.StopHoldingBack(third.calls), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3}));
  EXPECT_TRUE(Take().empty());
  SendAlone({&fourth});
  End(broken_);
}

TEST_F(OneShotMultiplexerTest, AnAbandonedMessageDoesNotHoldBackOthersForEver) {
  multiplexer_.Up();
  const Status late(ErrorCode::kDeadlineExceeded, "late");
  Calls first(1), second(1), third(1);
  SendAlone({&first, &second});
  EXPECT_TRUE(multiplexer_.Abandon(absl::MakeSpan(first.calls), late));
  EXPECT_EQ(Submit(third), Next::kNotSender);
  // Its answer still comes, and shows that the peer has finished with the message.
  EXPECT_EQ(Answer(1, 10), Next::kSend);
  EXPECT_EQ(Take(), (std::vector<uint64_t>{3}));
  // A new stream starts with fresh counts.
  End(broken_);
  multiplexer_.Up();
  Calls fourth(1), fifth(1);
  SendAlone({&fourth, &fifth});
  End(broken_);
}

// Callers wait to a deadline that sometimes passes, and the stream answers, breaks and comes back. Each call ends
// exactly once, and nothing is touched after its caller has gone on.
TEST_F(OneShotMultiplexerTest, CallersGiveUpWhileAnswersComeAndTheStreamEnds) {
  OneShotMultiplexer multiplexer(runtime_, {.message_calls = 4, .message_bytes = 1000, .outstanding_calls = 1000});
  constexpr int kCallers = 4, kRounds = 300;
  std::atomic<int> ended{0};
  std::atomic<int> running{kCallers};
  Mutex mutex(runtime_);
  std::vector<uint64_t> unanswered;
  const auto send = [&] {
    wire::OneShotCalls message;
    while (multiplexer.TakeMessage(&message)) {
      MutexLock lock(mutex);
      for (const wire::OneShotCall& call : message.calls()) unanswered.push_back(call.id());
    }
  };
  std::vector<std::unique_ptr<Thread>> threads;
  for (int caller = 0; caller < kCallers; ++caller) {
    threads.push_back(runtime_.StartThread("caller", [&, caller] {
      for (int round = 0; round < kRounds; ++round) {
        Calls calls(1 + round % 3);
        const Next next = multiplexer.Submit(absl::MakeSpan(calls.calls));
        if (next == Next::kDown) {
          runtime_.Yield();
          continue;
        }
        if (next == Next::kSend) send();
        const Deadline wait = runtime_.Now() + microseconds((round * 7 + caller) % 50);
        if (round % 2 == 0 && multiplexer.StopHoldingBack(calls.calls) == Next::kSend) send();
        if (!calls.group.Wait(runtime_, wait) &&
            !multiplexer.Abandon(absl::MakeSpan(calls.calls), Status(ErrorCode::kDeadlineExceeded, "late"))) {
          calls.group.Wait(runtime_, kNoDeadline);
        }
        for (const OneShotCall& call : calls.calls) ended += call.done && call.lost.ok() == (call.answered == 1);
        ended -= static_cast<int>(calls.calls.size());
      }
      --running;
    }));
  }
  uint64_t turns = 0;
  multiplexer.Up();
  while (running.load() != 0) {
    std::vector<uint64_t> ids;
    {
      MutexLock lock(mutex);
      ids.swap(unanswered);
    }
    wire::OneShotAnswers answers;
    for (const uint64_t id : ids) answers.add_answers()->set_id(id);
    if (multiplexer.Answered(&answers) == Next::kSend) send();
    runtime_.Yield();
    if (++turns % 16 != 0) continue;
    // The holder of the role gives it up by itself here, because it has no stream that could fail.
    while (multiplexer.StopSending()) runtime_.Yield();
    multiplexer.FailAll(broken_);
    multiplexer.Up();
  }
  for (const auto& thread : threads) thread->Join();
  EXPECT_EQ(ended.load(), 0);
  while (multiplexer.StopSending()) runtime_.Yield();
  multiplexer.FailAll(broken_);
}

}  // namespace
}  // namespace deut
