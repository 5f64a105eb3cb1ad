// Counts stay exact while threads start and end, more of them than there are cells for single threads.
#include "common/observe/counter.h"

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/thread_index.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(CounterTest, CountsWhatManyThreadsAdd) {
  constexpr uint64_t kThreads = 90, kAdds = 500;
  Counter counter;
  for (uint64_t round = 1; round <= 3; ++round) {
    // All threads ask for a place before any of them adds, so some have none.
    std::atomic<uint64_t> ready{0}, without{0};
    Event go;
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
      threads.push_back(RealRuntime().StartThread("adds", [&] {
        if (ThreadIndex::Get() == ThreadIndex::kNone) without.fetch_add(1);
        if (ready.fetch_add(1) + 1 == kThreads) go.Signal(RealRuntime());
        go.Wait(RealRuntime(), kNoDeadline);
        for (uint64_t n = 0; n < kAdds; ++n) {
          counter.Add();
          counter.Add(2);
        }
      }));
    }
    for (const auto& thread : threads) thread->Join();
    EXPECT_GE(without.load(), kThreads - ThreadIndex::kMaxThreads);
    EXPECT_EQ(counter.value(), 3 * round * kThreads * kAdds);
  }
}

}  // namespace
}  // namespace deut
