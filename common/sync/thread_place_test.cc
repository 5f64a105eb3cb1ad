// ThreadPlace: each number belongs to one thread, is given back, and kPlaces threads at most have one.
#include "common/sync/thread_place.h"

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

// Threads that have asked for their numbers and stay alive.
class Crowd {
 public:
  explicit Crowd(size_t threads) : places_(threads) {
    for (size_t i = 0; i < threads; ++i) {
      threads_.push_back(RealRuntime().StartThread("crowd", [this, i] {
        places_[i] = ThreadPlace::Get();
        EXPECT_EQ(ThreadPlace::Get(), places_[i]);
        if (asked_.fetch_add(1) + 1 == places_.size()) all_.Signal(RealRuntime());
        end_.Wait(RealRuntime(), kNoDeadline);
      }));
    }
    all_.Wait(RealRuntime(), kNoDeadline);
  }
  ~Crowd() {
    end_.Signal(RealRuntime());
    for (const auto& thread : threads_) thread->Join();
  }
  const std::vector<uint32_t>& places() const { return places_; }

 private:
  std::vector<uint32_t> places_;
  std::atomic<size_t> asked_{0};
  Event all_, end_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

TEST(ThreadPlaceTest, EachThreadHasItsOwn) {
  for (int round = 0; round < 5; ++round) {
    const Crowd crowd(20);
    std::set<uint32_t> seen{ThreadPlace::Get()};
    for (const uint32_t place : crowd.places()) {
      EXPECT_LT(place, ThreadPlace::kPlaces);
      EXPECT_TRUE(seen.insert(place).second) << place;
    }
  }
}

TEST(ThreadPlaceTest, OfMoreThreadsTheLaterOnesHaveNone) {
  ThreadPlace::Get();
  {
    const Crowd crowd(100);
    std::set<uint32_t> seen;
    size_t none = 0;
    for (const uint32_t place : crowd.places()) {
      if (place == ThreadPlace::kNone) {
        ++none;
      } else {
        EXPECT_TRUE(seen.insert(place).second) << place;
      }
    }
    EXPECT_GE(none, 100 - (ThreadPlace::kPlaces - 1));
    EXPECT_GT(seen.size(), 0u);
  }
  const Crowd crowd(1);
  EXPECT_NE(crowd.places()[0], ThreadPlace::kNone) << "they were given back";
}

TEST(ThreadPlaceTest, ALostCompareAndSwapIsTriedAgain) {
  std::atomic<int> lost{0};
  testing::SetCasHandler([&](std::string_view name) { return name == "thread_place.cas" && lost.fetch_add(1) < 3; });
  {
    const Crowd crowd(1);
    EXPECT_LT(crowd.places()[0], ThreadPlace::kPlaces);
  }
  testing::SetCasHandler(nullptr);
  EXPECT_GE(lost.load(), 3);
}

}  // namespace
}  // namespace deut
