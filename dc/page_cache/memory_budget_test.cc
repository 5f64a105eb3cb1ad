#include "dc/page_cache/memory_budget.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/sync/process_budget.h"
#include "common/sync/slab_drain.h"
#include "common/sync/slab_heap.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(MemoryBudgetTest, EachLevelBeginsAboveItsShareOfTheLimit) {
  uint64_t used = 0;
  const MemoryBudget budget([&used] { return used; }, 1600);
  EXPECT_FALSE(budget.unlimited());
  EXPECT_EQ(budget.limit(), 1600u);
  EXPECT_EQ(budget.apply_limit(), 1500u);
  const auto levels = [&](uint64_t bytes) {
    used = bytes;
    return (budget.used() > budget.low_mark() ? 1 : 0) + (budget.IsOverHighMark() ? 1 : 0) +
           (budget.IsExceededWithout(0) ? 1 : 0);
  };
  EXPECT_EQ(levels(1300), 0);
  EXPECT_EQ(levels(1301), 1);
  EXPECT_EQ(levels(1400), 1);
  EXPECT_EQ(levels(1401), 2);
  EXPECT_EQ(levels(1600), 2);
  EXPECT_EQ(levels(1601), 3);
  EXPECT_EQ(budget.used(), 1601u);
}

TEST(MemoryBudgetTest, PagesAreFetchedUpToTheHighMark) {
  uint64_t used = 1000;
  const auto accounted = [&] { return used; };
  const MemoryBudget budget(accounted, 1600);
  EXPECT_EQ(budget.room_below_high_mark(), 400u);
  used = 1500;
  EXPECT_EQ(budget.room_below_high_mark(), 0u);
  EXPECT_EQ(MemoryBudget(accounted, 0).room_below_high_mark(), UINT64_MAX);
}

TEST(MemoryBudgetTest, RetiredMemoryDoesNotExceedTheLimit) {
  const MemoryBudget budget([] { return 1700; }, 1600);
  EXPECT_TRUE(budget.IsExceededWithout(99));
  EXPECT_FALSE(budget.IsExceededWithout(100));
}

constexpr uint64_t kMiB = 1 << 20;

// A component whose accounted bytes and room the test sets. The limit is 1,600 MiB, so 200 MiB of room are tolerated.
class RoomTest : public ::testing::Test {
 protected:
  void Say(uint64_t accounted_mib, uint64_t room_mib) {
    accounted_ = accounted_mib * kMiB;
    room_ = room_mib * kMiB;
  }
  uint64_t accounted_ = 0;
  uint64_t room_ = 0;
  const MemoryBudget budget_{[this] { return accounted_; }, 1600 * kMiB,
                             [this](uint64_t accounted) {
                               EXPECT_EQ(accounted, accounted_);
                               return room_;
                             }};
};

TEST_F(RoomTest, RoomCountsBeyondAnEighthOfTheLimit) {
  Say(1000, 200);
  EXPECT_EQ(budget_.used(), 1000 * kMiB);
  EXPECT_EQ(budget_.BytesToDrain(), 0u);
  Say(1000, 201);
  EXPECT_EQ(budget_.used(), 1001 * kMiB);
  EXPECT_EQ(budget_.accounted(), 1000 * kMiB);
}

// This holds for all shares of pages and room.
TEST_F(RoomTest, BelowTheHighMarkPagesAndRoomDoNotExceedTheLimit) {
  for (uint64_t accounted = 0; accounted <= 1600; accounted += 50) {
    uint64_t room = 0;
    for (Say(accounted, room); !budget_.IsOverHighMark() && room < 3000; Say(accounted, room)) ++room;
    if (room != 0) EXPECT_LE(accounted + room, 1601u) << accounted;
    for (Say(accounted, room); !budget_.IsExceededWithout(0) && room < 3000; Say(accounted, room)) ++room;
    if (room != 0) EXPECT_LE(accounted + room, 1801u) << accounted;
  }
}

// Evicted pages leave their bytes as room. Room between the marks is tolerated, so evicting helps.
TEST_F(RoomTest, EvictingLowersTheUsedBytesAsLongAsRoomDoesNotCount) {
  Say(1400, 100);
  EXPECT_EQ(budget_.used(), 1400 * kMiB);
  Say(1300, 200);
  EXPECT_EQ(budget_.used(), budget_.low_mark());
}

