#include "protocol/data/request_multiplexer.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using Next = RequestMultiplexer::Next;

constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(2), .nonce = 3, .incarnation = DcIncarnation(4)};

// Answers as a data component would, with a value made from the key.
void AddAnswer(const wire::DataItem& item, wire::DataAnswers* answers) {
  RecordBatch records;
  records.Append(item.key(), "value of " + item.key(), Version{Timestamp(1), 1});
  wire::DataAnswer* answer = answers->add_items();
  answer->set_id(item.id());
  answer->set_records(records.bytes());
}

class RequestMultiplexerTest : public ::testing::Test {
 protected:
  ~RequestMultiplexerTest() override {
    if (multiplexer_.StopSending()) multiplexer_.ReleaseSenderRole();
    multiplexer_.FailAll(Status(ErrorCode::kUnavailable, "test ends"));
  }

  DataRequest* NewRequest(std::string key) {
    keys_.push_back(std::move(key));
    DataRequest& request = requests_.emplace_back();
    request.sender = kSender;
    request.key = keys_.back();
    return &request;
  }

  Next Submit(const std::vector<DataRequest*>& requests) { return multiplexer_.Submit(requests); }

  Runtime& runtime_ = RealRuntime();
  std::deque<std::string> keys_;
  std::deque<DataRequest> requests_;
  RequestMultiplexer multiplexer_{runtime_, {.message_requests = 4, .message_bytes = 1000, .outstanding_requests = 8}};
};

TEST_F(RequestMultiplexerTest, QueuesUntilUpThenCombines) {
  EXPECT_EQ(Submit({NewRequest("a")}), Next::kWakeStream);
  EXPECT_EQ(Submit({NewRequest("b"), NewRequest("c")}), Next::kWakeStream);
  EXPECT_TRUE(multiplexer_.HasQueued());
  EXPECT_EQ(multiplexer_.Up(), Next::kSend);
  // Another thread sends, so later requests are only queued.
  EXPECT_EQ(Submit({NewRequest("d"), NewRequest("e")}), Next::kNotSender);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  EXPECT_EQ(message.items_size(), 4);
  EXPECT_EQ(message.sender().incarnation(), 4u);
  EXPECT_EQ(message.items(3).key(), "d");
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  EXPECT_EQ(message.items_size(), 1);
  EXPECT_FALSE(multiplexer_.TakeMessage(&message));
  // The role is free again.
  EXPECT_EQ(Submit({NewRequest("f")}), Next::kSend);
}

