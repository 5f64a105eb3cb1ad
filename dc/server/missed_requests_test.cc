#include "dc/server/missed_requests.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/server/call_grace_period.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"

namespace deut::dc {
namespace {

// The test ends loads by calling the waiters itself.
class MissedRequestsTest : public ::testing::Test {
 protected:
  ~MissedRequestsTest() override { testing::SetPointHandler({}); }

  // A request misses `misses_` times, then it is answered.
  bool Continue(DataRequest* request, bool missing, LoadWaiter* waiter) {
    calls_.fetch_add(1);
    if (missing || misses_left_.fetch_sub(1) > 0) {
      waiter_.store(waiter);
      return false;
    }
    request->status = Status::Ok();
    return true;
  }
  void EndLoad(const Status& status = Status::Ok()) { waiter_.exchange(nullptr)->OnLoaded(status); }
  void Park(DataRequest* request) {
    const CallGracePeriod::Call call(grace_period_);
    missed_.Park(request, /*scan=*/nullptr);
  }

  CallGracePeriod grace_period_{RealRuntime()};
  std::atomic<int> calls_{0};
  std::atomic<int> misses_left_{0};
  std::atomic<LoadWaiter*> waiter_{nullptr};
  MissedRequests missed_{RealRuntime(), grace_period_,
                         [this](DataRequest* request, MissedRequests::ScanState*, bool missing, LoadWaiter* waiter) {
                           return Continue(request, missing, waiter);
                         }};
};

TEST_F(MissedRequestsTest, ARequestIsAnsweredByTheLoadOfItsLastPage) {
  misses_left_.store(2);
  DataRequest request;
  Park(&request);
  for (int load = 0; load < 3; ++load) {
    EXPECT_FALSE(request.done.IsSet());
    EndLoad();
  }
  EXPECT_TRUE(request.done.IsSet());
  EXPECT_TRUE(request.status.ok());
  EXPECT_EQ(calls_.load(), 4);
  // The same request may be submitted again.
  request.done.Reset();
  Park(&request);
  EndLoad();
  EXPECT_TRUE(request.done.IsSet());
}

TEST_F(MissedRequestsTest, AScanThatHasNotBegunIsNotTakenForOneThatMisses) {
  DataRequest request;
  request.kind = DataRequest::Kind::kScan;
  Park(&request);
  EXPECT_TRUE(request.done.IsSet());
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(MissedRequestsTest, TheErrorOfALoadIsTheAnswer) {
  DataRequest request;
  Park(&request);
  EndLoad(DEUT_ERROR(kCorruption, "damaged"));
  EXPECT_TRUE(request.done.IsSet());
  EXPECT_EQ(request.status, ErrorCode::kCorruption);
  EXPECT_EQ(calls_.load(), 1);
}

// A removed request is not touched: the thread that abandons it may free it at once.
TEST_F(MissedRequestsTest, ARemovedRequestIsNotContinued) {
  auto removed = std::make_unique<DataRequest>();
  Park(removed.get());
  missed_.Abandon(removed.get());
  missed_.Abandon(removed.get());
  removed.reset();
  EndLoad();
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(MissedRequestsTest, ItEndsWhenTheLoadsOfRemovedRequestsHaveEndedToo) {
  DataRequest removed;
  Park(&removed);
  missed_.Abandon(&removed);
  std::atomic<bool> stopped{false};
  const auto stop = RealRuntime().StartThread("stop", [&] {
    missed_.Stop();
    stopped.store(true);
  });
  for (int i = 0; i < 200; ++i) RealRuntime().Yield();
  EXPECT_FALSE(stopped.load());
  EndLoad();
  stop->Join();
  EXPECT_FALSE(removed.done.IsSet());
}

// A thread that has taken a request may still write to it, so the caller that abandons it waits for that thread.
TEST_F(MissedRequestsTest, AbandonWaitsForAThreadThatHasTakenTheRequest) {
  DataRequest request;
  Park(&request);
  Event taken;
  Event go_on;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "dc.missed.taken") return;
    taken.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  const auto loader = RealRuntime().StartThread("loader", [&] { EndLoad(); });
  ASSERT_TRUE(taken.Wait(RealRuntime(), kNoDeadline));
  std::atomic<bool> abandoned{false};
  const auto abandon = RealRuntime().StartThread("abandon", [&] {
    missed_.Abandon(&request);
    abandoned.store(true);
  });
  const MonotonicTime limit = RealRuntime().Now() + std::chrono::milliseconds(200);
  while (!abandoned.load() && RealRuntime().Now() < limit) RealRuntime().Yield();
  EXPECT_FALSE(abandoned.load());
  go_on.Signal(RealRuntime());
  loader->Join();
  abandon->Join();
}

// The request is abandoned by one thread before the thread that submits it has parked it.
TEST_F(MissedRequestsTest, ARequestThatIsParkedWhileItIsAbandonedIsNotContinued) {
  auto request = std::make_unique<DataRequest>();
  Event submitting;
  Event park;
  const auto submit = RealRuntime().StartThread("submit", [&] {
    const CallGracePeriod::Call call(grace_period_);
    submitting.Signal(RealRuntime());
    park.Wait(RealRuntime(), kNoDeadline);
    missed_.Park(request.get(), /*scan=*/nullptr);
  });
  ASSERT_TRUE(submitting.Wait(RealRuntime(), kNoDeadline));
  Event looked;
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "dc.missed.not_parked") looked.Signal(RealRuntime());
  });
  std::atomic<bool> abandoned{false};
  const auto abandon = RealRuntime().StartThread("abandon", [&] {
    missed_.Abandon(request.get());
    abandoned.store(true);
  });
  ASSERT_TRUE(looked.Wait(RealRuntime(), kNoDeadline));
  EXPECT_FALSE(abandoned.load());
  park.Signal(RealRuntime());
  submit->Join();
  abandon->Join();
  testing::SetPointHandler({});
  EndLoad();  // it must not touch the request
  EXPECT_EQ(calls_.load(), 1);
  EXPECT_FALSE(request->done.IsSet());
}

