#include "common/sync/mutex.h"

#include <deque>
#include <memory>
#include <vector>

#include "common/sync/backoff.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(Mutex, ExcludesAndPublishes) {
  Runtime& runtime = RealRuntime();
  Mutex mutex(runtime);
  int64_t counter = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(runtime.StartThread("adder", [&] {
      for (int i = 0; i < 20000; ++i) {
        MutexLock lock(mutex);
        ++counter;
      }
    }));
  }
  for (auto& thread : threads) thread->Join();
  EXPECT_EQ(counter, 80000);
}

TEST(CondVar, HandsEveryItemOver) {
  Runtime& runtime = RealRuntime();
  Mutex mutex(runtime);
  CondVar changed;
  std::deque<int> items;
  int64_t taken_sum = 0;
  constexpr int kItems = 5000;
  std::vector<std::unique_ptr<Thread>> takers;
  for (int t = 0; t < 3; ++t) {
    takers.push_back(runtime.StartThread("taker", [&] {
      for (;;) {
        MutexLock lock(mutex);
        while (items.empty()) changed.Wait(mutex);
        const int item = items.front();
        if (item < 0) return;  // the end mark stays for the other consumers
        items.pop_front();
        taken_sum += item;
      }
    }));
  }
  for (int i = 1; i <= kItems; ++i) {
    MutexLock lock(mutex);
    items.push_back(i);
    changed.NotifyOne(runtime);
  }
  {
    MutexLock lock(mutex);
    items.push_back(-1);
    changed.NotifyAll(runtime);
  }
  for (auto& taker : takers) taker->Join();
  EXPECT_EQ(taken_sum, int64_t{kItems} * (kItems + 1) / 2);
}

TEST(CondVar, WaitUntilReportsThePassedDeadline) {
  Runtime& runtime = RealRuntime();
  Mutex mutex(runtime);
  CondVar changed;
  MutexLock lock(mutex);
  const Deadline deadline = runtime.Now() + milliseconds(3);
  while (changed.WaitUntil(mutex, deadline)) {
  }
  EXPECT_GE(runtime.Now(), deadline);
}

TEST(Backoff, YieldsAfterItsPauses) {
  Backoff backoff(RealRuntime());
  int pauses = 0;
  for (; !backoff.yields(); ++pauses) backoff.Pause();
  EXPECT_EQ(pauses, 7);  // 1, 2, 4 ... 64
  backoff.Pause();
  EXPECT_TRUE(backoff.yields());
}

}  // namespace
}  // namespace deut
