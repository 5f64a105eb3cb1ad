// BlockPool: a freed block comes back to its thread, and through the depot to other threads; limits; threads that
// end.
#include "common/sync/block_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/magazine_stack.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Blocks = std::vector<void*>;

Blocks Allocate(size_t count, size_t bytes) {
  Blocks blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back(BlockPool::Allocate(bytes));
    std::memset(blocks.back(), static_cast<int>(i), bytes);
  }
  return blocks;
}

void Free(const Blocks& blocks, size_t bytes) {
  for (void* const block : blocks) BlockPool::Free(block, bytes);
}

void InAThread(const std::function<void()>& body) { RealRuntime().StartThread("pool", body)->Join(); }

TEST(BlockPoolTest, BlocksInUseAreDistinctAndWhole) {
  for (const size_t bytes :
       {size_t{1}, size_t{24}, size_t{32}, size_t{33}, BlockPool::kMaxBytes, BlockPool::kMaxBytes + 1}) {
    Blocks blocks = Allocate(200, bytes);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto* const block = static_cast<const unsigned char*>(blocks[i]);
      EXPECT_TRUE(
          std::all_of(block, block + bytes, [&](unsigned char c) { return c == static_cast<unsigned char>(i); }));
    }
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    Free(blocks, bytes);
  }
}

TEST(BlockPoolTest, DepotsAreCounted) {
  ASSERT_TRUE(BlockPool::enabled());
  const size_t before = BlockPool::DepotBytes();
  // No other test here uses this size. The thread leaves all blocks to the depot when it ends.
  InAThread([] { Free(Allocate(size_t{10} * Magazine::kBlocks, 600), 600); });
  EXPECT_EQ(BlockPool::DepotBytes() - before, 10 * Magazine::kBlocks * 608);
}

TEST(BlockPoolTest, FreedBlocksAreReused) {
  ASSERT_TRUE(BlockPool::enabled());
  InAThread([] {
    const Blocks first = Allocate(size_t{2} * Magazine::kBlocks, 96);
    Free(first, 96);
    Blocks again = Allocate(size_t{2} * Magazine::kBlocks, 96);
    EXPECT_EQ(std::set<void*>(again.begin(), again.end()), std::set<void*>(first.begin(), first.end()));
    Free(again, 96);
  });
}

// Full magazines that one thread frees, and the magazines it still has when it ends, reach another thread.
TEST(BlockPoolTest, BlocksGoFromThreadToThread) {
  constexpr size_t kBytes = 200, kCount = 10 * Magazine::kBlocks + 7;
  Blocks made;
  InAThread([&] { made = Allocate(kCount, kBytes); });
  const size_t before = BlockPool::DepotMagazines(kBytes);
  InAThread([&] { Free(made, kBytes); });
  EXPECT_GE(BlockPool::DepotMagazines(kBytes), before + 10);
  InAThread([&] {
    const Blocks again = Allocate(kCount, kBytes);
    EXPECT_EQ(std::set<void*>(again.begin(), again.end()), std::set<void*>(made.begin(), made.end()));
    Free(again, kBytes);
  });
}

TEST(BlockPoolTest, ADepotKeepsNoMoreThanItsLimit) {
  constexpr size_t kBytes = 512, kCount = 4 * BlockPool::kDepotBytes / kBytes;
  const Blocks blocks = Allocate(kCount, kBytes);
  Free(blocks, kBytes);
  EXPECT_LE(BlockPool::DepotMagazines(kBytes) * Magazine::kBlocks * kBytes,
            BlockPool::kDepotBytes + Magazine::kBlocks * kBytes);
  EXPECT_GE(BlockPool::DepotMagazines(kBytes) * Magazine::kBlocks * kBytes, BlockPool::kDepotBytes / 2);
}

// One thread allocates and another frees, concurrently. The allocating thread owns each block until it has handed it
// over.
TEST(BlockPoolTest, OneThreadMakesAndAnotherFrees) {
  constexpr size_t kSlots = 64;
  constexpr uint64_t kObjects = 100'000;
  std::vector<std::atomic<uint64_t*>> slots(kSlots);
  const auto maker = RealRuntime().StartThread("maker", [&] {
    for (uint64_t i = 0; i < kObjects; ++i) {
      auto* const object = new (BlockPool::Allocate(sizeof(uint64_t))) uint64_t(i);
      while (slots[i % kSlots].load(std::memory_order_acquire) != nullptr) RealRuntime().Yield();
      slots[i % kSlots].store(object, std::memory_order_release);
    }
  });
  for (uint64_t i = 0; i < kObjects; ++i) {
    uint64_t* object = nullptr;
    while ((object = slots[i % kSlots].exchange(nullptr, std::memory_order_acq_rel)) == nullptr) RealRuntime().Yield();
    ASSERT_EQ(*object, i);
    BlockPool::Free(object, sizeof(uint64_t));
  }
}

}  // namespace
}  // namespace deut
