// SlabHeap: blocks are distinct and whole; spans and slabs are reused, drained and returned; figures; the races of the
// header; many threads.
#include "common/sync/slab_heap.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

SlabHeap::Options SmallHeap() {
  SlabHeap::Options options;
  options.reserved_bytes = 8 * SlabHeap::kGrowBytes;
  options.min_spares = 1;
  return options;
}

class SlabHeapTest : public ::testing::Test {
 protected:
  struct Block {
    char* memory = nullptr;
    size_t bytes = 0;
    char content = 0;
  };

  Block Make(size_t bytes, SlabHeap::Cache* cache = nullptr) {
    Block block{static_cast<char*>(heap_->Allocate(bytes, cache)), bytes, static_cast<char>(++made_)};
    EXPECT_NE(block.memory, nullptr);
    if (block.memory != nullptr) std::memset(block.memory, block.content, bytes);
    return block;
  }
  static bool Whole(const Block& block) {
    return std::all_of(block.memory, block.memory + block.bytes, [&](char c) { return c == block.content; });
  }
  void Free(const std::vector<Block>& blocks, SlabHeap::Cache* cache = nullptr) {
    for (const Block& block : blocks) {
      EXPECT_TRUE(Whole(block));
      heap_->Free(block.memory, cache);
    }
  }
  uint64_t slabs() const { return heap_->figures().slab_bytes / SlabHeap::kSlabBytes; }

  const std::unique_ptr<SlabHeap> heap_ = SlabHeap::Create(SmallHeap());
  SlabHeap::Cache cache_;
  int made_ = 0;
};

TEST_F(SlabHeapTest, ABlockWastesAtMostAnEighth) {
  for (size_t bytes = 288; bytes <= SlabHeap::max_bytes(); ++bytes) {
    const size_t block = SlabHeap::BlockBytes(bytes);
    ASSERT_GE(block, bytes);
    ASSERT_LE((block - bytes) * 8, block) << bytes;
  }
  EXPECT_GE(SlabHeap::max_bytes(), size_t{60} << 10);
  EXPECT_GE(SlabHeap::BlockBytes(0), sizeof(void*));
}

TEST_F(SlabHeapTest, BlocksOfAllSizesAreDistinctAndWhole) {
  for (SlabHeap::Cache* const cache : {static_cast<SlabHeap::Cache*>(nullptr), &cache_}) {
    std::vector<Block> blocks;
    for (size_t bytes = 1; bytes <= SlabHeap::max_bytes(); bytes += 1 + bytes / 9) {
      for (int i = 0; i < 20; ++i) blocks.push_back(Make(bytes, cache));
    }
    for (const Block& block : blocks) {
      EXPECT_TRUE(heap_->Owns(block.memory));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.memory) % 32, 0u);
    }
    Free(blocks, cache);
  }
  heap_->Flush(&cache_);
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
  const char elsewhere = 0;
  EXPECT_FALSE(heap_->Owns(&elsewhere));
  EXPECT_FALSE(heap_->Owns(nullptr));
}

TEST_F(SlabHeapTest, BlocksOfOneSizeFillTheirSlabs) {
  constexpr size_t kBytes = 23'000, kSlabs = 8;
  const size_t count = kSlabs * SlabHeap::kSlabBytes / SlabHeap::BlockBytes(kBytes) * 98 / 100;
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back(Make(kBytes));
  EXPECT_LE(slabs(), kSlabs);
  EXPECT_EQ(heap_->figures().used_bytes, count * SlabHeap::BlockBytes(kBytes));
  Free(blocks);
}

