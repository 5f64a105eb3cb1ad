// Which pages the evictor evicts, and what it writes and loads for that. The threads and loads that wait for it are in
// evictor_waits_test.cc.
#include "dc/page_cache/page_evictor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/page_visitor.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/page_evictor_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

TEST_F(PageEvictorTest, WithoutABudgetNoPageIsEvictedAndNoThreadWaits) {
  t_.FillSettled(100);
  Start(/*budget=*/uint64_t{0});
  SayUsed(uint64_t{1} << 60);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
  EXPECT_EQ(evictor_->rounds(), 0u);
  EXPECT_FALSE(evictor_->exhausted());
  for (const PageId leaf : t_.Pages(0)) EXPECT_TRUE(InMemory(leaf));
}

TEST_F(PageEvictorTest, BelowTheHighMarkNoPageIsEvicted) {
  t_.FillSettled(100);
  Start();
  SayUsed(kBudget / 2);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
  EXPECT_EQ(evictor_->rounds(), 0u);
  EXPECT_EQ(evictor_->evictions(), 0u);
}

// Other parts of the process need memory, so the limit falls below what the pages take.
TEST_F(PageEvictorTest, AFallingLimitEvictsPages) {
  t_.FillSettled(400);
  ClearUsedMarks();
  std::atomic<uint64_t> limit{16 * kBudget};
  Start(std::function<uint64_t()>([&limit] { return limit.load(); }));
  said_.store(kMeasured);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  EXPECT_EQ(evictor_->evictions(), 0u);
  const uint64_t pages = t_.tree().statistics().bytes;
  limit.store(pages / 2);
  EXPECT_TRUE(Until([&] { return t_.tree().statistics().bytes <= limit.load(); }));
  EXPECT_GT(evictor_->evictions(), 0u);
  evictor_.reset();  // it asks for the limit
}

TEST_F(PageEvictorTest, PagesThatWereUsedHaveASecondChance) {
  t_.FillSettled(400);
  ClearUsedMarks();
  const std::vector<PageId> leaves = t_.Pages(0);
  ASSERT_GT(leaves.size(), 30u);
  std::vector<PageId> hot;
  for (size_t i = 0; i < leaves.size(); i += 3) {
    hot.push_back(leaves[i]);
    t_.pages().MarkUsed(leaves[i]);
  }
  Start();
  SwapOut(leaves.size() - hot.size());
  for (const PageId leaf : leaves) {
    EXPECT_EQ(InMemory(leaf), std::find(hot.begin(), hot.end(), leaf) != hot.end()) << leaf.value;
  }
  // Their marks are cleared now.
  SwapOut(hot.size());
  for (const PageId leaf : leaves) EXPECT_FALSE(InMemory(leaf));
  t_.ExpectRight();
}

