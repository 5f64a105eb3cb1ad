// BlockingHook: which waits call `hook`, and how often.
#include "common/runtime/blocking_hook.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class BlockingHookTest : public ::testing::Test {
 protected:
  // A wait that blocks for a moment.
  void Block() { runtime_.Wait(word_, 0, runtime_.Now() + microseconds(1)); }

  BlockingHookRuntime runtime_{RealRuntime()};
  const std::atomic<uint32_t> word_{0};
  int calls_ = 0;
  const std::function<void()> hook_ = [this] { ++calls_; };
};

TEST_F(BlockingHookTest, OnlyTheFirstWaitCallsTheHook) {
  {
    const BlockingHook before(hook_);
    EXPECT_EQ(calls_, 0);
    Block();
    EXPECT_EQ(calls_, 1);
    Block();
    EXPECT_EQ(calls_, 1);
  }
  const BlockingHook again(hook_);
  Block();
  EXPECT_EQ(calls_, 2);
}

TEST_F(BlockingHookTest, AWaitThatDoesNotBlockDoesNotCallTheHook) {
  const BlockingHook before(hook_);
  EXPECT_TRUE(runtime_.Wait(word_, 1, kNoDeadline));
  EXPECT_EQ(calls_, 0);
}

TEST_F(BlockingHookTest, AfterItsEndAndOnOtherThreadsTheHookIsNotCalled) {
  {
    const BlockingHook before(hook_);
  }
  Block();
  EXPECT_EQ(calls_, 0);
  const BlockingHook before(hook_);
  runtime_.StartThread("other", [this] { Block(); })->Join();
  EXPECT_EQ(calls_, 0);
}

TEST_F(BlockingHookTest, WithPatienceOnlyALongWaitCallsTheHook) {
  {
    const BlockingHook before(hook_, seconds(3600));
    EXPECT_FALSE(runtime_.Wait(word_, 0, runtime_.Now() + milliseconds(1)));
    EXPECT_EQ(calls_, 0);
  }
  std::atomic<uint32_t> word{0};
  const std::function<void()> end = [&] {
    ++calls_;
    word.store(1, std::memory_order_seq_cst);  // `hook` fulfils the condition of the wait
  };
  const BlockingHook before(end, milliseconds(1));
  EXPECT_TRUE(runtime_.Wait(word, 0, kNoDeadline));
  EXPECT_EQ(calls_, 1);
}

TEST_F(BlockingHookTest, PatienceIsForAllItsWaitsTogether) {
  const BlockingHook before(hook_, milliseconds(5));
  // Each single wait is shorter than the patience.
  while (calls_ == 0) runtime_.Wait(word_, 0, runtime_.Now() + milliseconds(1));
  EXPECT_EQ(calls_, 1);
}

TEST_F(BlockingHookTest, ASleepAndNotifyBlockingCallTheHook) {
  {
    const BlockingHook before(hook_);
    while (calls_ == 0) runtime_.SleepUntil(runtime_.Now() + milliseconds(1));  // a sleep may be over before it blocks
    EXPECT_EQ(calls_, 1);
    BlockingHook::NotifyBlocking();
    EXPECT_EQ(calls_, 1);
  }
  const BlockingHook again(hook_);
  BlockingHook::NotifyBlocking();
  EXPECT_EQ(calls_, 2);
}

TEST_F(BlockingHookTest, TheHookMayWait) {
  const std::function<void()> waits = [this] {
    ++calls_;
    Block();
  };
  const BlockingHook before(waits);
  Block();
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace deut
