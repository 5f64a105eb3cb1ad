#include "protocol/rpc/rpc_thread_pool.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/testing/forwarding_runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

// A runtime whose clock the test sets, and which gives as many threads as the test allows.
class PoolRuntime final : public testing::ForwardingRuntime {
 public:
  MonotonicTime Now() override { return now; }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    ++asked;
    if (threads_left == 0) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    --threads_left;
    return ForwardingRuntime::StartThread(std::move(name), std::move(body));
  }

  std::atomic<MonotonicTime> now{MonotonicTime(seconds(1000))};
  int threads_left = 1000;
  int asked = 0;
};

// Each summons lets a thread do one step: it counts, and rests again, or ends once `end_` is set.
class RpcThreadPoolTest : public ::testing::Test {
 protected:
  ~RpcThreadPoolTest() override {
    std::vector<std::unique_ptr<Thread>> ended;  // joined without the lock
    MutexLock lock(mutex_);
    end_ = true;
    while (pool_.resting() != 0) pool_.Summon();
    while (pool_.size() != 0) changed_.Wait(mutex_);
    ended = pool_.TakeEnded();
  }

  void Run(RpcThread* self) {
    MutexLock lock(mutex_);
    for (;;) {
      pool_.AwaitSummons(self, mutex_);
      last_ = self;
      ++steps_;
      changed_.NotifyAll(runtime_);
      if (end_) break;
      pool_.Rest(self);
    }
    pool_.End(self);
  }
  void AwaitStepsLocked(int steps) DEUT_REQUIRES(mutex_) {
    while (steps_ < steps) changed_.Wait(mutex_);
  }

  PoolRuntime runtime_;
  Mutex mutex_{runtime_};
  CondVar changed_;
  bool end_ DEUT_GUARDED_BY(mutex_) = false;
  int steps_ DEUT_GUARDED_BY(mutex_) = 0;
  RpcThread* last_ DEUT_GUARDED_BY(mutex_) = nullptr;
  RpcThreadPool pool_ DEUT_GUARDED_BY(mutex_){runtime_, /*max_threads=*/3, [this](RpcThread* self) { Run(self); }};
};

TEST_F(RpcThreadPoolTest, StartsAThreadOnlyIfNoneRests) {
  MutexLock lock(mutex_);
  ASSERT_TRUE(pool_.Summon());
  EXPECT_EQ(pool_.size(), 1);
  EXPECT_EQ(pool_.resting(), 0u);
  AwaitStepsLocked(1);
  EXPECT_EQ(pool_.resting(), 1u);
  ASSERT_TRUE(pool_.Summon());
  AwaitStepsLocked(2);
  EXPECT_EQ(pool_.size(), 1);
  EXPECT_EQ(pool_.summons(), 2u);
  EXPECT_EQ(runtime_.asked, 1);
}

TEST_F(RpcThreadPoolTest, TheThreadThatCameToRestLastIsSummonedFirst) {
  MutexLock lock(mutex_);
  ASSERT_TRUE(pool_.AddResting());
  ASSERT_TRUE(pool_.AddResting());
  ASSERT_TRUE(pool_.Summon());
  AwaitStepsLocked(1);
  RpcThread* const last = last_;
  for (int i = 2; i <= 10; ++i) {
    ASSERT_TRUE(pool_.Summon());
    AwaitStepsLocked(i);
    EXPECT_EQ(last_, last);
  }
  EXPECT_EQ(pool_.size(), 2);
}

TEST_F(RpcThreadPoolTest, AThreadBeyondTheLimitIsNotAskedFor) {
  MutexLock lock(mutex_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool_.AddResting());
  EXPECT_FALSE(pool_.AddResting());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool_.Summon());
  EXPECT_FALSE(pool_.Summon());
  EXPECT_EQ(runtime_.asked, 3);
  EXPECT_EQ(pool_.shortages(), 0u);
}

TEST_F(RpcThreadPoolTest, ARefusedThreadIsAskedForAgainAfterAPause) {
  MutexLock lock(mutex_);
  runtime_.threads_left = 0;
  EXPECT_FALSE(pool_.Summon());
  EXPECT_FALSE(pool_.AddResting());
  EXPECT_EQ(runtime_.asked, 1);
  EXPECT_EQ(pool_.shortages(), 1u);
  EXPECT_EQ(pool_.size(), 0);
  runtime_.now = runtime_.Now() + RpcThreadPool::kPauseAfterShortage;
  EXPECT_FALSE(pool_.AddResting());
  EXPECT_EQ(runtime_.asked, 2);
  EXPECT_EQ(pool_.shortages(), 2u);
  runtime_.now = runtime_.Now() + RpcThreadPool::kPauseAfterShortage;
  runtime_.threads_left = 1;
  EXPECT_TRUE(pool_.Summon());
  EXPECT_EQ(pool_.size(), 1);
  AwaitStepsLocked(1);
}

}  // namespace
}  // namespace deut
