#include "protocol/data/answer_queue.h"

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Entered = AnswerQueue::Entered;

class AnswerQueueTest : public ::testing::Test {
 protected:
  // Answers as the component's thread does. True: it has the role.
  bool Answer(DataRequest* request) {
    return queue_.Answered(request, &answered_, [this] { ++taken_; });
  }

  AnswerQueue queue_{RealRuntime(), 4};
  DataRequest requests_[6];
  std::vector<DataRequest*> answered_;
  int taken_ = 0;
};

TEST_F(AnswerQueueTest, HandlerWritesAnswersThatCameInsideSubmit) {
  ASSERT_EQ(queue_.Enter(3), Entered::kYes);
  requests_[1].answer.Append("k", "value", Version());
  EXPECT_FALSE(Answer(&requests_[1]));
  EXPECT_FALSE(Answer(&requests_[0]));
  queue_.Submitted();
  EXPECT_GT(queue_.ready_bytes(), 5u);
  ASSERT_TRUE(queue_.StartWriting(&answered_));
  EXPECT_EQ(answered_, (std::vector<DataRequest*>{&requests_[1], &requests_[0]}));
  // Only one thread writes at a time.
  EXPECT_FALSE(Answer(&requests_[2]));
  std::vector<DataRequest*> other;
  EXPECT_FALSE(queue_.StartWriting(&other));
  EXPECT_FALSE(queue_.FinishWriting(2));
  ASSERT_TRUE(queue_.StartWriting(&answered_));
  EXPECT_EQ(answered_, std::vector<DataRequest*>{&requests_[2]});
  EXPECT_FALSE(queue_.FinishWriting(1));
  EXPECT_FALSE(queue_.StartWriting(&answered_));
  EXPECT_EQ(taken_, 0);
}

TEST_F(AnswerQueueTest, AnswerOutsideSubmitTakesTheRole) {
  ASSERT_EQ(queue_.Enter(2), Entered::kYes);
  queue_.Submitted();
  ASSERT_TRUE(Answer(&requests_[0]));
  EXPECT_EQ(taken_, 1);
  EXPECT_EQ(answered_, std::vector<DataRequest*>{&requests_[0]});
  EXPECT_FALSE(Answer(&requests_[1]));
  EXPECT_EQ(taken_, 1);
  EXPECT_FALSE(queue_.FinishWriting(1));
  ASSERT_TRUE(queue_.StartWriting(&answered_));
  EXPECT_EQ(answered_, std::vector<DataRequest*>{&requests_[1]});
}

TEST_F(AnswerQueueTest, HandlerWithoutRoomIsParkedUntilEnoughIsWritten) {
  ASSERT_EQ(queue_.Enter(4), Entered::kYes);
  queue_.Submitted();
  EXPECT_EQ(queue_.Enter(2), Entered::kParked);
  ASSERT_TRUE(Answer(&requests_[0]));
  EXPECT_FALSE(queue_.FinishWriting(1));  // room for one
  ASSERT_TRUE(Answer(&requests_[1]));
  EXPECT_TRUE(queue_.FinishWriting(1));
  EXPECT_EQ(queue_.Enter(2), Entered::kYes);
  queue_.Submitted();
  // The handler was resumed only once.
  ASSERT_TRUE(Answer(&requests_[2]));
  EXPECT_FALSE(queue_.FinishWriting(1));
}

TEST_F(AnswerQueueTest, HandlerWithoutRoomWritesFirst) {
  ASSERT_EQ(queue_.Enter(4), Entered::kYes);
  EXPECT_FALSE(Answer(&requests_[0]));
  queue_.Submitted();
  EXPECT_EQ(queue_.Enter(1), Entered::kWriteFirst);
  ASSERT_TRUE(queue_.StartWriting(&answered_));
  // The handler writes, and the end of that write makes room. Meanwhile it is parked, as behind another thread.
  EXPECT_EQ(queue_.Enter(1), Entered::kParked);
  EXPECT_TRUE(queue_.FinishWriting(1));
  EXPECT_EQ(queue_.Enter(1), Entered::kYes);
}

TEST_F(AnswerQueueTest, DrainedWhenAllAnswersAreWritten) {
  EXPECT_TRUE(queue_.Drained());
  ASSERT_EQ(queue_.Enter(3), Entered::kYes);
  queue_.Submitted();
  EXPECT_TRUE(queue_.Drained());  // no request is answered yet
  ASSERT_TRUE(Answer(&requests_[0]));
  EXPECT_FALSE(Answer(&requests_[1]));
  EXPECT_FALSE(queue_.Drained());
  EXPECT_FALSE(queue_.FinishWriting(1));  // another answer is ready
  ASSERT_TRUE(queue_.StartWriting(&answered_));
  EXPECT_TRUE(queue_.FinishWriting(1));
  EXPECT_TRUE(queue_.Drained());
}

