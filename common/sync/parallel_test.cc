#include "common/sync/parallel.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(ParallelTest, EachItemOnceWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 8}) {
    for (const size_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      EXPECT_TRUE(ForEachInParallel(RealRuntime(), threads, count, [&](size_t i) {
                    calls[i].fetch_add(1);
                    return Status::Ok();
                  }).ok());
      for (const std::atomic<int>& of_one : calls) EXPECT_EQ(of_one.load(), 1);
    }
  }
}

// Each call waits until all have begun.
TEST(ParallelTest, AsManyAtOnceAsThreads) {
  std::atomic<int> begun{0};
  Event all;
  EXPECT_TRUE(ForEachInParallel(RealRuntime(), 4, 4, [&](size_t) {
                if (begun.fetch_add(1) == 3) all.Signal(RealRuntime());
                all.Wait(RealRuntime(), kNoDeadline);
                return Status::Ok();
              }).ok());
}

// All four threads take part: the first calls wait for one another. A sum that two threads add to would be a race.
TEST(ParallelTest, EachThreadHasANumberOfItsOwn) {
  constexpr size_t kCount = 1000;
  std::vector<uint64_t> sums(4);
  std::atomic<size_t> begun{0};
  Event all;
  EXPECT_TRUE(ForEachByThread(RealRuntime(), 4, kCount, [&](size_t i, size_t thread) {
                if (begun.fetch_add(1) == 3) all.Signal(RealRuntime());
                all.Wait(RealRuntime(), kNoDeadline);
                sums.at(thread) += i;
                return Status::Ok();
              }).ok());
  uint64_t sum = 0;
  for (const uint64_t of_one : sums) sum += of_one;
  EXPECT_EQ(sum, kCount * (kCount - 1) / 2);
  EXPECT_TRUE(ForEachByThread(RealRuntime(), 0, 2, [](size_t, size_t thread) {
                EXPECT_EQ(thread, 0u);
                return Status::Ok();
              }).ok());
}

TEST(ParallelTest, TheFirstErrorAndNoFurtherCalls) {
  std::atomic<int> calls{0};
  std::atomic<int> begun{0};
  Event both;
  const Status status = ForEachInParallel(RealRuntime(), 2, 1000, [&](size_t i) {
    calls.fetch_add(1);
    if (i != 10 && i != 11) return Status::Ok();
    if (begun.fetch_add(1) == 1) both.Signal(RealRuntime());
    both.Wait(RealRuntime(), kNoDeadline);
    return DEUT_ERROR(kCorruption, "number ", i);
  });
  EXPECT_EQ(status.message(), "number 10");
  EXPECT_EQ(calls.load(), 12);
}

}  // namespace
}  // namespace deut
