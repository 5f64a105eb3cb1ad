#include "integration/bench/worker_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "common/runtime/runtime.h"

namespace deut::bench {
namespace {

TEST(WorkerThreadsTest, EachRunsOnce) {
  std::atomic<bool> stop{false};
  std::array<std::atomic<int>, 5> ran{};
  double seconds = -1;
  const auto body = [&](size_t i) {
    ran[i].fetch_add(1);
    return Status();
  };
  ASSERT_TRUE(RunThreads(RealRuntime(), ran.size(), Duration(0), &stop, body, &seconds).ok());
  for (const std::atomic<int>& times : ran) EXPECT_EQ(times.load(), 1);
  EXPECT_GE(seconds, 0);
  EXPECT_FALSE(stop.load());
}

TEST(WorkerThreadsTest, TimeEndsThem) {
  std::atomic<bool> stop{false};
  double seconds = 0;
  const auto body = [&](size_t) {
    while (!stop.load()) {
    }
    return Status();
  };
  ASSERT_TRUE(RunThreads(RealRuntime(), 2, milliseconds(5), &stop, body, &seconds).ok());
  EXPECT_GE(seconds, 0.005);
}

TEST(WorkerThreadsTest, AFailureStopsTheOthersAndIsTold) {
  std::atomic<bool> stop{false};
  double seconds = 0;
  const auto body = [&](size_t i) -> Status {
    if (i == 2) return DEUT_ERROR(kCorruption, "the third");
    while (!stop.load()) {
    }
    return Status();
  };
  const Status status = RunThreads(RealRuntime(), 3, Duration(0), &stop, body, &seconds);
  EXPECT_EQ(status.code(), ErrorCode::kCorruption) << status.ToString();
}

}  // namespace
}  // namespace deut::bench