TEST_F(AnswerQueueTest, CloseSendsTheHandlerOnAndForgetsAnswers) {
  ASSERT_EQ(queue_.Enter(4), Entered::kYes);
  queue_.Submitted();
  ASSERT_TRUE(Answer(&requests_[0]));
  EXPECT_EQ(queue_.Enter(1), Entered::kParked);
  EXPECT_TRUE(queue_.Close());
  EXPECT_FALSE(queue_.Close());
  EXPECT_EQ(queue_.Enter(1), Entered::kClosed);
  EXPECT_TRUE(queue_.Drained());
  EXPECT_FALSE(queue_.FinishWriting(1));
  EXPECT_FALSE(Answer(&requests_[1]));
  EXPECT_FALSE(queue_.StartWriting(&answered_));
  EXPECT_EQ(taken_, 1);
}

// A handler submits groups. The component answers one half at once, and the other half later on threads of its own,
// each of which writes. Every request is written once, the limit is never exceeded, and no parked handler is forgotten.
TEST(AnswerQueueThreadsTest, EverythingIsWrittenOnce) {
  Runtime& runtime = RealRuntime();
  constexpr size_t kMaxRequests = 24;
  constexpr int kRounds = 300;
  constexpr size_t kGroup = 8;
  AnswerQueue queue(runtime, kMaxRequests);
  std::deque<DataRequest> requests;
  for (size_t i = 0; i < kRounds * kGroup; ++i) requests.emplace_back().limit_records = 0;
  std::atomic<size_t> written{0};
  std::atomic<uint32_t> sent_on{0};
  std::vector<DataRequest*> batch;  // of the role's holder, as in a stream's handler
  const auto write = [&] {          // runs on the role's holder
    do {
      for (DataRequest* request : batch) {
        ASSERT_EQ(request->limit_records, 0u);
        request->limit_records = 1;  // written
      }
      written.fetch_add(batch.size());
      if (queue.FinishWriting(batch.size())) {
        sent_on.fetch_add(1);
        runtime.WakeAll(sent_on);
      }
    } while (queue.StartWriting(&batch));
  };
  Mutex mutex(runtime);
  std::deque<DataRequest*> later;
  std::atomic<uint32_t> added{0};
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Thread>> component;
  for (int t = 0; t < 2; ++t) {
    component.push_back(runtime.StartThread("component", [&] {
      while (!stop.load()) {
        const uint32_t seen = added.load();
        DataRequest* request = nullptr;
        {
          MutexLock lock(mutex);
          if (!later.empty()) {
            request = later.front();
            later.pop_front();
          }
        }
        if (request != nullptr) {
          if (queue.Answered(request, &batch, [] {})) write();
        } else if (!stop.load()) {
          runtime.Wait(added, seen, kNoDeadline);
        }
      }
    }));
  }
  size_t next = 0;
  uint32_t parked = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Entered entered = Entered::kWriteFirst; entered != Entered::kYes;) {
      entered = queue.Enter(kGroup);
      ASSERT_NE(entered, Entered::kClosed);
      if (entered == Entered::kWriteFirst && queue.StartWriting(&batch)) write();
      if (entered == Entered::kParked) {
        while (sent_on.load() == parked) runtime.Wait(sent_on, parked, kNoDeadline);
        ASSERT_EQ(sent_on.load(), ++parked);
      }
    }
    ASSERT_LE(next - written.load(), kMaxRequests);
    for (size_t i = 0; i < kGroup; ++i, ++next) {
      if (i % 2 == 0) {
        ASSERT_FALSE(queue.Answered(&requests[next], &batch, [] {}));
      } else {
        MutexLock lock(mutex);
        later.push_back(&requests[next]);
      }
    }
    added.fetch_add(1);
    runtime.WakeAll(added);
    queue.Submitted();
    if (round % 3 == 0 && queue.StartWriting(&batch)) write();
  }
  if (queue.StartWriting(&batch)) write();
  while (written.load() != requests.size()) runtime.SleepUntil(runtime.Now() + milliseconds(1));
  stop.store(true);
  added.fetch_add(1);
  runtime.WakeAll(added);
}

}  // namespace
}  // namespace deut
