#include "common/runtime/process_memory.h"

#include <cstring>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "common/runtime/jemalloc.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define DEUT_OTHER_ALLOCATOR
#endif
#endif

#ifndef DEUT_OTHER_ALLOCATOR
TEST(ProcessMemoryTest, FreedPiecesBetweenKeptOnesAreGivenBack) {
  constexpr size_t kPieces = 2000;
  constexpr size_t kBytes = 64 << 10;
  const uint64_t before = ResidentBytes();
  ASSERT_GT(before, 0u);
  std::vector<std::unique_ptr<char[]>> pieces;
  std::vector<std::unique_ptr<char[]>> kept;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces.push_back(std::make_unique<char[]>(kBytes));
    std::memset(pieces.back().get(), 1, kBytes);
    kept.push_back(std::make_unique<char[]>(64));
  }
  const uint64_t full = ResidentBytes();
  EXPECT_GT(full, before + kPieces * kBytes / 2);
  pieces.clear();
  ReturnFreedMemory();
  EXPECT_LT(ResidentBytes(), full - kPieces * kBytes / 2);
}

TEST(ProcessMemoryTest, WhatAnIdleThreadHasFreedIsGivenBackAfterAWhile) {
  if (!HeapOfJemalloc()) GTEST_SKIP() << "the heap is not jemalloc";
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
    over.wait();  // its arena stays, and nothing happens in it
  });
  freed.wait();
  // The test's time limit is the bound: the thread itself never returns anything any more.
  while (ResidentBytes() > full - kPieces * kBytes / 2) {
    ReturnMemoryFreedLongAgo();
    std::this_thread::yield();
  }
  over.count_down();
  idle.join();
}
#endif

}  // namespace
}  // namespace deut