TEST_F(MissedRequestsTest, RequestsAreParkedContinuedAndRemovedAtOnce) {
  // A loader of its own, for many requests.
  std::atomic<bool> over{false};
  constexpr int kSlots = 16;
  std::vector<std::atomic<LoadWaiter*>> slots(kSlots);
  std::atomic<uint32_t> next{0};
  CallGracePeriod grace_period(RealRuntime());
  MissedRequests missed(RealRuntime(), grace_period,
                        [&](DataRequest* request, MissedRequests::ScanState*, bool missing, LoadWaiter* waiter) {
                          request->status = Status::Ok();
                          if (!missing) return true;
                          for (LoadWaiter* free = nullptr;; free = nullptr) {
                            if (slots[next.fetch_add(1) % kSlots].compare_exchange_strong(free, waiter)) return false;
                            RealRuntime().Yield();
                          }
                        });
  const auto loader = RealRuntime().StartThread("loader", [&] {
    while (!over.load()) {
      for (auto& slot : slots) {
        if (LoadWaiter* const waiter = slot.exchange(nullptr)) waiter->OnLoaded(Status::Ok());
      }
      RealRuntime().Yield();
    }
  });
  std::vector<std::unique_ptr<Thread>> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.push_back(RealRuntime().StartThread("caller", [&, caller] {
      for (int i = 0; i < 1000; ++i) {
        auto request = std::make_unique<DataRequest>();
        {
          const CallGracePeriod::Call call(grace_period);
          missed.Park(request.get(), nullptr);
        }
        if (i % 3 == caller) {
          missed.Abandon(request.get());
        } else {
          EXPECT_TRUE(request->done.Wait(RealRuntime(), kNoDeadline));
        }
      }
    }));
  }
  callers.clear();
  missed.Stop();
  over.store(true);
}

}  // namespace
}  // namespace deut::dc
