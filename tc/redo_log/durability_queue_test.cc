#include "tc/redo_log/durability_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

struct Waiter final : DurabilityCallback {
  void OnDurable(const Status& s) override {
    status = s;
    ++calls;
    if (order != nullptr) order->push_back(id);
  }
  Status status;
  int calls = 0;
  int id = 0;
  std::vector<int>* order = nullptr;
};

TEST(DurabilityQueue, AnswersReachedWaitersInOrder) {
  DurabilityQueue waiters;
  std::vector<int> order;
  std::vector<Waiter> all(5);
  const uint64_t lsns[] = {300, 100, 200, 500, 400};
  for (int i = 0; i < 5; ++i) {
    all[i].id = i;
    all[i].order = &order;
    ASSERT_TRUE(waiters.Register(Lsn(lsns[i]), &all[i]));
  }
  EXPECT_TRUE(waiters.HasNew());
  EXPECT_EQ(waiters.CollectAndAnswer(Lsn(300), Status::Ok()), 2u);  // the record at 300 itself is not durable yet
  EXPECT_FALSE(waiters.HasNew());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(waiters.CollectAndAnswer(Lsn(301), Status::Ok()), 1u);
  EXPECT_EQ(waiters.CollectAndAnswer(Lsn(450), DEUT_ERROR(kIoError, "failed")), 2u);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 0, 4, 3}));
  EXPECT_TRUE(all[4].status.ok());
  EXPECT_TRUE(all[3].status == ErrorCode::kIoError);
  for (const Waiter& waiter : all) EXPECT_EQ(waiter.calls, 1);
}

TEST(DurabilityQueue, ClosedTakesNobody) {
  DurabilityQueue waiters;
  Waiter early, late;
  ASSERT_TRUE(waiters.Register(Lsn(8), &early));
  waiters.Close(Lsn(8), DEUT_ERROR(kCancelled, "stopped"));
  EXPECT_TRUE(early.status == ErrorCode::kCancelled);
  EXPECT_FALSE(waiters.Register(Lsn(8), &late));
  EXPECT_EQ(late.calls, 0);
}

#ifdef DEUT_TEST_POINTS
TEST(DurabilityQueue, LostRacesAreTriedAgain) {
  DurabilityQueue waiters;
  int lost = 0;
  testing::SetCasHandler([&](std::string_view name) { return name == "redo_log.waiters.cas" && ++lost <= 3; });
  Waiter waiter;
  EXPECT_TRUE(waiters.Register(Lsn(8), &waiter));
  testing::SetCasHandler({});
  EXPECT_EQ(lost, 4);
  EXPECT_EQ(waiters.CollectAndAnswer(Lsn(16), Status::Ok()), 1u);
}
#endif

TEST(DurabilityQueue, EverybodyIsAnsweredOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  Runtime& runtime = RealRuntime();
  DurabilityQueue waiters;
  std::vector<std::vector<Waiter>> all(kThreads);
  std::atomic<int> running{kThreads};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < kThreads; ++t) {
    all[t] = std::vector<Waiter>(kEach);
    threads.push_back(runtime.StartThread("registrar", [&, t] {
      for (int i = 0; i < kEach; ++i) EXPECT_TRUE(waiters.Register(Lsn(static_cast<uint64_t>(i)), &all[t][i]));
      running.fetch_sub(1);
    }));
  }
  size_t answered = 0;
  for (uint64_t durable = 0; answered < size_t{kThreads} * kEach; ++durable) {
    answered += waiters.CollectAndAnswer(Lsn(durable), Status::Ok());
    if (durable % 64 == 0) runtime.Yield();
  }
  threads.clear();
  EXPECT_EQ(answered, size_t{kThreads} * kEach);
  for (const auto& each : all) {
    for (const Waiter& waiter : each) ASSERT_EQ(waiter.calls, 1);
  }
}

}  // namespace
}  // namespace deut::tc
