#include "protocol/answer_queue.h"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Entered = AnswerQueue::Entered;

// Counts who waits and is woken.
class CountingRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return real_.Now(); }
  int64_t WallMicros() override { return real_.WallMicros(); }
  uint64_t RandomSeed() override { return real_.RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return real_.StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    waits.Signal(real_);
    return real_.Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override {
    wakes.fetch_add(1, std::memory_order_seq_cst);
    real_.Wake(word, waiters);
  }
  void Yield() override { real_.Yield(); }

  Event waits;
  std::atomic<int> wakes{0};

 private:
  Runtime& real_ = RealRuntime();
};

// A writer thread that has nothing to do stays asleep for as long as the handler writes.
TEST(AnswerQueueTest, WhoWritesByHimselfWakesNobody) {
  CountingRuntime runtime;
  AnswerQueue queue(runtime, 2);
  const auto writer = RealRuntime().StartThread("writer", [&] { EXPECT_FALSE(queue.WaitForWork()); });
  runtime.waits.Wait(RealRuntime(), kNoDeadline);
  const int before = runtime.wakes.load(std::memory_order_seq_cst);
  for (int i = 0; i < 3; ++i) {
    DataRequest request;
    ASSERT_EQ(queue.Enter(1, kNoDeadline), Entered::kYes);
    queue.OnAnswered(&request);
    queue.Submitted();
    std::vector<DataRequest*> answered;
    ASSERT_TRUE(queue.StartWriting(&answered));
    queue.FinishWriting(answered.size());
  }
  EXPECT_EQ(runtime.wakes.load(std::memory_order_seq_cst), before);
  queue.Close();
  EXPECT_GT(runtime.wakes.load(std::memory_order_seq_cst), before);
  writer->Join();
}

TEST(AnswerQueueTest, WhoWaitsForRoomIsWokenByWhoMakesIt) {
  CountingRuntime runtime;
  AnswerQueue queue(runtime, 1);
  DataRequest request;
  ASSERT_EQ(queue.Enter(1, kNoDeadline), Entered::kYes);
  queue.OnAnswered(&request);
  queue.Submitted();
  std::vector<DataRequest*> answered;
  ASSERT_TRUE(queue.StartWriting(&answered));
  const auto handler =
      RealRuntime().StartThread("handler", [&] { EXPECT_EQ(queue.Enter(1, kNoDeadline), Entered::kYes); });
  runtime.waits.Wait(RealRuntime(), kNoDeadline);
  queue.FinishWriting(answered.size());
  handler->Join();
}

TEST(AnswerQueueTest, WritesWhatIsAnsweredInsideSubmit) {
  AnswerQueue queue(RealRuntime(), 4);
  DataRequest requests[3];
  ASSERT_EQ(queue.Enter(3, kNoDeadline), Entered::kYes);
  requests[1].answer.Append("k", "value", Version());
  queue.OnAnswered(&requests[1]);
  queue.OnAnswered(&requests[0]);
  queue.Submitted();
  EXPECT_GT(queue.ready_bytes(), 5u);
  std::vector<DataRequest*> answered;
  ASSERT_TRUE(queue.StartWriting(&answered));
  EXPECT_EQ(answered, (std::vector<DataRequest*>{&requests[1], &requests[0]}));
  // One writes at a time.
  std::vector<DataRequest*> other;
  queue.OnAnswered(&requests[2]);
  EXPECT_FALSE(queue.StartWriting(&other));
  queue.FinishWriting(2);
  ASSERT_TRUE(queue.StartWriting(&answered));
  EXPECT_EQ(answered, std::vector<DataRequest*>{&requests[2]});
  queue.FinishWriting(1);
  EXPECT_FALSE(queue.StartWriting(&answered));
}