TEST_F(RoomTest, DrainingLeadsToTheLowMarkAndLeavesHalfTheToleratedRoom) {
  Say(1000, 700);  // used: 1,500
  EXPECT_EQ(budget_.BytesToDrain(), 200 * kMiB);
  Say(1500, 250);  // used: 1,550. 100 of 250 MiB of room must stay
  EXPECT_EQ(budget_.BytesToDrain(), 150 * kMiB);
  Say(500, 250);
  EXPECT_EQ(budget_.BytesToDrain(), 0u) << "the used bytes are below the low mark";
}

// Retired memory comes free. As room it counts no more than before, so the limit is not exceeded without it.
TEST_F(RoomTest, ToleratedRoomDoesNotExceedTheLimitBesideRetiredMemory) {
  Say(1760, 180);  // 160 of them are retired
  EXPECT_TRUE(budget_.IsExceededWithout(0));
  EXPECT_FALSE(budget_.IsExceededWithout(160 * kMiB));
  Say(1761, 180);
  EXPECT_TRUE(budget_.IsExceededWithout(160 * kMiB));
}

TEST_F(RoomTest, ASmallBudgetToleratesTheRoomThatCannotBeEmptied) {
  const MemoryBudget small([] { return kMiB; }, 2 * kMiB,
                           [](uint64_t) { return MemoryBudget::kLeastToleratedRoom + 1; });
  EXPECT_EQ(small.used(), kMiB + 1);
}

TEST_F(RoomTest, WithoutALimitNoRoomCounts) {
  const MemoryBudget unlimited([] { return kMiB; }, 0, [](uint64_t) { return 1000 * kMiB; });
  EXPECT_EQ(unlimited.used(), kMiB);
  EXPECT_EQ(unlimited.BytesToDrain(), 0u);
}

// A component as the evictor keeps it, with real slabs: memory is full of bases, and then of deltas, which lie in other
// slabs. Some bases stay to the end.
class ChangeOfWorkloadTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kLimit = 256 * kMiB;
  static constexpr size_t kBaseBytes = 23'000;
  static constexpr size_t kDeltaBytes = 1'100;

  void Add(size_t bytes, std::vector<void*>* nodes) {
    nodes->push_back(heap_->Allocate(bytes, nullptr));
    ASSERT_NE(nodes->back(), nullptr);
    most_ = std::max(most_, heap_->figures().slab_bytes);
  }
  void EvictOne(std::vector<void*>* nodes) {
    std::swap((*nodes)[random_.Below(nodes->size())], nodes->back());
    heap_->Free(nodes->back(), nullptr);
    nodes->pop_back();
  }
  void Move(size_t bytes, std::vector<void*>* nodes) {
    for (void*& node : *nodes) {
      if (!heap_->IsDraining(node)) continue;
      void* const other = heap_->Allocate(bytes, nullptr);
      ASSERT_NE(other, nullptr);
      heap_->Free(std::exchange(node, other), nullptr);
      moved_ += bytes;
      most_ = std::max(most_, heap_->figures().slab_bytes);
    }
  }
  // As PageEvictor. At least `kept` bases stay.
  void Evict(size_t kept) {
    while (budget_.IsOverHighMark()) {
      const uint64_t bytes = budget_.BytesToDrain();
      if (bytes != 0) {
        const SlabDrain drain(*heap_, bytes);
        Move(kBaseBytes, &bases_);
        Move(kDeltaBytes, &deltas_);
        drained_ += bytes;
        ASSERT_LT(++drains_, 1000);
      }
      while (budget_.accounted() > budget_.low_mark()) EvictOne(bases_.size() > kept ? &bases_ : &deltas_);
    }
  }

  static std::unique_ptr<SlabHeap> NewHeap() {
    SlabHeap::Options options;
    options.reserved_bytes = 4 * kLimit;
    return SlabHeap::Create(options);
  }
  const std::unique_ptr<SlabHeap> heap_ = NewHeap();
  const MemoryBudget budget_{[this] { return heap_->used_bytes(); }, kLimit,
                             [this](uint64_t) { return heap_->free_bytes(); }};
  Random random_{7};
  std::vector<void*> bases_, deltas_;
  uint64_t most_ = 0, moved_ = 0, drained_ = 0;
  int drains_ = 0;
};