// A thread that waited for a page runs only after the page's mark was cleared, because a page that it loads alone
// exceeds the budget.
TEST_F(PageEvictorTest, APageWhoseMarkIsClearedCanBeUsedBeforeItIsEvicted) {
  t_.FillSettled(400);
  const std::vector<PageId> leaves = t_.Pages(0);
  for (const PageId leaf : leaves) t_.pages().MarkUsed(leaf);
  const PageId wanted = t_.LeafOf(200);
  std::atomic<int> pauses{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "evictor.second_chance") return;
    EXPECT_TRUE(InMemory(wanted));
    t_.pages().MarkUsed(wanted);
    pauses.fetch_add(1);
  });
  Start();
  SwapOut(leaves.size() - 1);
  EXPECT_GE(pauses.load(), 1);
  EXPECT_TRUE(InMemory(wanted));
  evictor_.reset();
  testing::SetPointHandler({});
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, PagesThatWereUsedHaveASecondChanceAlsoWhenTheirNeighboursAreWritten) {
  t_.FillSettled(400);
  std::vector<PageId> cold;
  for (uint64_t i = 0; i < 400; i += 30) {
    cold.push_back(t_.LeafOf(i));
    t_.Put(i, StoredTree::kValue);
    ASSERT_FALSE(IsClean(t_.HeadOf(cold.back())));
  }
  ClearUsedMarks();
  const std::vector<PageId> leaves = t_.Pages(0);
  for (const PageId leaf : leaves) {
    if (std::find(cold.begin(), cold.end(), leaf) == cold.end()) t_.pages().MarkUsed(leaf);
  }
  Start();
  SwapOut(cold.size());
  for (const PageId leaf : leaves) {
    EXPECT_EQ(InMemory(leaf), std::find(cold.begin(), cold.end(), leaf) == cold.end()) << leaf.value;
  }
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, ChangedPagesThatWereUsedAreNotWrittenYet) {
  t_.FillSettled(100);
  const std::vector<PageId> leaves = t_.Pages(0);
  const PageId hot = t_.LeafOf(20);
  t_.Put(20, "changed");
  const PageAddress image = t_.ImageOf(hot).newest();
  ClearUsedMarks();
  t_.pages().MarkUsed(hot);
  Start();
  SwapOut(leaves.size() - 1);
  EXPECT_TRUE(InMemory(hot));
  EXPECT_EQ(t_.ImageOf(hot).newest(), image);
  SwapOut(1);
  EXPECT_FALSE(InMemory(hot));
  EXPECT_NE(t_.ImageOf(hot).newest(), image);
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, APageWithAllItsPartsUsedIsLoadedAndWrittenWithFewerParts) {
  t_.FillSettled(100);
  const PageId leaf = t_.LeafOf(20);
  while (t_.ImageOf(leaf).count() < ImageParts::kMax) {
    ASSERT_TRUE(t_.Evict(leaf));
    t_.Put(20, "blind");
    t_.Flush(leaf);
  }
  ASSERT_TRUE(t_.Evict(leaf));
  t_.Put(20, "the last straw");
  ASSERT_TRUE(IsStub(t_.HeadOf(leaf)));
  ClearUsedMarks();
  Start();
  SwapOut(t_.Pages(0).size());
  EXPECT_FALSE(InMemory(leaf));
  EXPECT_EQ(t_.ImageOf(leaf).count(), 2u);
  EXPECT_GE(loader_->loads(), 1u);
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, APageThatMustBeLoadedToBeWrittenStaysWhileOthersAreEnough) {
  t_.FillSettled(100);
  const PageId leaf = t_.LeafOf(20);
  while (t_.ImageOf(leaf).count() < ImageParts::kMax) {
    ASSERT_TRUE(t_.Evict(leaf));
    t_.Put(20, "blind");
    t_.Flush(leaf);
  }
  ASSERT_TRUE(t_.Evict(leaf));
  t_.Put(20, "the last straw");
  ClearUsedMarks();
  Start();
  SwapOut(t_.Pages(0).size() - 1);
  EXPECT_TRUE(IsStub(t_.HeadOf(leaf)));
  EXPECT_EQ(loader_->loads(), 0u);
  SwapOut(1);
  EXPECT_FALSE(InMemory(leaf));
  EXPECT_EQ(loader_->loads(), 1u);
  t_.ExpectRight();
}

// A page that was loaded on a full disk could not leave memory again.
TEST_F(PageEvictorTest, OnAFullDiskNoPageIsLoadedToBeWritten) {
  t_.FillSettled(1000);
  const PageId leaf = t_.LeafOf(20);
  const PageId other = t_.LeafOf(980);
  while (t_.ImageOf(leaf).count() < ImageParts::kMax) {
    ASSERT_TRUE(t_.Evict(leaf));
    t_.Put(20, "blind");
    t_.Flush(leaf);
  }
  ASSERT_TRUE(t_.Evict(leaf));
  t_.Put(20, "the last straw");
  t_.Put(980, "changed");
  // The batch of the other page's step is another one.
  const auto parent_of = [this](PageId id) {
    PageId parent;
    t_.Walk(/*level=*/0, [&](const VisitedPage& page) {
      if (page.id == id) parent = page.parent;
    });
    return parent;
  };
  ASSERT_NE(parent_of(leaf), parent_of(other));
  ClearUsedMarks();
  t_.disk().SetFreeBytes(t_.store().reserve_bytes());
  Start();
  SayUsed(kBudget + 1);
  const uint64_t rounds = evictor_->rounds();
  ASSERT_TRUE(Until([&] { return evictor_->rounds() >= rounds + 12; }));
  EXPECT_GE(errors_.load(), 1);
  EXPECT_EQ(last_error_.load(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(IsStub(t_.HeadOf(leaf)));
  EXPECT_EQ(loader_->loads(), 0u);
  t_.disk().SetFreeBytes(uint64_t{1} << 40);
  EXPECT_TRUE(Until([&] { return !InMemory(leaf) && !InMemory(other); }));
  EXPECT_GE(loader_->loads(), 1u);
  SayUsed(0);
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, WrittenUpdatesWithoutTheirPageHaveNoSecondChance) {
  t_.FillSettled(100);
  const PageId leaf = t_.LeafOf(20);
  ASSERT_TRUE(t_.Evict(leaf));
  t_.Put(20, "blind");
  t_.Flush(leaf);
  ASSERT_TRUE(IsStub(t_.HeadOf(leaf)));
  ASSERT_TRUE(IsClean(t_.HeadOf(leaf)));
  const std::vector<PageId> leaves = t_.Pages(0);
  for (const PageId each : leaves) t_.pages().MarkUsed(each);
  Start();
  SwapOut(1);
  for (const PageId each : leaves) EXPECT_EQ(InMemory(each), each != leaf);
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, PagesLoadedToBeWrittenAreEvictedBeforeMoreAreLoaded) {
  constexpr uint64_t kRecords = 4'000;
  t_.FillSettled(kRecords);
  const auto update_all = [&](std::string_view value) {
    t_.Evict();
    for (uint64_t i = 0; i < kRecords; i += 5) t_.Put(i, value);
  };
  while (t_.ImageOf(t_.LeafOf(20)).count() < ImageParts::kMax) {
    update_all("blind");
    t_.Flush(/*leaves_only=*/true);
  }
  update_all("again");
  ClearUsedMarks();
  const uint64_t before = t_.tree().statistics().bytes;
  std::atomic<uint64_t> highest{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "bwtree.load.before_cas") highest.store(std::max(highest.load(), t_.tree().statistics().bytes));
  });
  const size_t leaves = t_.Pages(0).size();
  Start();
  SwapOut(leaves - 1);
  evictor_.reset();
  testing::SetPointHandler({});
  started_.store(nullptr);
  EXPECT_GE(loader_->loads(), leaves / 2);
  // Memory for the leaves of two parents, not for all leaves.
  EXPECT_LE(highest.load(), before + (uint64_t{64} << 10));
  EXPECT_GE(leaves, 200u);
  t_.ExpectRight();
}

