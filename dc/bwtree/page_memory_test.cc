// PageMemory: nodes of all sizes; threads that end; the lost room that counts against a budget.
#include "dc/bwtree/page_memory.h"

#include <cstring>
#include <functional>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

void InAThread(const std::function<void()>& body) { RealRuntime().StartThread("nodes", body)->Join(); }

TEST(PageMemoryTest, NodesOfAllSizes) {
  const PageMemory::Figures before = PageMemory::figures();
  std::vector<void*> nodes;
  for (const size_t bytes : {size_t{64}, size_t{500}, size_t{20'000}, size_t{65'536}, size_t{5'000'000}}) {
    nodes.push_back(PageMemory::Allocate(bytes));
    std::memset(nodes.back(), 7, bytes);
  }
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

TEST(PageMemoryTest, LostRoomIsAtMostAnEighth) {
  std::vector<void*> nodes;
  for (int i = 0; i < 2000; ++i) nodes.push_back(PageMemory::Allocate(20'000));
  const uint64_t bytes = nodes.size() * 20'000;
  EXPECT_GE(PageMemory::LostRoomOf(bytes), bytes / 32);
  EXPECT_LE(PageMemory::LostRoomOf(bytes), bytes / 8);
  // Every third node keeps its slab.
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i % 3 != 0) PageMemory::Free(nodes[i]);
  }
  EXPECT_LE(PageMemory::LostRoomOf(bytes / 3), bytes / 3 / 8);
  EXPECT_EQ(PageMemory::LostRoomOf(0), 0u);
  for (size_t i = 0; i < nodes.size(); i += 3) PageMemory::Free(nodes[i]);
}

}  // namespace
}  // namespace deut::dc