TEST_F(ChangeOfWorkloadTest, SlabsStayWithinTheLimitAndAnEighth) {
  for (const size_t share : {2, 20, 1000}) {
    while (budget_.used() < kLimit / 20 * 17) Add(kBaseBytes, &bases_);
    const size_t kept = bases_.size() / share;
    // Twice as many bytes of deltas as the budget has.
    for (uint64_t bytes = 0; bytes < 2 * kLimit; bytes += kDeltaBytes) {
      Add(kDeltaBytes, &deltas_);
      Evict(kept);
      if (HasFatalFailure()) return;
    }
    // And back to bases.
    for (uint64_t bytes = 0; bytes < 2 * kLimit; bytes += kBaseBytes) {
      Add(kBaseBytes, &bases_);
      while (budget_.accounted() > budget_.low_mark() && !deltas_.empty()) EvictOne(&deltas_);
      Evict(kept);
      if (HasFatalFailure()) return;
    }
    EXPECT_LE(most_, kLimit + budget_.tolerated_room()) << share;
  }
  EXPECT_GT(drains_, 0);
  EXPECT_LE(moved_, drained_) << "at most as many bytes are moved as are got back";
}

TEST(MemoryBudgetTest, LevelsFollowAMovingLimit) {
  uint64_t limit = 1600;
  const MemoryBudget budget([] { return uint64_t{1450}; }, std::function<uint64_t()>([&limit] { return limit; }));
  EXPECT_FALSE(budget.unlimited());
  EXPECT_TRUE(budget.IsOverHighMark());
  EXPECT_FALSE(budget.IsExceededWithout(0));
  limit = 1440;
  EXPECT_TRUE(budget.IsExceededWithout(0));
  EXPECT_EQ(budget.apply_limit(), 1350u);
  limit = 3200;
  EXPECT_FALSE(budget.IsOverHighMark());
}

TEST(MemoryBudgetTest, PagesAndRoomStayWithinTheGivenBytesAndATwentieth) {
  for (uint64_t mib = 41; mib < 10'000; mib += 7) {
    const uint64_t limit = MemoryBudget::LimitWithin(mib * kMiB);
    const MemoryBudget budget([] { return 0; }, limit);
    EXPECT_LE(limit + budget.tolerated_room(), mib * kMiB + mib * kMiB / 20) << mib;
    const uint64_t moved = limit / 16;
    if (mib <= 300) EXPECT_LE(limit + budget.tolerated_room() + moved, mib * kMiB) << mib;
  }
  EXPECT_EQ(MemoryBudget::LimitWithin(15'000 * kMiB), 14'000 * kMiB);
  EXPECT_EQ(MemoryBudget::LimitWithin(0), MemoryBudget::kLeastLimit);
  EXPECT_EQ(MemoryBudget::LimitWithin(UINT64_MAX), UINT64_MAX / 15 * 14);
}

// A process whose pages fill their limit: the evictor keeps them at the low mark, and its slabs have no room. Then data
// is larger than memory, so records are cached, and that stays so when the pages have yielded to them.
TEST(MemoryBudgetTest, PagesThatFillTheirLimitDoNotSeemToFit) {
  const auto full = [](uint64_t limit) {
    return MemoryBudget([] { return 0; }, MemoryBudget::LimitWithin(limit)).low_mark();
  };
  for (uint64_t mib = 32; mib < 20'000; mib += mib / 16) {
    for (const uint64_t fixed : {mib * kMiB / 4, 2 * mib * kMiB}) {
      MemoryUse use;
      use.has_pages = use.has_versions = true;
      MemorySplit split;
      const auto measure = [&](uint64_t pages, uint64_t cached) {
        use.parts = {pages, 0, cached};
        use.resident = fixed + pages + cached;
        split = SplitMemory(mib * kMiB, use, split.pages_fit);
      };
      measure(0, 0);
      EXPECT_TRUE(split.pages_fit) << mib;
      measure(full(split.pages), 0);
      EXPECT_FALSE(split.pages_fit) << mib;
      for (int step = 0; step < 20; ++step) {
        measure(full(split.pages), split.cached_records);
        ASSERT_FALSE(split.pages_fit) << mib << " MiB, " << fixed << " bytes of fixed parts";
      }
      measure(0, split.cached_records);
      EXPECT_TRUE(split.pages_fit) << mib;
    }
  }
}

TEST(MemoryBudgetTest, WithoutALimitNothingIsTooMuch) {
  const MemoryBudget budget([] { return UINT64_MAX; }, 0);
  EXPECT_TRUE(budget.unlimited());
  EXPECT_FALSE(budget.IsOverHighMark());
  EXPECT_FALSE(budget.IsExceededWithout(0));
}

}  // namespace
}  // namespace deut::dc
