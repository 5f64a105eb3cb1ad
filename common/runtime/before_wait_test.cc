// BeforeWait: which waits call `tell`, and how often.
#include "common/runtime/before_wait.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class BeforeWaitTest : public ::testing::Test {
 protected:
  // A wait that blocks for a moment.
  void Block() { runtime_.Wait(word_, 0, runtime_.Now() + microseconds(1)); }

  TellingRuntime runtime_{RealRuntime()};
  const std::atomic<uint32_t> word_{0};
  int told_ = 0;
  const std::function<void()> tell_ = [this] { ++told_; };
};

TEST_F(BeforeWaitTest, TellsOfTheFirstWaitOnly) {
  {
    const BeforeWait before(tell_);
    EXPECT_EQ(told_, 0);
    Block();
    EXPECT_EQ(told_, 1);
    Block();
    EXPECT_EQ(told_, 1);
  }
  const BeforeWait again(tell_);
  Block();
  EXPECT_EQ(told_, 2);
}

TEST_F(BeforeWaitTest, TellsNothingOfAWaitThatDoesNotBlock) {
  const BeforeWait before(tell_);
  EXPECT_TRUE(runtime_.Wait(word_, 1, kNoDeadline));
  EXPECT_EQ(told_, 0);
}

TEST_F(BeforeWaitTest, TellsNothingWhenItIsOverNorOtherThreads) {
  {
    const BeforeWait before(tell_);
  }
  Block();
  EXPECT_EQ(told_, 0);
  const BeforeWait before(tell_);
  runtime_.StartThread("other", [this] { Block(); })->Join();
  EXPECT_EQ(told_, 0);
}

TEST_F(BeforeWaitTest, WithPatienceItTellsOfALongWaitOnly) {
  {
    const BeforeWait before(tell_, seconds(3600));
    EXPECT_FALSE(runtime_.Wait(word_, 0, runtime_.Now() + milliseconds(1)));
    EXPECT_EQ(told_, 0);
  }
  std::atomic<uint32_t> word{0};
  const std::function<void()> end = [&] {
    ++told_;
    word.store(1, std::memory_order_seq_cst);  // `tell` fulfils the condition of the wait
  };
  const BeforeWait before(end, milliseconds(1));
  EXPECT_TRUE(runtime_.Wait(word, 0, kNoDeadline));
  EXPECT_EQ(told_, 1);
}

TEST_F(BeforeWaitTest, PatienceIsForAllItsWaitsTogether) {
  const BeforeWait before(tell_, milliseconds(5));
  // Each single wait is shorter than the patience.
  while (told_ == 0) runtime_.Wait(word_, 0, runtime_.Now() + milliseconds(1));
  EXPECT_EQ(told_, 1);
}

TEST_F(BeforeWaitTest, ASleepIsAWaitAndSoIsWhatSaysSo) {
  {
    const BeforeWait before(tell_);
    while (told_ == 0) runtime_.SleepUntil(runtime_.Now() + milliseconds(1));  // a sleep may be over before it blocks
    EXPECT_EQ(told_, 1);
    BeforeWait::Tell();
    EXPECT_EQ(told_, 1);
  }
  const BeforeWait again(tell_);
  BeforeWait::Tell();
  EXPECT_EQ(told_, 2);
}

TEST_F(BeforeWaitTest, WhatIsToldMayWait) {
  const std::function<void()> waits = [this] {
    ++told_;
    Block();
  };
  const BeforeWait before(waits);
  Block();
  EXPECT_EQ(told_, 1);
}

}  // namespace
}  // namespace deut