TEST_F(SlabHeapTest, EmptySlabsAreReturnedButForTheSpares) {
  std::vector<Block> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Make(20'000));
  const uint64_t all = slabs();
  EXPECT_GT(all, 8u);
  EXPECT_EQ(heap_->figures().slabs_returned, 0u);
  Free(blocks);
  EXPECT_EQ(slabs(), 1u);
  EXPECT_EQ(heap_->figures().spare_bytes, SlabHeap::kSlabBytes);
  EXPECT_EQ(heap_->figures().slabs_returned, all - 1);
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
}

// A slab that has become empty serves blocks of any size, and so do addresses whose memory was returned.
TEST_F(SlabHeapTest, EmptySlabsAreReusedForAnotherSize) {
  for (const size_t bytes : {size_t{20'000}, size_t{700}, size_t{5'000}, size_t{64}, size_t{20'000}}) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < 3 * SlabHeap::kGrowBytes / bytes; ++i) blocks.push_back(Make(bytes));
    EXPECT_LE(slabs() * SlabHeap::kSlabBytes, 4 * SlabHeap::kGrowBytes);
    Free(blocks);
    EXPECT_EQ(slabs(), 1u);
  }
}

// Blocks are taken from fuller spans and slabs, so that emptier ones drain.
TEST_F(SlabHeapTest, EmptierSlabsDrain) {
  Random random(17);
  std::vector<Block> blocks;
  for (int i = 0; i < 20'000; ++i) blocks.push_back(Make(1000 + random.Below(3000)));
  const auto one_out_of_place = [&] { std::swap(blocks[random.Below(blocks.size())], blocks.back()); };
  while (blocks.size() > 5000) {
    one_out_of_place();
    heap_->Free(blocks.back().memory, nullptr);
    blocks.pop_back();
  }
  const uint64_t spread = slabs();
  for (int i = 0; i < 300'000; ++i) {
    one_out_of_place();
    heap_->Free(blocks.back().memory, nullptr);
    blocks.back() = Make(1000 + random.Below(3000));
  }
  EXPECT_LT(slabs(), spread * 3 / 4);
  Free(blocks);
}

TEST_F(SlabHeapTest, WithoutAddressesAllocateReturnsNull) {
  SlabHeap::Options options;
  options.reserved_bytes = 1;  // rounded up
  const std::unique_ptr<SlabHeap> heap = SlabHeap::Create(options);
  std::vector<void*> blocks;
  for (void* block; (block = heap->Allocate(30'000, &cache_)) != nullptr;) blocks.push_back(block);
  EXPECT_GT(blocks.size() * 30'000, SlabHeap::kGrowBytes * 9 / 10);
  EXPECT_EQ(heap->Allocate(100, &cache_), nullptr) << "no span, and an empty cache";
  for (void* const block : blocks) heap->Free(block, &cache_);
  EXPECT_NE(heap->Allocate(100, nullptr), nullptr);
}

TEST_F(SlabHeapTest, ACacheKeepsFewBlocks) {
  std::vector<Block> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Make(200, &cache_));
  Free(blocks, &cache_);
  EXPECT_LE(heap_->figures().used_bytes, (SlabHeap::Cache::kMaxBlocks + 1) * SlabHeap::BlockBytes(200));
  heap_->Flush(&cache_);
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
}

TEST_F(SlabHeapTest, ApproximateFiguresAreNear) {
  std::vector<Block> blocks;
  for (int i = 0; i < 500; ++i) blocks.push_back(Make(static_cast<size_t>(100 * (1 + i)), &cache_));
  const SlabHeap::Figures exact = heap_->figures();
  const uint64_t step = SlabHeap::kMaxClasses * uint64_t{SlabHeap::kCountedStep};
  EXPECT_LE(heap_->ApproximateUsedBytes(), exact.used_bytes + step);
  EXPECT_GE(heap_->ApproximateUsedBytes() + step, exact.used_bytes);
  EXPECT_LE(heap_->ApproximateFreeBytes(), exact.slab_bytes - exact.used_bytes + step);
  Free(blocks, &cache_);
}

TEST_F(SlabHeapTest, FreedBlocksAreNotLost) {
  Random random(5);
  std::vector<Block> blocks;
  for (int i = 0; i < 4000; ++i) blocks.push_back(Make(10'000 + random.Below(20'000)));
  EXPECT_LT(heap_->ApproximateLostBytes(), heap_->figures().slab_bytes / 8);
  for (size_t i = 0; i < blocks.size() / 4; ++i) {
    std::swap(blocks[random.Below(blocks.size())], blocks.back());
    heap_->Free(blocks.back().memory, nullptr);
    blocks.pop_back();
  }
  EXPECT_GT(heap_->ApproximateFreeBytes(), heap_->figures().slab_bytes / 5);
  EXPECT_LT(heap_->ApproximateLostBytes(), heap_->figures().slab_bytes / 8);
  Free(blocks);
  EXPECT_LE(heap_->ApproximateLostBytes(), SlabHeap::kSlabBytes);
}

// One block of a span is in use, another is in a cache; both keep the span from being divided anew.
TEST_F(SlabHeapTest, ASpanWithAUsedBlockIsKept) {
  const Block kept = Make(40'000);
  const Block freed = Make(40'000);
  heap_->Free(freed.memory, nullptr);
  std::vector<Block> others;
  for (int i = 0; i < 200; ++i) others.push_back(Make(20'000));
  EXPECT_TRUE(Whole(kept)) << "other blocks lie in its memory";
}

TEST_F(SlabHeapTest, ACachedBlockKeepsItsSpan) {
  const Block cached = Make(200, &cache_);
  heap_->Free(cached.memory, &cache_);  // its neighbours are in the cache, too
  std::vector<Block> others;
  for (int i = 0; i < 2000; ++i) others.push_back(Make(1500));
  const Block again = Make(200, &cache_);
  EXPECT_EQ(again.memory, cached.memory);
  for (const Block& other : others) ASSERT_TRUE(Whole(other));
}

#ifdef DEUT_TEST_POINTS
class SlabHeapRaceTest : public SlabHeapTest {
 protected:
  ~SlabHeapRaceTest() override { testing::SetPointHandler({}); }
};

// Between the decision to return a slab and the return of its memory, another thread allocates.
TEST_F(SlabHeapRaceTest, NobodyAllocatesInASlabThatIsBeingReturned) {
  const size_t count = 3 * SlabHeap::kSlabBytes / SlabHeap::BlockBytes(60'000);
  std::vector<Block> blocks, meanwhile;
  for (size_t i = 0; i < count; ++i) blocks.push_back(Make(60'000));
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "slab_heap.before_return") return;
    // So many that the spare slab does not suffice.
    for (size_t i = 0; i < count; ++i) meanwhile.push_back(Make(50'000));
  });
  for (const Block& block : blocks) heap_->Free(block.memory, nullptr);
  testing::SetPointHandler({});
  ASSERT_FALSE(meanwhile.empty());
  for (const Block& block : meanwhile) ASSERT_TRUE(Whole(block)) << "its memory was returned";
}
#endif

// Threads allocate in all sizes, hand blocks to one another, and free them.
TEST_F(SlabHeapTest, ManyThreads) {
  constexpr int kThreads = 4, kRounds = 20'000;
  constexpr size_t kSlots = 256;
  struct Header {
    uint64_t bytes;
    uint64_t check;
  };
  std::vector<std::atomic<char*>> slots(kSlots);
  const auto verify_and_free = [&](char* memory, SlabHeap::Cache* cache) {
    Header header;
    std::memcpy(&header, memory, sizeof(header));
    uint64_t last = 0;
    std::memcpy(&last, memory + header.bytes - sizeof(last), sizeof(last));
    EXPECT_EQ(header.check, header.bytes * 31);
    EXPECT_EQ(last, header.check);
    heap_->Free(memory, cache);
  };
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.push_back(RealRuntime().StartThread("slabs", [&, t] {
        SlabHeap::Cache cache;
        Random random(static_cast<uint64_t>(t) + 1);
        for (int i = 0; i < kRounds; ++i) {
          const size_t bytes = 24 + (random.Below(2) == 0 ? random.Below(600) : random.Below(60'000));
          auto* memory = static_cast<char*>(heap_->Allocate(bytes, &cache));
          if (memory == nullptr) continue;
          const Header header{bytes, bytes * 31};
          std::memcpy(memory, &header, sizeof(header));
          std::memcpy(memory + bytes - sizeof(uint64_t), &header.check, sizeof(uint64_t));
          memory = slots[random.Below(kSlots)].exchange(memory, std::memory_order_acq_rel);
          if (memory != nullptr) verify_and_free(memory, &cache);
          // Now and then nearly everything goes, so that spans and slabs become empty.
          if (i % 2000 == 1999) {
            for (std::atomic<char*>& slot : slots) {
              char* const taken = slot.exchange(nullptr, std::memory_order_acq_rel);
              if (taken != nullptr) verify_and_free(taken, &cache);
            }
          }
        }
        heap_->Flush(&cache);
      }));
    }
  }
  for (std::atomic<char*>& slot : slots) {
    char* const left = slot.load();
    if (left != nullptr) verify_and_free(left, nullptr);
  }
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
  EXPECT_EQ(slabs(), 1u);
}

}  // namespace
}  // namespace deut
