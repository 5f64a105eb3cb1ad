// PageEvictor and the slabs of pages: when the room in them counts against the budget, slabs are emptied. Their pages
// are moved, inner pages and roots included; pages that are only updates are written and evicted.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_memory.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/page_cache/memory_budget.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kBudget = 8 << 20;

class EvictorDrainTest : public ::testing::Test {
 protected:
  // Fills slabs with nodes of these sizes, and makes few holes, into which the next nodes go.
  void MakeHoles(size_t least_bytes, size_t most_bytes, uint64_t bytes_of_each_size) {
    std::vector<void*> all;
    for (size_t bytes = least_bytes; bytes <= most_bytes; bytes += 32) {
      for (uint64_t filled = 0; filled < bytes_of_each_size; filled += bytes) {
        all.push_back(PageMemory::Allocate(bytes));
      }
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % 256 == 0) {
        PageMemory::Free(all[i]);
      } else {
        fillers_.push_back(all[i]);
      }
    }
    PageMemory::FlushCaches();
  }
  // From here on the nodes in the holes are alone in their slabs.
  void FreeFillers() {
    for (void* const filler : fillers_) PageMemory::Free(filler);
    PageMemory::FlushCaches();
  }
  void Start() {
    auto created = PageEvictor::Create(
        RealRuntime(), t_.environment(), t_.store(), t_, t_, *loader_,
        PageEvictor::BudgetOfPages([this] { return t_.tree().statistics().bytes + t_.domain().pending_bytes(); },
                                   uint64_t{kBudget}),
        /*merge_interval=*/std::chrono::hours(1), [this](const Status&) { errors_.fetch_add(1); });
    ASSERT_TRUE(created.ok());
    evictor_ = std::move(*created);
  }
  static uint64_t Slabs() { return PageMemory::figures().slab_bytes; }
  [[nodiscard]] static bool Until(const std::function<bool()>& reached) {
    const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(60);
    while (!reached()) {
      if (RealRuntime().Now() > limit) return false;
      RealRuntime().Yield();
    }
    return true;
  }
  // The evictor rests then.
  [[nodiscard]] bool UntilUsedBytesAreLow() {
    return Until([this] { return evictor_->used_bytes() <= kBudget / 8 * 7; });
  }
  // While pages are moved, there may be more slabs for a moment.
  [[nodiscard]] bool UntilSlabsKeepTheBound() {
    return Until([this] {
      return evictor_->used_bytes() <= kBudget / 8 * 7 && Slabs() <= kBudget + MemoryBudget::kLeastToleratedRoom;
    });
  }

  StoredTree t_;
  const std::unique_ptr<PageLoader> loader_ = *PageLoader::Create(RealRuntime(), t_, t_.domain(), t_.store());
  std::vector<void*> fillers_;
  std::atomic<int> errors_{0};
  std::unique_ptr<PageEvictor> evictor_;
};

TEST_F(EvictorDrainTest, PagesInThinSlabsAreMovedAndStayInMemory) {
  MakeHoles(256, 1280, 6 << 20);
  t_.FillSettled(10'000);
  FreeFillers();
  t_.domain().Collect();
  const uint64_t before = Slabs();
  const uint64_t pages = t_.tree().statistics().bytes;
  ASSERT_GT(before, kBudget + MemoryBudget::kLeastToleratedRoom) << "there are not enough thin slabs";
  ASSERT_LT(pages, kBudget / 2);
  Start();
  EXPECT_TRUE(UntilSlabsKeepTheBound()) << Slabs();
  EXPECT_GT(evictor_->moves(), 0u);
  EXPECT_EQ(evictor_->evictions(), 0u);
  EXPECT_FALSE(evictor_->exhausted());
  evictor_.reset();
  for (const PageId leaf : t_.Pages(0)) {
    ASSERT_NE(t_.HeadOf(leaf), nullptr);
    EXPECT_TRUE(IsClean(t_.HeadOf(leaf))) << "a page that was moved need not be written again";
  }
  t_.ExpectRight();
}

TEST_F(EvictorDrainTest, UpdatesWithoutTheirPageAreWrittenAndEvicted) {
  t_.FillSettled(10'000);
  t_.Evict();
  MakeHoles(64, 480, 18 << 20);
  for (uint64_t i = 0; i < 10'000; i += 5) t_.Put(i, "updated");
  FreeFillers();
  t_.domain().Collect();
  ASSERT_GT(Slabs(), kBudget + MemoryBudget::kLeastToleratedRoom) << "there are not enough thin slabs";
  Start();
  EXPECT_TRUE(UntilSlabsKeepTheBound()) << Slabs();
  EXPECT_GT(evictor_->evictions(), 0u);
  EXPECT_EQ(errors_.load(), 0);
  evictor_.reset();
  t_.ExpectRight();
}

// Nodes of others hold the slabs. The component evicts its pages, and lowers its share; it does not run for ever.
TEST_F(EvictorDrainTest, SlabsThatOthersHoldBackCountByTheShareOfThePages) {
  MakeHoles(256, 1280, 6 << 20);
  t_.FillSettled(10'000);
  std::vector<void*> others;  // more than the caches of this test's threads can hold
  for (size_t i = 0; i < fillers_.size(); ++i) {
    if (i % 50 == 0) {
      others.push_back(fillers_[i]);
    } else {
      PageMemory::Free(fillers_[i]);
    }
  }
  PageMemory::FlushCaches();
  t_.domain().Collect();
  ASSERT_GT(Slabs(), kBudget + MemoryBudget::kLeastToleratedRoom);
  Start();
  EXPECT_TRUE(UntilUsedBytesAreLow());
  EXPECT_GT(evictor_->evictions(), 0u);
  evictor_.reset();
  t_.ExpectRight();
  for (void* const other : others) PageMemory::Free(other);
}

TEST_F(EvictorDrainTest, BwTreeMoveGivesEveryNodeNewMemory) {
  t_.FillSettled(2000);
  for (uint64_t i = 0; i < 2000; i += 3) t_.Put(i, "updated");
  for (const uint8_t level : {uint8_t{0}, uint8_t{1}}) {
    uint64_t pages = 0;
    t_.Walk(level, [&](const VisitedPage& page) {
      const Node* const head = page.word.head();
      ASSERT_NE(head, nullptr);
      EXPECT_TRUE(t_.tree().Move(page));
      const Node* const moved = t_.HeadOf(page.id);
      for (const Node* node = head; node != nullptr; node = node->next) EXPECT_NE(node, moved->base);
      EXPECT_FALSE(t_.tree().Move(page)) << "the page has changed since it was visited";
      ++pages;
    });
    EXPECT_GT(pages, 0u);
  }
  t_.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