TEST_F(RequestMultiplexerTest, AnswersInAnyOrderAndUnknownOnes) {
  multiplexer_.Up();
  ASSERT_EQ(Submit({NewRequest("a"), NewRequest("b"), NewRequest("c")}), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  wire::DataAnswers answers;
  answers.set_incarnation(9);
  AddAnswer(message.items(2), &answers);
  AddAnswer(message.items(0), &answers);
  AddAnswer(message.items(0), &answers);  // twice
  wire::DataItem unknown = message.items(0);
  unknown.set_id(123456);
  AddAnswer(unknown, &answers);
  multiplexer_.Answered(&answers);
  EXPECT_TRUE(requests_[0].done.IsSet());
  EXPECT_FALSE(requests_[1].done.IsSet());
  EXPECT_TRUE(requests_[2].done.IsSet());
  EXPECT_EQ(RecordBatch::Iterator(requests_[2].answer).record().value, "value of c");
  EXPECT_EQ(requests_[2].answered_by, DcIncarnation(9));
  EXPECT_EQ(multiplexer_.outstanding(), 1u);
}

TEST_F(RequestMultiplexerTest, AnswerToSomethingElseIsCorruption) {
  multiplexer_.Up();
  ASSERT_EQ(Submit({NewRequest("a"), NewRequest("b")}), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  wire::DataAnswers answers;
  AddAnswer(message.items(1), &answers);
  answers.mutable_items(0)->set_id(message.items(0).id());
  multiplexer_.Answered(&answers);
  ASSERT_TRUE(requests_[0].done.IsSet());
  EXPECT_EQ(requests_[0].status.code(), ErrorCode::kCorruption);
}

TEST_F(RequestMultiplexerTest, AnotherSenderStartsAnotherMessage) {
  DataRequest* first = NewRequest("a");
  DataRequest* second = NewRequest("b");
  second->sender.incarnation = DcIncarnation(5);
  Submit({first, second});
  ASSERT_EQ(multiplexer_.Up(), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  EXPECT_EQ(message.sender().incarnation(), 4u);
  ASSERT_EQ(message.items_size(), 1);
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  EXPECT_EQ(message.sender().incarnation(), 5u);
}

TEST_F(RequestMultiplexerTest, LargeKeysStartAnotherMessage) {
  Submit({NewRequest(std::string(600, 'x')), NewRequest(std::string(600, 'y'))});
  ASSERT_EQ(multiplexer_.Up(), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  EXPECT_EQ(message.items_size(), 1);
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  EXPECT_EQ(message.items_size(), 1);
}

TEST_F(RequestMultiplexerTest, MoreThanTheLimitIsRefused) {
  std::vector<DataRequest*> many;
  for (int i = 0; i < 10; ++i) many.push_back(NewRequest("k"));
  Submit(many);
  EXPECT_EQ(multiplexer_.outstanding(), 8u);
  EXPECT_FALSE(requests_[7].done.IsSet());
  ASSERT_TRUE(requests_[8].done.IsSet());
  EXPECT_EQ(requests_[9].status.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(requests_[9].status.retry_after_ms(), 0u);
}

TEST_F(RequestMultiplexerTest, DownFailsQueuedAndSent) {
  Submit({NewRequest("a")});
  ASSERT_EQ(multiplexer_.Up(), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  Submit({NewRequest("b")});
  ASSERT_TRUE(multiplexer_.StopSending());
  EXPECT_EQ(Submit({NewRequest("c")}), Next::kWakeStream);
  multiplexer_.ReleaseSenderRole();
  multiplexer_.FailAll(Status(ErrorCode::kUnavailable, "gone"));
  for (DataRequest& request : requests_) {
    ASSERT_TRUE(request.done.IsSet());
    EXPECT_EQ(request.status.code(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(multiplexer_.outstanding(), 0u);
  // The stream can come up again, without any old request.
  EXPECT_EQ(multiplexer_.Up(), Next::kNotSender);
}

TEST_F(RequestMultiplexerTest, AbandonedRequestIsForgotten) {
  multiplexer_.Up();
  ASSERT_EQ(Submit({NewRequest("a"), NewRequest("b")}), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  multiplexer_.Abandon(&requests_[0]);
  wire::DataAnswers answers;
  AddAnswer(message.items(0), &answers);
  AddAnswer(message.items(1), &answers);
  multiplexer_.Answered(&answers);
  EXPECT_FALSE(requests_[0].done.IsSet());
  EXPECT_TRUE(requests_[1].done.IsSet());
  multiplexer_.Abandon(&requests_[1]);  // already answered, so there is nothing to do
}

// Answers need the lock, too. So a client that abandons very many requests must not search through all of them under
// the lock. The test measures the thread's own processor time, which other programs do not lengthen. A search takes two
// hundred times as long with two hundred times as many requests; a hash table takes longer only by its cache misses.
// The bound lies far from both.
TEST_F(RequestMultiplexerTest, AbandoningOneOfManyCostsAsOneOfFew) {
  constexpr size_t kAbandoned = 100, kRounds = 5, kFew = kRounds * kAbandoned, kMany = 200 * kFew;
  const auto processor_time = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
  };
  const auto time = [&](size_t outstanding) {
    RequestMultiplexer multiplexer(runtime_, {.outstanding_requests = outstanding});
    std::deque<DataRequest> requests(outstanding);
    std::vector<DataRequest*> all;
    for (DataRequest& request : requests) {
      request.sender = kSender;
      request.key = "k";
      all.push_back(&request);
    }
    multiplexer.Submit(all);
    Duration least = Duration::max();
    // The abandoned requests lie in the middle, so a search from either end would pass half of the others.
    const size_t first = (outstanding - kFew) / 2;
    for (size_t round = 0; round < kRounds; ++round) {
      const Duration begin = processor_time();
      for (size_t i = 0; i < kAbandoned; ++i) multiplexer.Abandon(&requests[first + round * kAbandoned + i]);
      least = std::min(least, processor_time() - begin);
    }
    EXPECT_EQ(multiplexer.outstanding(), outstanding - kFew);
    multiplexer.FailAll(Status(ErrorCode::kUnavailable, "test ends"));
    return least;
  };
  const Duration few = time(kFew);
  EXPECT_LT(time(kMany), 60 * few);
}

#ifdef DEUT_TEST_POINTS
// The completing thread has taken a request out of the table and not filled it in yet, so Abandon must wait for it.
TEST_F(RequestMultiplexerTest, AbandonWaitsForTheThreadThatFillsIn) {
  multiplexer_.Up();
  ASSERT_EQ(Submit({NewRequest("a")}), Next::kSend);
  wire::DataRequests message;
  ASSERT_TRUE(multiplexer_.TakeMessage(&message));
  Event at_point, go_on;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "request_multiplexer.completing") return;
    at_point.Signal(runtime_);
    go_on.Wait(runtime_, kNoDeadline);
  });
  wire::DataAnswers answers;
  AddAnswer(message.items(0), &answers);
  const auto reader = runtime_.StartThread("reader", [&] { multiplexer_.Answered(&answers); });
  at_point.Wait(runtime_, kNoDeadline);
  std::atomic<bool> abandoned{false};
  const auto abandoner = runtime_.StartThread("abandoner", [&] {
    multiplexer_.Abandon(&requests_[0]);
    abandoned.store(true);
  });
  for (int i = 0; i < 1000; ++i) runtime_.Yield();
  EXPECT_FALSE(abandoned.load());
  go_on.Signal(runtime_);
  abandoner->Join();
  EXPECT_TRUE(requests_[0].done.IsSet());
  reader->Join();
  testing::SetPointHandler({});
}
#endif

// Many submitters, a stream that answers, breaks and comes back, and requests that are abandoned at any moment. Every
// request that is not abandoned finishes exactly once, with its own answer or UNAVAILABLE.
TEST(RequestMultiplexerStressTest, SubmittersAgainstABreakingStream) {
  Runtime& runtime = RealRuntime();
  RequestMultiplexer multiplexer(runtime, {.message_requests = 8, .message_bytes = 4096, .outstanding_requests = 64});
  Mutex wire_mutex(runtime);
  std::deque<wire::DataRequests> in_transit;  // written and not yet answered
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> answered{0}, failed{0};

  const auto send = [&] {
    wire::DataRequests message;
    while (multiplexer.TakeMessage(&message)) {
      MutexLock lock(wire_mutex);
      in_transit.push_back(message);
    }
  };
  // The stream comes up, answers some messages, and breaks.
  const auto stream = runtime.StartThread("stream", [&] {
    while (!stop.load()) {
      if (!multiplexer.HasQueued()) {
        runtime.Yield();
        continue;
      }
      if (multiplexer.Up() == Next::kSend) send();
      for (int messages = 0; messages < 50;) {
        wire::DataRequests message;
        {
          MutexLock lock(wire_mutex);
          if (!in_transit.empty()) {
            message = std::move(in_transit.front());
            in_transit.pop_front();
          }
        }
        if (message.items_size() == 0) {
          if (stop.load()) break;
          runtime.Yield();
          continue;
        }
        ++messages;
        wire::DataAnswers answers;
        for (int i = message.items_size() - 1; i >= 0; --i) AddAnswer(message.items(i), &answers);
        multiplexer.Answered(&answers);
      }
      if (multiplexer.StopSending()) {
        // A submitter holds the role and will give it up, as a real one does when its write has ended.
        while (multiplexer.StopSending()) runtime.Yield();
      }
      {
        MutexLock lock(wire_mutex);
        in_transit.clear();
      }
      multiplexer.FailAll(Status(ErrorCode::kUnavailable, "broken"));
    }
  });
  std::vector<std::unique_ptr<Thread>> submitters;
  for (int t = 0; t < 3; ++t) {
    submitters.push_back(runtime.StartThread("submitter", [&, t] {
      for (int round = 0; round < 2000; ++round) {
        const std::string key = std::to_string(t) + "/" + std::to_string(round);
        DataRequest request;
        request.sender = kSender;
        request.key = key;
        DataRequest* const list[] = {&request};
        if (multiplexer.Submit(list) == Next::kSend) send();
        if (round % 5 == 0) {
          multiplexer.Abandon(&request);
          continue;
        }
        request.done.Wait(runtime, kNoDeadline);
        if (request.status.ok()) {
          ASSERT_EQ(RecordBatch::Iterator(request.answer).record().key, key);
          answered.fetch_add(1);
        } else {
          ASSERT_TRUE(request.status == ErrorCode::kUnavailable || request.status == ErrorCode::kResourceExhausted);
          failed.fetch_add(1);
        }
      }
    }));
  }
  submitters.clear();
  stop.store(true);
  stream->Join();
  EXPECT_EQ(answered.load() + failed.load(), 3u * 1600u);
  EXPECT_GT(answered.load(), 0u);
  EXPECT_EQ(multiplexer.outstanding(), 0u);
}

}  // namespace
}  // namespace deut
