// ThreadIndex: each index belongs to one thread, is given back, and at most kMaxThreads threads have one.
#include "common/sync/thread_index.h"

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

// Threads that have asked for their indexes and stay alive.
class Crowd {
 public:
  explicit Crowd(size_t threads) : indexes_(threads) {
    for (size_t i = 0; i < threads; ++i) {
      threads_.push_back(RealRuntime().StartThread("crowd", [this, i] {
        indexes_[i] = ThreadIndex::Get();
        EXPECT_EQ(ThreadIndex::Get(), indexes_[i]);
        if (asked_.fetch_add(1) + 1 == indexes_.size()) all_.Signal(RealRuntime());
        end_.Wait(RealRuntime(), kNoDeadline);
      }));
    }
    all_.Wait(RealRuntime(), kNoDeadline);
  }
  ~Crowd() {
    end_.Signal(RealRuntime());
    for (const auto& thread : threads_) thread->Join();
  }
  const std::vector<uint32_t>& indexes() const { return indexes_; }

 private:
  std::vector<uint32_t> indexes_;
  std::atomic<size_t> asked_{0};
  Event all_, end_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

TEST(ThreadIndexTest, EachThreadHasItsOwn) {
  for (int round = 0; round < 5; ++round) {
    const Crowd crowd(20);
    std::set<uint32_t> seen{ThreadIndex::Get()};
    for (const uint32_t index : crowd.indexes()) {
      EXPECT_LT(index, ThreadIndex::kMaxThreads);
      EXPECT_TRUE(seen.insert(index).second) << index;
    }
  }
}

TEST(ThreadIndexTest, ThreadsBeyondTheMaximumHaveNone) {
  ThreadIndex::Get();
  {
    const Crowd crowd(100);
    std::set<uint32_t> seen;
    size_t none = 0;
    for (const uint32_t index : crowd.indexes()) {
      if (index == ThreadIndex::kNone) {
        ++none;
      } else {
        EXPECT_TRUE(seen.insert(index).second) << index;
      }
    }
    EXPECT_GE(none, 100 - (ThreadIndex::kMaxThreads - 1));
    EXPECT_GT(seen.size(), 0u);
  }
  const Crowd crowd(1);
  EXPECT_NE(crowd.indexes()[0], ThreadIndex::kNone) << "they were given back";
}

TEST(ThreadIndexTest, ALostCompareAndSwapIsRetried) {
  std::atomic<int> lost{0};
  testing::SetCasHandler([&](std::string_view name) { return name == "thread_index.cas" && lost.fetch_add(1) < 3; });
  {
    const Crowd crowd(1);
    EXPECT_LT(crowd.indexes()[0], ThreadIndex::kMaxThreads);
  }
  testing::SetCasHandler(nullptr);
  EXPECT_GE(lost.load(), 3);
}

}  // namespace
}  // namespace deut