// --- Parts that are merged before a page is evicted.

class PagesOfThreePartsTest : public PageEvictorTest {
 protected:
  // The evictor works, and no thread waits for memory.
  static constexpr uint64_t kBelowTheApplyLimit = kBudget / 32 * 29;

  // The leaves of three records have three parts, and are on storage.
  PagesOfThreePartsTest() {
    t_.FillSettled(100);
    for (const uint64_t number : kNumbers) {
      const PageId leaf = t_.LeafOf(number);
      while (t_.ImageOf(leaf).count() < 3) {
        EXPECT_TRUE(t_.Evict(leaf));
        t_.Put(number, "blind");
        t_.Flush(leaf);
      }
      EXPECT_TRUE(t_.Evict(leaf));
    }
  }
  void Load(uint64_t number, PageStay stay) {
    const std::string key = KeyOf(number);
    ASSERT_TRUE(loader_->Load(StoredTree::kTable, Target(key, Side::kAt), stay).ok());
    ASSERT_TRUE(InMemory(t_.LeafOf(number)));
  }
  // Lets the evictor evict all leaves while memory counts as full to this number of bytes.
  void EvictAll(uint64_t said) {
    if (evictor_ == nullptr) Start();
    SayUsed(said);
    ASSERT_TRUE(Until([this] {
      const std::vector<PageId> leaves = t_.Pages(0);
      return std::none_of(leaves.begin(), leaves.end(), [this](PageId leaf) { return InMemory(leaf); });
    }));
    SayUsed(0);
  }
  size_t Parts(uint64_t number) { return t_.ImageOf(t_.LeafOf(number)).count(); }

  static constexpr std::array<uint64_t, 3> kNumbers = {20, 50, 80};
};

TEST_F(PagesOfThreePartsTest, OnlyPagesThatReadersHaveLoadedAreMerged) {
  Load(20, PageStay::kLasting);
  Load(50, PageStay::kTransient);
  Load(80, PageStay::kToWrite);
  EvictAll(kBelowTheApplyLimit);
  EXPECT_LE(Parts(20), 2u);
  EXPECT_EQ(Parts(50), 3u);
  EXPECT_EQ(Parts(80), 3u);
  t_.ExpectRight();
}

TEST_F(PagesOfThreePartsTest, APageIsMergedOnceForEachTimeThatItGetsMoreParts) {
  Load(20, PageStay::kLasting);
  EvictAll(kBelowTheApplyLimit);
  const ImageParts merged = t_.ImageOf(t_.LeafOf(20));
  ASSERT_LE(merged.count(), 2u);
  Load(20, PageStay::kLasting);
  EvictAll(kBelowTheApplyLimit);
  EXPECT_EQ(t_.ImageOf(t_.LeafOf(20)).newest(), merged.newest());
  evictor_.reset();
  started_.store(nullptr);
  while (Parts(20) < 3) {
    t_.Put(20, "blind");
    t_.Flush(t_.LeafOf(20));
    ASSERT_TRUE(t_.Evict(t_.LeafOf(20)));
  }
  Load(20, PageStay::kLasting);
  EvictAll(kBelowTheApplyLimit);
  EXPECT_LE(Parts(20), 2u);
  t_.ExpectRight();
}

