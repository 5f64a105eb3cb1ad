// MagazineStack: order, a head that was removed and came back, lost compare-and-swaps, many threads.
#include "common/sync/magazine_stack.h"

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(MagazineStackTest, LastInFirstOut) {
  MagazineStack stack;
  Magazine a, b;
  EXPECT_EQ(stack.Pop(), nullptr);
  stack.Push(&a);
  stack.Push(&b);
  EXPECT_EQ(stack.Pop(), &b);
  EXPECT_EQ(stack.Pop(), &a);
  EXPECT_EQ(stack.Pop(), nullptr);
}

#ifdef DEUT_TEST_POINTS
class MagazineStackRaceTest : public ::testing::Test {
 protected:
  ~MagazineStackRaceTest() override {
    testing::SetPointHandler({});
    testing::SetCasHandler({});
  }
  MagazineStack stack_;
  Magazine a_, b_, c_;
};

// Between the load of the first magazine's `next` and the compare-and-swap, another thread pops the first and the
// second and pushes the first again.
TEST_F(MagazineStackRaceTest, AHeadThatWasRemovedAndCameBackIsNoticed) {
  stack_.Push(&b_);
  stack_.Push(&a_);
  bool meanwhile = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "magazine_stack.pop.before_cas" || std::exchange(meanwhile, true)) return;
    EXPECT_EQ(stack_.Pop(), &a_);
    EXPECT_EQ(stack_.Pop(), &b_);
    stack_.Push(&c_);
    stack_.Push(&a_);
  });
  EXPECT_EQ(stack_.Pop(), &a_);
  EXPECT_TRUE(meanwhile);
  EXPECT_EQ(stack_.Pop(), &c_) << "b was taken by who came between";
  EXPECT_EQ(stack_.Pop(), nullptr);
}

TEST_F(MagazineStackRaceTest, LostCompareAndSwapsAreRetried) {
  int losses = 0;
  testing::SetCasHandler([&](std::string_view) { return losses++ % 2 == 0; });
  stack_.Push(&a_);
  stack_.Push(&b_);
  EXPECT_EQ(stack_.Pop(), &b_);
  EXPECT_EQ(stack_.Pop(), &a_);
  EXPECT_EQ(losses, 8);
}
#endif

// One thread at a time owns each magazine, and the next owner sees what the previous one wrote.
TEST(MagazineStackTest, NoMagazineIsInTwoThreads) {
  constexpr int kThreads = 4, kMagazines = 8, kRounds = 20'000;
  std::vector<Magazine> magazines(kMagazines);
  MagazineStack stack;
  for (Magazine& magazine : magazines) stack.Push(&magazine);
  std::atomic<uint64_t> taken{0};
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.push_back(RealRuntime().StartThread("taker", [&] {
        for (int i = 0; i < kRounds; ++i) {
          Magazine* const magazine = stack.Pop();
          if (magazine == nullptr) continue;
          ++magazine->count;
          taken.fetch_add(1, std::memory_order_relaxed);
          stack.Push(magazine);
        }
      }));
    }
  }
  uint64_t counted = 0;
  for (const Magazine& magazine : magazines) counted += magazine.count;
  EXPECT_EQ(counted, taken.load());
  int left = 0;
  while (stack.Pop() != nullptr) ++left;
  EXPECT_EQ(left, kMagazines);
}

}  // namespace
}  // namespace deut
