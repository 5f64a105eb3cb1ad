#include "dc/bwtree/page_arena.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/process_memory.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr size_t kMost = PageArena::kMostBytes;

size_t AnySize(Random* random) { return random->Between(PageArena::kLeastBytes + 1, kMost); }

TEST(PageArenaTest, APlaceIsNotMuchLargerThanWhatItIsFor) {
  for (size_t bytes = PageArena::kLeastBytes + 1; bytes <= kMost; ++bytes) {
    ASSERT_GE(PageArena::PlaceBytes(bytes), bytes);
    ASSERT_LE(PageArena::PlaceBytes(bytes), bytes + bytes / 15 + 64) << bytes;
  }
}

TEST(PageArenaTest, OtherSizesAreNotForIt) {
  const auto arena = PageArena::Create(64 << 20);
  ASSERT_NE(arena, nullptr);
  EXPECT_EQ(arena->Allocate(PageArena::kLeastBytes), nullptr);
  EXPECT_EQ(arena->Allocate(kMost + 1), nullptr);
  int outside = 0;
  EXPECT_FALSE(arena->Owns(&outside));
  EXPECT_FALSE(arena->Owns(nullptr));
}

TEST(PageArenaTest, PlacesDoNotOverlapAndKeepWhatIsInThem) {
  const auto arena = PageArena::Create(256 << 20);
  Random random(1);
  struct Held {
    char* place;
    size_t bytes;
    char mark;
  };
  std::vector<Held> held;
  for (int i = 0; i < 20000; ++i) {
    if (held.size() < 1000 || random.OneIn(2)) {
      const size_t bytes = AnySize(&random);
      char* const place = static_cast<char*>(arena->Allocate(bytes));
      ASSERT_NE(place, nullptr);
      ASSERT_TRUE(arena->Owns(place) && arena->Owns(place + bytes - 1));
      const char mark = static_cast<char>(random.Next());
      // The ends are where neighbours would meet.
      std::memset(place, mark, 64);
      std::memset(place + bytes - 64, mark, 64);
      held.push_back({place, bytes, mark});
    } else {
      std::swap(held[random.Below(held.size())], held.back());
      const Held last = held.back();
      held.pop_back();
      for (const size_t at : {size_t{0}, size_t{63}, last.bytes - 64, last.bytes - 1}) {
        ASSERT_EQ(last.place[at], last.mark);
      }
      arena->Free(last.place, last.bytes);
    }
    if (i % 5000 == 0) (void)arena->ReturnFree();
  }
}

TEST(PageArenaTest, FreedPlacesAreUsedAgainAndTheEndIsTold) {
  const auto arena = PageArena::Create(8 << 20);  // of which one block is never used
  std::vector<void*> places;
  while (void* const place = arena->Allocate(kMost)) places.push_back(place);
  EXPECT_EQ(places.size(), 3 * (PageArena::kBlockBytes / PageArena::PlaceBytes(kMost)));
  EXPECT_EQ(arena->Allocate(5000), nullptr);  // no more blocks, for any class
  for (void* const place : places) arena->Free(place, kMost);
  std::vector<void*> again;
  while (void* const place = arena->Allocate(kMost)) again.push_back(place);
  std::sort(places.begin(), places.end());
  std::sort(again.begin(), again.end());
  EXPECT_EQ(places, again);
}

TEST(PageArenaTest, MemoryOfFreePlacesGoesBackToTheSystem) {
  constexpr size_t kPlaces = 4000;
  const auto arena = PageArena::Create(512 << 20);
  std::vector<void*> places;
  for (size_t i = 0; i < kPlaces; ++i) {
    places.push_back(arena->Allocate(30000));
    std::memset(places.back(), 1, 30000);
  }
  const uint64_t full = ResidentBytes();
  // All but one in ten, so that no block is empty.
  for (size_t i = 0; i < kPlaces; ++i) {
    if (i % 10 != 0) arena->Free(places[i], 30000);
  }
  EXPECT_GT(arena->ReturnFree(), kPlaces * 9 / 10 * 24000);
  EXPECT_EQ(arena->ReturnFree(), 0u);
  EXPECT_LT(ResidentBytes() + kPlaces * 9 / 10 * 20000, full);
  for (size_t i = 0; i < kPlaces; i += 10) EXPECT_EQ(static_cast<char*>(places[i])[29999], 1);
  // They can be used again before a new block is taken; of the last one some were never used.
  size_t others = 0;
  for (size_t i = 0; i < kPlaces * 9 / 10; ++i) {
    void* const place = arena->Allocate(30000);
    ASSERT_NE(place, nullptr);
    others += std::find(places.begin(), places.end(), place) == places.end() ? 1 : 0;
    std::memset(place, 2, 30000);
  }
  EXPECT_LT(others, PageArena::kBlockBytes / 30000);
  for (size_t i = 0; i < kPlaces; i += 10) EXPECT_EQ(static_cast<char*>(places[i])[29999], 1);
}

// Every thread marks its places; whoever gets one that another still holds sees the mark change.
TEST(PageArenaTest, NoPlaceIsGivenToTwoThreads) {
  const auto arena = PageArena::Create(256 << 20);
  std::atomic<uint32_t> tries{0};
  testing::SetCasHandler([&tries](std::string_view) { return tries.fetch_add(1, std::memory_order_relaxed) % 5 == 0; });
  std::atomic<bool> overlap{false};
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t id = 1; id <= 4; ++id) {
    threads.push_back(RealRuntime().StartThread("arena", [&arena, &overlap, id] {
      Random random(id);
      std::vector<std::pair<char*, size_t>> held;
      for (int i = 0; i < 20000; ++i) {
        const size_t bytes = random.OneIn(2) ? 20000 : 21000;  // few classes: the same stacks
        char* const place = static_cast<char*>(arena->Allocate(bytes));
        if (place == nullptr) {
          overlap.store(true);
          return;
        }
        std::memset(place, static_cast<int>(id), 128);
        held.emplace_back(place, bytes);
        if (held.size() < 8) continue;
        const auto [oldest, size] = held.front();
        held.erase(held.begin());
        if (std::count(oldest, oldest + 128, static_cast<char>(id)) != 128) overlap.store(true);
        arena->Free(oldest, size);
        if (id == 1 && i % 1000 == 0) (void)arena->ReturnFree();
      }
    }));
  }
  for (const auto& thread : threads) thread->Join();
  testing::SetCasHandler(nullptr);
  EXPECT_FALSE(overlap.load());
}

}  // namespace
}  // namespace deut::dc
