// SlabHeap: blocks are distinct and whole; spans and slabs are reused, drained and returned; a system that refuses;
// figures; the races of the header; many threads. SlabDrain.
#include "common/sync/slab_heap.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/slab_drain.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

SlabHeap::Options SmallHeap() {
  SlabHeap::Options options;
  options.reserved_bytes = 8 * SlabHeap::kGrowBytes;
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

TEST_F(SlabHeapTest, EachClassHoldsItsOwnSizeAndTheNextByteNeedsTheNextClass) {
  std::vector<Block> blocks;
  size_t classes = 0;
  for (size_t bytes = 0; bytes <= SlabHeap::max_bytes(); ++classes) {
    const size_t block = SlabHeap::BlockBytes(bytes);
    EXPECT_EQ(SlabHeap::BlockBytes(block), block);
    for (SlabHeap::Cache* const cache : {static_cast<SlabHeap::Cache*>(nullptr), &cache_}) {
      for (int i = 0; i < 3; ++i) blocks.push_back(Make(block, cache));
      blocks.push_back(Make(bytes, cache));
    }
    bytes = block + 1;
  }
  EXPECT_EQ(classes, SlabHeap::kClassCount);
  Free(blocks);
  heap_->Flush(&cache_);
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
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
  EXPECT_GT(slabs(), 8u);
  Free(blocks);
  EXPECT_EQ(slabs(), 1u);
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
}

// The spares that were kept for the slabs in use leave when these are fewer.
TEST(SlabHeapSparesTest, SparesAreReturnedWhenFewerSlabsAreInUse) {
  constexpr size_t kSpares = 3, kSlabs = (kSpares + 1) * SlabPool::kSlabsPerSpare;
  SlabHeap::Options options;
  options.reserved_bytes = kSlabs * SlabHeap::kSlabBytes;
  const std::unique_ptr<SlabHeap> heap = SlabHeap::Create(options);
  std::map<uintptr_t, std::vector<void*>> blocks;  // by slab
  for (void* block; (block = heap->Allocate(60'000, nullptr)) != nullptr;)
    blocks[reinterpret_cast<uintptr_t>(block) / SlabHeap::kSlabBytes].push_back(block);
  ASSERT_EQ(heap->figures().slab_bytes, kSlabs * SlabHeap::kSlabBytes);
  size_t freed = 0;
  for (const auto& [slab, of_slab] : blocks) {
    for (void* const block : of_slab) heap->Free(block, nullptr);
    if (++freed == kSpares) EXPECT_EQ(heap->figures().slab_bytes, kSlabs * SlabHeap::kSlabBytes);
  }
  EXPECT_EQ(heap->figures().slab_bytes, SlabHeap::kSlabBytes);
}

// The blocks of a cache are the last of several spans and slabs; one flush empties them all.
TEST_F(SlabHeapTest, AFlushEmptiesSeveralSlabs) {
  // Blocks of 2,000 bytes: 32 of a span, 1,000 of a slab. Eight are cached.
  std::vector<Block> blocks;
  for (int i = 0; i < 5000; ++i) blocks.push_back(Make(2000));
  std::vector<Block> cached;
  for (size_t i = 0; i < blocks.size(); i += 1000) cached.push_back(blocks[i]);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 1000 != 0) heap_->Free(blocks[i].memory, nullptr);
  }
  for (const Block& block : cached) heap_->Free(block.memory, &cache_);
  EXPECT_GT(slabs(), 3u);
  heap_->Flush(&cache_);
  EXPECT_EQ(slabs(), 1u);
  EXPECT_EQ(heap_->figures().used_bytes, 0u);
}

// A slab that has become empty serves blocks of any size, and so do addresses whose memory was returned.
TEST_F(SlabHeapTest, EmptySlabsAreReusedForAnotherSize) {
  for (const size_t bytes : {size_t{20'000}, size_t{700}, size_t{5'000}, size_t{256}, size_t{20'000}}) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < SlabHeap::kGrowBytes / bytes; ++i) blocks.push_back(Make(bytes));
    EXPECT_LE(slabs() * SlabHeap::kSlabBytes, 2 * SlabHeap::kGrowBytes);
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

TEST_F(SlabHeapTest, FiguresAreExact) {
  std::vector<Block> blocks;
  uint64_t used = 0;
  for (size_t i = 0; i < 500; ++i) {
    const size_t bytes = 100 * (1 + i);
    blocks.push_back(Make(bytes, &cache_));
    used += SlabHeap::BlockBytes(bytes);
  }
  heap_->Flush(&cache_);
  EXPECT_EQ(heap_->used_bytes(), used);
  EXPECT_EQ(heap_->free_bytes(), heap_->figures().slab_bytes - used);
  Free(blocks, &cache_);
  heap_->Flush(&cache_);
  EXPECT_EQ(heap_->used_bytes(), 0u);
  EXPECT_EQ(heap_->free_bytes(), heap_->figures().slab_bytes);
}

TEST_F(SlabHeapTest, ACacheKeepsAtMostTheStatedBytes) {
  std::vector<Block> blocks;
  for (size_t bytes = 32; bytes <= SlabHeap::Cache::kMaxBytes; bytes += 32) {
    for (int i = 0; i < 100; ++i) blocks.push_back(Make(bytes, &cache_));
  }
  Free(blocks, &cache_);
  EXPECT_GT(heap_->used_bytes(), SlabHeap::max_cached_bytes() / 3);
  EXPECT_LE(heap_->used_bytes(), SlabHeap::max_cached_bytes());
  EXPECT_LE(SlabHeap::max_cached_bytes(), 512u << 10);
  heap_->Flush(&cache_);
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

class SlabDrainTest : public SlabHeapTest {
 protected:
  // Fills slabs with blocks of these bytes, and keeps one block out of `each`.
  std::vector<Block> Thin(size_t bytes, size_t number, size_t each) {
    std::vector<Block> kept;
    std::vector<Block> blocks;
    for (size_t i = 0; i < number; ++i) blocks.push_back(Make(bytes));
    for (size_t i = 0; i < number; ++i) {
      if (i % each == 0) {
        kept.push_back(blocks[i]);
      } else {
        heap_->Free(blocks[i].memory, nullptr);
      }
    }
    return kept;
  }
  // Moves the blocks that lie in draining slabs, and returns their bytes.
  uint64_t Move(std::vector<Block>* blocks) {
    uint64_t moved = 0;
    for (Block& block : *blocks) {
      if (!heap_->IsDraining(block.memory)) continue;
      const Block other = Make(block.bytes);
      EXPECT_FALSE(heap_->IsDraining(other.memory));
      EXPECT_TRUE(Whole(block));
      heap_->Free(block.memory, nullptr);
      block = other;
      moved += SlabHeap::BlockBytes(block.bytes);
    }
    return moved;
  }
};

TEST_F(SlabDrainTest, ThinSlabsAreEmptiedAndReturned) {
  std::vector<Block> blocks = Thin(23'000, size_t{88} * 40, /*each=*/10);
  const uint64_t before = slabs();
  ASSERT_GT(before, 35u);
  {
    const SlabDrain drain(*heap_, 20 * SlabHeap::kSlabBytes);
    // A tenth of each slab is used. So for ten slabs that become empty, the bytes of one slab are moved.
    EXPECT_LE(Move(&blocks), 20 * SlabHeap::kSlabBytes / 8);
    EXPECT_LE(slabs(), before - 19);
  }
  Free(blocks);
}

TEST_F(SlabDrainTest, TheThinnestSlabsAreChosen) {
  std::vector<Block> thin = Thin(23'000, size_t{88} * 10, /*each=*/20);
  std::vector<Block> full;
  for (int i = 0; i < 88 * 20; ++i) full.push_back(Make(60'000));
  const SlabDrain drain(*heap_, 5 * SlabHeap::kSlabBytes);
  for (const Block& block : full) EXPECT_FALSE(heap_->IsDraining(block.memory));
  EXPECT_GT(std::ranges::count_if(thin, [&](const Block& block) { return heap_->IsDraining(block.memory); }), 10);
  Free(thin);
  Free(full);
}

// All sizes and spans of the class lie in draining slabs, so a new slab is taken.
TEST_F(SlabDrainTest, NoBlockIsTakenFromADrainingSlabWhileThereIsOtherMemory) {
  std::vector<Block> blocks = Thin(23'000, size_t{88} * 4, /*each=*/3);
  std::vector<Block> small = Thin(500, 20'000, /*each=*/2);
  const SlabDrain drain(*heap_, slabs() * SlabHeap::kSlabBytes);
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(Make(23'000));
    small.push_back(Make(500));
    ASSERT_FALSE(heap_->IsDraining(blocks.back().memory));
    ASSERT_FALSE(heap_->IsDraining(small.back().memory));
  }
  Free(blocks);
  Free(small);
}

TEST_F(SlabDrainTest, AfterADrainItsSlabsAreFilledAgain) {
  std::vector<Block> blocks = Thin(23'000, size_t{88} * 10, /*each=*/2);
  const uint64_t before = slabs();
  {
    const SlabDrain drain(*heap_, before * SlabHeap::kSlabBytes);
    blocks.push_back(Make(23'000));  // moves spans to the list of draining ones
  }
  for (const Block& block : blocks) EXPECT_FALSE(heap_->IsDraining(block.memory));
  for (int i = 0; i < 88 * 4; ++i) blocks.push_back(Make(23'000));
  EXPECT_LE(slabs(), before + 1) << "the holes are filled, and the span that was new during the drain";
  Free(blocks);
  EXPECT_EQ(slabs(), 1u);
}

TEST_F(SlabDrainTest, ASlabIsMarkedByOneDrain) {
  std::vector<Block> blocks = Thin(23'000, size_t{88} * 4, /*each=*/3);
  const auto draining = [&] {
    return std::ranges::count_if(blocks, [&](const Block& block) { return heap_->IsDraining(block.memory); });
  };
  {
    const SlabDrain first(*heap_, SlabHeap::kSlabBytes);
    const auto marked = draining();
    EXPECT_GT(marked, 0);
    {
      const SlabDrain second(*heap_, slabs() * SlabHeap::kSlabBytes);
      EXPECT_EQ(draining(), static_cast<ptrdiff_t>(blocks.size()));
    }
    EXPECT_EQ(draining(), marked) << "the second one takes back only its own marks";
  }
  EXPECT_EQ(draining(), 0);
  Free(blocks);
  EXPECT_EQ(slabs(), 1u);
}

TEST_F(SlabDrainTest, WithoutOtherMemoryBlocksComeFromDrainingSlabs) {
  SlabHeap::Options options = SmallHeap();
  options.reserved_bytes = 1;  // rounded up
  const std::unique_ptr<SlabHeap> heap = SlabHeap::Create(options);
  std::vector<void*> blocks;
  for (void* block; (block = heap->Allocate(30'000, nullptr)) != nullptr;) blocks.push_back(block);
  for (size_t i = 0; i < blocks.size(); i += 2) heap->Free(blocks[i], nullptr);
  const SlabDrain drain(*heap, SlabHeap::kGrowBytes);
  EXPECT_NE(heap->Allocate(30'000, nullptr), nullptr);
}

#ifdef DEUT_TEST_POINTS
// The test decides whether the system refuses.
class SlabHeapRefusalTest : public SlabHeapTest {
 protected:
  SlabHeapRefusalTest() {
    testing::SetCasHandler([this](std::string_view name) {
      if (name != point_) return false;
      ++asked_;
      return true;
    });
  }
  ~SlabHeapRefusalTest() override { testing::SetCasHandler({}); }

  std::string_view point_;
  int asked_ = 0;
};

TEST_F(SlabHeapRefusalTest, ARefusedGrowthIsNotRepeatedAtEachAllocation) {
  point_ = "slab_tables.open";
  EXPECT_EQ(heap_->Allocate(60'000, nullptr), nullptr);
  EXPECT_EQ(asked_, 2) << "for several slabs, and for one";
  for (uint32_t i = 0; i < SlabPool::kUnaskedGrowths; ++i) EXPECT_EQ(heap_->Allocate(60'000, nullptr), nullptr);
  EXPECT_EQ(asked_, 2);
  point_ = {};
  const Block block = Make(60'000);
  EXPECT_EQ(heap_->figures().slab_bytes, SlabHeap::kSlabBytes);
  Free({block});
}

TEST_F(SlabHeapRefusalTest, WhereTheSystemRefusesSlabsThatBecameEmptyAreUsed) {
  std::vector<void*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(heap_->Allocate(60'000, nullptr));
  point_ = "slab_tables.open";
  for (void* block; (block = heap_->Allocate(60'000, nullptr)) != nullptr;) blocks.push_back(block);
  EXPECT_GT(asked_, 0);
  for (void* const block : blocks) heap_->Free(block, nullptr);
  const Block other = Make(1000);
  Free({other});
}

TEST_F(SlabHeapRefusalTest, MemoryThatTheSystemDoesNotTakeBackIsStillCounted) {
  std::vector<Block> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Make(20'000));
  const uint64_t before = slabs();
  point_ = "slab_tables.return";
  Free(blocks);
  EXPECT_EQ(slabs(), before);
  // They are used again, and do not count twice.
  std::vector<Block> again;
  for (int i = 0; i < 1000; ++i) again.push_back(Make(20'000));
  EXPECT_EQ(slabs(), before);
  Free(again);
}

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

// A block that was never used is first touched by the thread that refills its cache. That may be a page fault, so the
// other threads' mutex must be free by then.
TEST_F(SlabHeapRaceTest, ARefillTouchesItsBlocksOutsideTheMutex) {
  bool passed = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "slab_heap.before_link" || std::exchange(passed, true)) return;
    // It would wait for ever if this thread held the mutex.
    RealRuntime().StartThread("other", [&] { heap_->Free(heap_->Allocate(200, nullptr), nullptr); })->Join();
  });
  const Block block = Make(200, &cache_);
  testing::SetPointHandler({});
  EXPECT_TRUE(passed);
  heap_->Free(block.memory, &cache_);
  heap_->Flush(&cache_);
}
#endif

// Threads allocate in all sizes, hand blocks to one another, and free them.
TEST_F(SlabHeapTest, ManyThreads) {
  constexpr int kThreads = 4, kRounds = 20'000;
  constexpr size_t kSlots = 2000;
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
