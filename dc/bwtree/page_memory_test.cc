// PageMemory: nodes of all sizes; threads that end, and threads that are idle; the bytes that a component counts;
// limits of the process.
#include "dc/bwtree/page_memory.h"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/slab_heap.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

void InAThread(const std::function<void()>& body) { RealRuntime().StartThread("nodes", body)->Join(); }

TEST(PageMemoryTest, NodesOfAllSizes) {
  PageMemory::Free(nullptr);
  const PageMemory::Figures before = PageMemory::figures();
  std::vector<void*> nodes;
  for (const size_t bytes : {size_t{0}, size_t{64}, size_t{500}, size_t{20'000}, SlabHeap::max_bytes(),
                             SlabHeap::max_bytes() + 1, size_t{5'000'000}}) {
    nodes.push_back(PageMemory::Allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(nodes.back()) % PageMemory::kAlignment, 0u);
    std::memset(nodes.back(), 7, bytes);
    EXPECT_GE(PageMemory::BytesOf(bytes), bytes);
  }
  EXPECT_EQ(PageMemory::BytesOf(5'000'000), 5'000'000u);
  const PageMemory::Figures with = PageMemory::figures();
  EXPECT_GE(with.used_bytes, before.used_bytes + 20'000);
  EXPECT_LT(with.used_bytes, before.used_bytes + 5'000'000) << "large ones are the heap's";
  EXPECT_GE(with.slab_bytes, with.used_bytes);
  for (void* const node : nodes) PageMemory::Free(node);
}

TEST(PageMemoryTest, AThreadThatEndsKeepsNothing) {
  const uint64_t before = PageMemory::figures().used_bytes;
  std::vector<void*> nodes;
  InAThread([&] {
    for (int i = 0; i < 1000; ++i) nodes.push_back(PageMemory::Allocate(300));
  });
  InAThread([&] {
    for (void* const node : nodes) PageMemory::Free(node);
  });
  EXPECT_EQ(PageMemory::figures().used_bytes, before);
}

// An object of its thread is destroyed after the thread's cache, if it was made before it.
TEST(PageMemoryTest, ThreadLocalObjectsMayFreeNodesLast) {
  struct Late {
    void* node = nullptr;
    ~Late() {
      PageMemory::Free(node);
      PageMemory::Free(PageMemory::Allocate(100));
    }
  };
  const uint64_t before = PageMemory::figures().used_bytes;
  InAThread([] {
    static thread_local Late late;
    late.node = PageMemory::Allocate(100);
  });
  EXPECT_EQ(PageMemory::figures().used_bytes, before);
}

TEST(PageMemoryTest, IdleThreadsKeepNothingAfterAFlush) {
  PageMemory::FlushCaches();
  const uint64_t before = PageMemory::figures().used_bytes;
  Event freed;
  Event end;
  const auto thread = RealRuntime().StartThread("idle", [&] {
    std::vector<void*> nodes;
    for (int i = 0; i < 1000; ++i) nodes.push_back(PageMemory::Allocate(300));
    for (void* const node : nodes) PageMemory::Free(node);
    freed.Signal(RealRuntime());
    end.Wait(RealRuntime(), kNoDeadline);
  });
  freed.Wait(RealRuntime(), kNoDeadline);
  EXPECT_GT(PageMemory::figures().used_bytes, before);
  PageMemory::FlushIdleCaches();  // the first look
  PageMemory::FlushIdleCaches();
  EXPECT_EQ(PageMemory::figures().used_bytes, before);
  end.Signal(RealRuntime());
}

// Two components have a quarter and three quarters of the nodes.
TEST(PageMemoryTest, FreeBytesAreSharedByTheBytesOfNodes) {
  PageMemory::FlushCaches();
  std::vector<void*> nodes;
  for (int i = 0; i < 4000; ++i) nodes.push_back(PageMemory::Allocate(20'000));
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i % 4 != 0) PageMemory::Free(std::exchange(nodes[i], nullptr));
  }
  const uint64_t used = PageMemory::figures().used_bytes;
  const uint64_t free = PageMemory::FreeBytes();
  constexpr double kInexact = 2 << 20;  // because of the caches
  EXPECT_GT(free, 2 * used);
  EXPECT_NEAR(static_cast<double>(PageMemory::FreeBytesOf(used / 4)), static_cast<double>(free) / 4, kInexact);
  EXPECT_NEAR(static_cast<double>(PageMemory::FreeBytesOf(used / 4 * 3)), static_cast<double>(free) / 4 * 3, kInexact);
  EXPECT_EQ(PageMemory::FreeBytesOf(4 * used), free) << "large nodes lie elsewhere";
  EXPECT_EQ(PageMemory::FreeBytesOf(0), 0u);
  for (void* const node : nodes) PageMemory::Free(node);
}

// A component with few nodes, and threads whose caches are full.
TEST(PageMemoryTest, CachesTakeNoShareOfTheFreeBytes) {
  PageMemory::FlushCaches();
  std::vector<void*> nodes;
  for (size_t bytes = 64; bytes <= 2000; bytes += 32) {
    for (int i = 0; i < 100; ++i) nodes.push_back(PageMemory::Allocate(bytes));
  }
  void* const node = PageMemory::Allocate(100);
  for (void* const other : nodes) PageMemory::Free(other);
  ASSERT_GT(PageMemory::figures().used_bytes, 100'000u) << "the caches";
  EXPECT_EQ(PageMemory::FreeBytesOf(PageMemory::BytesOf(100)), PageMemory::FreeBytes());
  PageMemory::Free(node);
}

// Deltas of small records have the largest rests of blocks.
TEST(PageMemoryTest, ATreeCountsTheBlocksOfItsNodes) {
  PageMemory::FlushCaches();
  const uint64_t before = PageMemory::figures().used_bytes;
  StoredTree tree;
  for (uint64_t i = 0; i < 20'000; ++i) tree.Put(i * 7919 % 20'000, "12345678");
  tree.domain().Collect();
  PageMemory::FlushCaches();
  const uint64_t blocks = PageMemory::figures().used_bytes - before;
  const uint64_t counted = tree.tree().statistics().bytes + tree.domain().pending_bytes();
  EXPECT_GE(counted, blocks / 100 * 99);
  EXPECT_LE(counted, blocks / 100 * 101);
}

// Runs in a process of its own, with a limit of its addresses.
[[noreturn]] void UnderALimitOfAddresses(rlim_t bytes, bool slabs) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
  limit.rlim_cur = bytes;
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
  std::vector<void*> nodes;
  for (int i = 0; i < 1000; ++i) {
    nodes.push_back(PageMemory::Allocate(20'000));
    std::memset(nodes.back(), 1, 20'000);
  }
  if ((PageMemory::figures().slab_bytes != 0) != slabs) std::exit(4);
  // There are addresses left for others.
  InAThread([&] {
    for (void* const node : nodes) PageMemory::Free(node);
  });
  PageMemory::FlushIdleCaches();
  std::exit(PageMemory::IsDraining(&limit) || PageMemory::FreeBytesOf(0) != 0 ? 5 : 0);
}

TEST(PageMemoryDeathTest, SlabsTakeAtMostHalfTheAddressesOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(UnderALimitOfAddresses(rlim_t{8} << 30, /*slabs=*/true), ::testing::ExitedWithCode(0), "");
}

TEST(PageMemoryDeathTest, WithoutAddressesForSlabsNodesLieInTheHeap) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(UnderALimitOfAddresses(rlim_t{3} << 29, /*slabs=*/false), ::testing::ExitedWithCode(0),
              "pages lie in the program's heap");
}

}  // namespace
}  // namespace deut::dc