TEST_F(PagesOfThreePartsTest, APageThatAScanHasLoadedIsMergedOnlyAfterTheNextLoadForAReader) {
  Load(20, PageStay::kTransient);
  RecordBatch batch;
  ASSERT_EQ(t_.tree().Read(KeyOf(20), &batch), BwTree::Found::kYes);
  EvictAll(kBelowTheApplyLimit);
  EXPECT_EQ(Parts(20), 3u) << "the load was for a scan";
  Load(20, PageStay::kLasting);
  EvictAll(kBelowTheApplyLimit);
  EXPECT_LE(Parts(20), 2u);
}

TEST_F(PagesOfThreePartsTest, WhileThreadsWaitForMemoryPagesAreEvictedAsTheyAre) {
  Load(20, PageStay::kLasting);
  EvictAll(kBudget + 1);
  EXPECT_EQ(Parts(20), 3u);
  t_.ExpectRight();
}

TEST_F(PagesOfThreePartsTest, OnADiskThatIsShortOfSpacePagesAreEvictedAsTheyAre) {
  Load(20, PageStay::kLasting);
  t_.disk().SetFreeBytes(t_.store().reserve_bytes());
  EvictAll(kBelowTheApplyLimit);
  EXPECT_EQ(Parts(20), 3u);
  EXPECT_EQ(errors_.load(), 0);
  t_.ExpectRight();
}

TEST_F(PagesOfThreePartsTest, AfterAFailedWritePagesAreEvictedAsTheyAre) {
  Load(20, PageStay::kLasting);
  t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
  EvictAll(kBelowTheApplyLimit);
  EXPECT_EQ(errors_.load(), 1);
  EXPECT_EQ(last_error_.load(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(Parts(20), 3u);
  t_.disk().RemoveAllFaults();
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, TheBudgetIsKeptWhileOthersWriteAndRead) {
  // The margin covers the data of two operations, and the marks on pages that are being written, perhaps all that are
  // in memory. Garbage is left out: the machine decides how long a thread is stopped inside its guard.
  constexpr uint64_t kMargin = 64 << 10;
  Start();
  said_.store(kMeasured);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> highest{0};
  const auto look = [&] {
    const uint64_t now = used();
    uint64_t seen = highest.load();
    while (seen < now && !highest.compare_exchange_weak(seen, now)) {
    }
  };
  const auto reader = RealRuntime().StartThread("reader", [&] {
    Random random(1);
    while (!stop.load()) {
      const uint64_t there = written.load();
      if (there == 0) continue;
      const uint64_t number = random.Below(there);
      const std::string key = KeyOf(number);
      RecordBatch batch;
      while (t_.tree().Read(key, &batch) == BwTree::Found::kNotLoaded) {
        evictor_->WakeIfOverHighMark();
        evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
        ASSERT_TRUE(loader_->Load(StoredTree::kTable, Target(key, Side::kAt)).ok());
        look();
      }
      ASSERT_EQ(batch.size(), 1u);
    }
  });
  for (uint64_t i = 0; i < 20'000; ++i) {
    evictor_->WakeIfOverHighMark();
    evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
    t_.Put(i, StoredTree::kValue);
    look();
    written.store(i + 1);
  }
  stop.store(true);
  reader->Join();
  EXPECT_LE(highest.load(), kBudget + kMargin);
  EXPECT_GT(evictor_->evictions(), 500u);
  EXPECT_FALSE(evictor_->exhausted());
  EXPECT_EQ(errors_.load(), 0);
  evictor_.reset();
  started_.store(nullptr);
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, AFailedWriteIsToldAndNothingIsLostInMemory) {
  t_.FillSettled(200);
  for (uint64_t i = 0; i < 200; ++i) t_.Put(i, "changed");
  ClearUsedMarks();
  t_.disk().AddFault({.kinds = kDiskWrite, .count = 1});
  Start();
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return errors_.load() > 0; }));
  EXPECT_EQ(last_error_.load(), ErrorCode::kIoError);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  EXPECT_EQ(evictor_->evictions(), 0u);
  evictor_.reset();
  started_.store(nullptr);
  t_.ExpectRight();
}

TEST_F(PageEvictorTest, TablesThatAreGoneArePassedBy) {
  t_.FillSettled(200);
  ClearUsedMarks();
  const std::vector<TableId> with_others{TableId(1), StoredTree::kTable, TableId(99)};
  const std::vector<TableId> others{TableId(1), TableId(99)};
  tables_.store(&with_others);
  Start();
  SwapOut(10);
  // Only tables that are gone.
  tables_.store(&others);
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return evictor_->exhausted(); }));
  SayUsed(0);
  evictor_.reset();
  t_.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
