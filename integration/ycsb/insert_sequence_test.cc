#include "integration/ycsb/insert_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "common/runtime/random.h"

namespace deut::ycsb {
namespace {

TEST(InsertSequence, ShowsOnlyWhatIsAcknowledgedWithoutAGap) {
  InsertSequence sequence(RealRuntime(), 100);
  EXPECT_EQ(sequence.visible(), 100u);
  for (uint64_t n = 100; n < 104; ++n) EXPECT_EQ(sequence.Draw(), n);
  sequence.Acknowledge(102);
  sequence.Acknowledge(101);
  EXPECT_EQ(sequence.visible(), 100u);
  sequence.Acknowledge(100);
  EXPECT_EQ(sequence.visible(), 103u);
  sequence.Acknowledge(103);
  EXPECT_EQ(sequence.visible(), 104u);
}

TEST(InsertSequence, AWindowAheadWaitsUntilStopped) {
  InsertSequence sequence(RealRuntime(), 0);
  std::atomic<bool> returned{false};
  std::thread ahead([&] {
    sequence.Acknowledge(InsertSequence::kWindow);
    returned.store(true);
  });
  sequence.Stop();
  ahead.join();
  EXPECT_TRUE(returned.load());
  EXPECT_EQ(sequence.visible(), 0u);
}

TEST(InsertSequence, NoAcknowledgementIsLeftBehind) {
  InsertSequence sequence(RealRuntime(), 7);
  constexpr int kThreads = 4, kEach = 50'000;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    uint64_t last = 0;
    while (!done.load()) {
      const uint64_t visible = sequence.visible();
      EXPECT_GE(visible, last);
      last = visible;
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::vector<uint64_t> held;
      for (int i = 0; i < kEach; ++i) {
        held.push_back(sequence.Draw());
        if (!random.OneIn(3)) continue;
        while (!held.empty()) {
          const auto [low, high] = std::minmax_element(held.begin(), held.end());
          // A thread that was delayed for a whole window must not wait for a number that it holds itself.
          const bool apart = *high - *low >= InsertSequence::kWindow;
          std::iter_swap(apart ? low : held.begin() + static_cast<ptrdiff_t>(random.Below(held.size())),
                         held.end() - 1);
          sequence.Acknowledge(held.back());
          held.pop_back();
        }
      }
      std::sort(held.begin(), held.end());
      for (const uint64_t number : held) sequence.Acknowledge(number);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done.store(true);
  reader.join();
  EXPECT_EQ(sequence.visible(), 7u + kThreads * kEach);
}

}  // namespace
}  // namespace deut::ycsb
