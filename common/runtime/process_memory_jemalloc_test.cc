// The memory that jemalloc keeps until its decay time is over. BUILD sets that time to 200 ms here.
#include <cstring>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "common/runtime/jemalloc.h"
#include "common/runtime/process_memory.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(ProcessMemoryTest, WhatAnIdleThreadHasFreedIsGivenBackAfterAWhile) {
  ASSERT_TRUE(HeapOfJemalloc());
  constexpr size_t kPieces = 500;
  constexpr size_t kBytes = 256 << 10;
  std::latch freed(1);
  std::latch over(1);
  uint64_t full = 0;
  std::thread idle([&] {
    std::vector<std::unique_ptr<char[]>> pieces;
    for (size_t i = 0; i < kPieces; ++i) {
      pieces.push_back(std::make_unique<char[]>(kBytes));
      std::memset(pieces.back().get(), 1, kBytes);
    }
    full = ResidentBytes();
    pieces.clear();
    freed.count_down();
    over.wait();  // the thread's arena stays, and nothing happens in it
  });
  freed.wait();
  // Without the call the loop never ends, and the test runs into its time limit.
  while (ResidentBytes() > full - kPieces * kBytes / 2) {
    ReturnMemoryFreedLongAgo();
    std::this_thread::yield();
  }
  over.count_down();
  idle.join();
}

TEST(ProcessMemoryTest, RoomIsWhatFreedSmallObjectsLeaveBetweenOthers) {
  constexpr size_t kObjects = 100'000;
  constexpr size_t kBytes = 160;
  const HeapFigures before = FiguresOfHeap();
  std::vector<std::unique_ptr<char[]>> objects;
  for (size_t i = 0; i < kObjects; ++i) objects.push_back(std::make_unique<char[]>(kBytes));
  const HeapFigures full = FiguresOfHeap();
  EXPECT_GE(full.used, before.used + kObjects * kBytes);
  for (size_t i = 0; i < kObjects; ++i) {
    if (i % 8 != 0) objects[i].reset();
  }
  const HeapFigures thin = FiguresOfHeap();
  EXPECT_LE(thin.used, full.used - kObjects * kBytes / 2);
  EXPECT_GE(thin.room, full.room + kObjects * kBytes / 2);
  EXPECT_GT(thin.own, 0u);
}

}  // namespace
}  // namespace deut
