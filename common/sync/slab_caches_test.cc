// SlabCaches: a thread's cache is flushed by another thread while its owner does not use it, and never while it does.
#include "common/sync/slab_caches.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/slab_heap.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class SlabCachesTest : public ::testing::Test {
 protected:
  static std::unique_ptr<SlabHeap> NewHeap() {
    SlabHeap::Options options;
    options.reserved_bytes = 8 * SlabHeap::kGrowBytes;
    return SlabHeap::Create(options);
  }
  uint64_t used() const { return heap_->figures().used_bytes; }
  uint64_t slabs() const { return heap_->figures().slab_bytes / SlabHeap::kSlabBytes; }

  const std::unique_ptr<SlabHeap> heap_ = NewHeap();
  SlabCaches caches_{*heap_};
};

// The blocks that an idle thread keeps lie all over the heap, and each one holds a slab back.
TEST_F(SlabCachesTest, AnIdleThreadHoldsNoSlabBack) {
  Event freed;
  Event end;
  const auto thread = RealRuntime().StartThread("idle", [&] {
    SlabCaches::Member* const cache = caches_.Join();
    std::vector<void*> blocks;
    for (int i = 0; i < 100'000; ++i) blocks.push_back(caches_.Allocate(300, cache));
    Random random(1);
    for (size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random.Below(i)]);
    for (void* const block : blocks) caches_.Free(block, cache);
    freed.Signal(RealRuntime());
    end.Wait(RealRuntime(), kNoDeadline);
    caches_.Leave(cache);
  });
  freed.Wait(RealRuntime(), kNoDeadline);
  EXPECT_GT(used(), 0u);
  EXPECT_GT(slabs(), 3u);
  caches_.FlushIdle();  // the first look
  caches_.FlushIdle();
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(slabs(), 1u);
  end.Signal(RealRuntime());
}

TEST_F(SlabCachesTest, OnlyCachesWithoutUseSinceTheLastLookAreIdle) {
  SlabCaches::Member* const cache = caches_.Join();
  caches_.FlushIdle();
  caches_.Free(caches_.Allocate(300, cache), cache);
  caches_.FlushIdle();
  EXPECT_GT(used(), 0u);
  caches_.FlushIdle();
  EXPECT_EQ(used(), 0u);
  caches_.Free(caches_.Allocate(300, cache), cache);
  caches_.FlushAll();
  EXPECT_EQ(used(), 0u);
  caches_.Leave(cache);
}

TEST_F(SlabCachesTest, AThreadThatLeavesKeepsNothing) {
  SlabCaches::Member* const cache = caches_.Join();
  SlabCaches::Member* const other = caches_.Join();
  caches_.Free(caches_.Allocate(300, cache), cache);
  caches_.Leave(cache);
  EXPECT_EQ(used(), 0u);
  caches_.Free(caches_.Allocate(300, other), other);
  caches_.FlushAll();
  EXPECT_EQ(used(), 0u);
  caches_.Leave(other);
}

#ifdef DEUT_TEST_POINTS
class SlabCachesRaceTest : public SlabCachesTest {
 protected:
  ~SlabCachesRaceTest() override { testing::SetPointHandler({}); }
};

// While another thread has the lock of a cache to flush it, its owner frees a block and allocates one.
TEST_F(SlabCachesRaceTest, AnOwnerWhoseCacheIsBeingFlushedDoesWithout) {
  SlabCaches::Member* const cache = caches_.Join();
  void* block = caches_.Allocate(300, cache);
  const size_t bytes = SlabHeap::BlockBytes(300);
  bool passed = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "slab_caches.before_flush") return;
    passed = true;
    const uint64_t before = used();
    caches_.Free(block, cache);
    EXPECT_EQ(used(), before - bytes) << "the block went into a cache that another thread uses";
    block = caches_.Allocate(300, cache);
    EXPECT_EQ(used(), before) << "the block came from a cache that another thread uses";
  });
  caches_.FlushAll();
  testing::SetPointHandler({});
  EXPECT_TRUE(passed);
  EXPECT_EQ(used(), bytes);
  caches_.Free(block, cache);
  caches_.Leave(cache);
}

// While the owner refills its cache, another thread flushes all caches.
TEST_F(SlabCachesRaceTest, AFlushSkipsACacheThatItsOwnerUses) {
  SlabCaches::Member* const cache = caches_.Join();
  SlabCaches::Member* const other = caches_.Join();
  caches_.Free(caches_.Allocate(300, cache), cache);
  caches_.Free(caches_.Allocate(300, other), other);
  bool passed = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "slab_heap.before_link") return;
    passed = true;
    const uint64_t before = used();
    caches_.FlushAll();
    EXPECT_LT(used(), before) << "the other cache is flushed";
    EXPECT_GE(used(), before / 2) << "the cache that is in use keeps its blocks";
  });
  void* const block = caches_.Allocate(200, cache);
  testing::SetPointHandler({});
  EXPECT_TRUE(passed);
  caches_.Free(block, cache);
  caches_.FlushAll();
  EXPECT_EQ(used(), 0u);
  caches_.Leave(cache);
  caches_.Leave(other);
}
#endif

// Threads use their caches while another thread flushes them again and again.
TEST_F(SlabCachesTest, ManyThreadsAndFlushes) {
  constexpr int kThreads = 3, kRounds = 50'000;
  std::atomic<int> running{kThreads};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(RealRuntime().StartThread("caches", [&, t] {
      SlabCaches::Member* const cache = caches_.Join();
      Random random(static_cast<uint64_t>(t) + 1);
      std::vector<std::pair<uint64_t*, uint64_t>> blocks(64);
      for (int i = 0; i < kRounds; ++i) {
        auto& [block, content] = blocks[random.Below(blocks.size())];
        if (block != nullptr) {
          EXPECT_EQ(*block, content);
          caches_.Free(block, cache);
        }
        block = static_cast<uint64_t*>(caches_.Allocate(16 + random.Below(1000), cache));
        content = random.Next();
        *block = content;
      }
      for (const auto& [block, content] : blocks) {
        if (block != nullptr) caches_.Free(block, cache);
      }
      caches_.Leave(cache);
      running.fetch_sub(1);
    }));
  }
  while (running.load() != 0) {
    caches_.FlushAll();
    caches_.FlushIdle();
  }
  threads.clear();
  EXPECT_EQ(used(), 0u);
}

}  // namespace
}  // namespace deut