TEST(AnswerQueueTest, NoRoomMeansWriteFirstOrWait) {
  Runtime& runtime = RealRuntime();
  AnswerQueue queue(runtime, 2);
  DataRequest requests[2];
  ASSERT_EQ(queue.Enter(2, kNoDeadline), Entered::kYes);
  queue.OnAnswered(&requests[0]);
  queue.Submitted();
  EXPECT_EQ(queue.Enter(1, kNoDeadline), Entered::kWriteFirst);
  std::vector<DataRequest*> answered;
  ASSERT_TRUE(queue.StartWriting(&answered));
  queue.FinishWriting(1);
  ASSERT_EQ(queue.Enter(1, kNoDeadline), Entered::kYes);
  queue.Submitted();
  // Full, and nothing is answered: the handler waits until somebody has written.
  const auto write = [&] {
    std::vector<DataRequest*> batch;
    if (queue.StartWriting(&batch)) queue.FinishWriting(batch.size());
  };
  Event entered;
  const auto handler = runtime.StartThread("handler", [&] {
    Entered result = queue.Enter(1, kNoDeadline);
    while (result == Entered::kWriteFirst) {
      write();
      result = queue.Enter(1, kNoDeadline);
    }
    EXPECT_EQ(result, Entered::kYes);
    entered.Signal(runtime);
  });
  const auto writer = runtime.StartThread("writer", [&] {
    while (queue.WaitForWork()) write();
  });
  for (int i = 0; i < 1000; ++i) runtime.Yield();
  EXPECT_FALSE(entered.IsSet());
  queue.OnAnswered(&requests[1]);
  entered.Wait(runtime, kNoDeadline);
  queue.Close();
}

TEST(AnswerQueueTest, CloseEndsAllWaits) {
  Runtime& runtime = RealRuntime();
  AnswerQueue queue(runtime, 1);
  ASSERT_EQ(queue.Enter(1, kNoDeadline), Entered::kYes);
  queue.Submitted();
  EXPECT_EQ(queue.Enter(1, runtime.Now() + milliseconds(5)), Entered::kTimeout);
  const auto handler =
      runtime.StartThread("handler", [&] { EXPECT_EQ(queue.Enter(1, kNoDeadline), Entered::kClosed); });
  const auto writer = runtime.StartThread("writer", [&] { EXPECT_FALSE(queue.WaitForWork()); });
  for (int i = 0; i < 100; ++i) runtime.Yield();
  queue.Close();
}

// A handler that submits groups, a component of which one half answers at once and the other later on threads of its own, and a writer:
// everything that went in comes out once, and never more than the limit is in.
TEST(AnswerQueueTest, EverythingIsWrittenOnce) {
  Runtime& runtime = RealRuntime();
  constexpr size_t kMost = 24;
  constexpr int kRounds = 300;
  constexpr size_t kGroup = 8;
  AnswerQueue queue(runtime, kMost);
  std::deque<DataRequest> requests;
  for (size_t i = 0; i < kRounds * kGroup; ++i) requests.emplace_back().limit_records = 0;
  std::atomic<size_t> written{0};
  std::vector<DataRequest*> batch;  // of whoever has the role, as in a stream's handler
  const auto write = [&] {
    while (queue.StartWriting(&batch)) {
      for (DataRequest* request : batch) {
        ASSERT_EQ(request->limit_records, 0u);
        request->limit_records = 1;  // written
      }
      written.fetch_add(batch.size());
      queue.FinishWriting(batch.size());
    }
  };
  const auto writer = runtime.StartThread("writer", [&] {
    while (queue.WaitForWork()) write();
  });
  Mutex mutex(runtime);
  std::deque<DataRequest*> later;
  std::atomic<uint32_t> added{0};
  std::atomic<bool> stop{false};
  const auto component = runtime.StartThread("component", [&] {
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
        queue.OnAnswered(request);
      } else if (!stop.load()) {
        runtime.Wait(added, seen, kNoDeadline);
      }
    }
  });
  size_t next = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Entered entered = Entered::kWriteFirst; entered != Entered::kYes;) {
      entered = queue.Enter(kGroup, kNoDeadline);
      ASSERT_NE(entered, Entered::kClosed);
      if (entered == Entered::kWriteFirst) write();
    }
    ASSERT_LE(next - written.load(), kMost);
    for (size_t i = 0; i < kGroup; ++i, ++next) {
      if (i % 2 == 0) {
        queue.OnAnswered(&requests[next]);
      } else {
        MutexLock lock(mutex);
        later.push_back(&requests[next]);
      }
    }
    added.fetch_add(1);
    runtime.WakeAll(added);
    queue.Submitted();
    if (round % 3 == 0) write();
  }
  write();
  while (written.load() != requests.size()) runtime.SleepUntil(runtime.Now() + milliseconds(1));
  stop.store(true);
  added.fetch_add(1);
  runtime.WakeAll(added);
  queue.Close();
}

}  // namespace
}  // namespace deut
