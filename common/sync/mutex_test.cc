#include "common/sync/mutex.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(MutexTest, ExcludesOtherThreadsAndWakesThem) {
  Mutex mutex(RealRuntime());
  uint64_t counter = 0;  // not atomic: only the lock makes this right
  constexpr int kThreads = 4;
  constexpr uint64_t kRounds = 50000;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(RealRuntime().StartThread("mutex-test", [&] {
      for (uint64_t i = 0; i < kRounds; ++i) {
        MutexLock lock(mutex);
        ++counter;
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(counter, kThreads * kRounds);
}

}  // namespace
}  // namespace deut
