#include "dc/page_cache/page_keeper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/load_pool.h"
#include "dc/page_cache/page_loader.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kBudget = 512 << 10;

// Waits until another thread has made the condition true.
template <typename Condition>
[[nodiscard]] bool Until(const Condition& condition) {
  const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(30);
  while (!condition()) {
    if (RealRuntime().Now() > limit) return false;
    RealRuntime().Yield();
  }
  return true;
}

// A tree and its keeper. The test sets the amount of used memory, or it is measured.
class PageKeeperTest : public ::testing::Test, public TableList {
 protected:
  static constexpr uint64_t kMeasured = UINT64_MAX;

  void TearDown() override { keeper_.reset(); }

  std::vector<TableId> LiveTables() override { return *tables_.load(); }

  void Start(uint64_t budget = kBudget) {
    auto created = PageKeeper::Create(
        RealRuntime(), t_.environment(), t_.store(), t_, *this, loads_, [this] { return used(); }, budget,
        /*merge_interval=*/std::chrono::seconds(1),
        [this](const Status& status) {
          last_error_.store(status.code());
          errors_.fetch_add(1);
        });
    ASSERT_TRUE(created.ok());
    keeper_ = std::move(*created);
    started_.store(keeper_.get());
  }
  uint64_t used() {
    const PageKeeper* const keeper = started_.load();
    if (keeper == nullptr) return 0;
    // Memory counts as full until `wanted` pages have been evicted.
    if (const uint64_t wanted = wanted_.load(); wanted != 0) return keeper->evictions() < wanted ? kBudget + 1 : 0;
    const uint64_t said = said_.load();
    return said != kMeasured ? said : t_.tree().statistics().bytes;
  }
  void SayUsed(uint64_t bytes) {
    said_.store(bytes);
    keeper_->Look();
  }
  // Lets the keeper work until it has evicted `pages` more pages.
  void SwapOut(uint64_t pages) {
    const uint64_t wanted = keeper_->evictions() + pages;
    wanted_.store(wanted);
    keeper_->Look();
    ASSERT_TRUE(Until([&] { return keeper_->evictions() >= wanted; }));
    wanted_.store(0);
  }

  bool InMemory(PageId leaf) { return t_.HeadOf(leaf) != nullptr; }
  void ForgetTouches() {
    for (const PageId leaf : t_.Pages(0)) t_.pages().TakeTouch(leaf);
  }

  StoredTree t_;
  PageLoader loader_{t_, t_.domain(), t_.store()};
  LoadPool loads_{RealRuntime(), loader_, 2};
  const std::vector<TableId> the_table_{StoredTree::kTable};
  std::atomic<const std::vector<TableId>*> tables_{&the_table_};
  std::atomic<uint64_t> said_{0};
  std::atomic<uint64_t> wanted_{0};
  std::atomic<PageKeeper*> started_{nullptr};
  std::atomic<int> errors_{0};
  std::atomic<ErrorCode> last_error_{ErrorCode::kOk};
  std::unique_ptr<PageKeeper> keeper_;
};

TEST_F(PageKeeperTest, WithoutABudgetNothingIsSwappedOutAndNobodyWaits) {
  t_.FillSettled(100);
  Start(/*budget=*/0);
  SayUsed(uint64_t{1} << 60);
  keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
  EXPECT_EQ(keeper_->rounds(), 0u);
  EXPECT_FALSE(keeper_->exhausted());
  for (const PageId leaf : t_.Pages(0)) EXPECT_TRUE(InMemory(leaf));
}

TEST_F(PageKeeperTest, BelowTheHighMarkNothingIsSwappedOut) {
  t_.FillSettled(100);
  Start();
  SayUsed(kBudget / 2);
  keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
  EXPECT_EQ(keeper_->rounds(), 0u);
  EXPECT_EQ(keeper_->evictions(), 0u);
}

TEST_F(PageKeeperTest, PagesThatWereUsedHaveASecondChance) {
  t_.FillSettled(400);
  ForgetTouches();
  const std::vector<PageId> leaves = t_.Pages(0);
  ASSERT_GT(leaves.size(), 30u);
  std::vector<PageId> hot;
  for (size_t i = 0; i < leaves.size(); i += 3) {
    hot.push_back(leaves[i]);
    t_.pages().Touch(leaves[i]);
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

TEST_F(PageKeeperTest, PagesThatWereUsedHaveASecondChanceAlsoWhenTheirNeighboursAreWritten) {
  t_.FillSettled(400);
  std::vector<PageId> cold;
  for (uint64_t i = 0; i < 400; i += 30) {
    cold.push_back(t_.LeafOf(i));
    t_.Put(i, StoredTree::kValue);
    ASSERT_FALSE(IsClean(t_.HeadOf(cold.back())));
  }
  ForgetTouches();
  const std::vector<PageId> leaves = t_.Pages(0);
  for (const PageId leaf : leaves) {
    if (std::find(cold.begin(), cold.end(), leaf) == cold.end()) t_.pages().Touch(leaf);
  }
  Start();
  SwapOut(cold.size());
  for (const PageId leaf : leaves) {
    EXPECT_EQ(InMemory(leaf), std::find(cold.begin(), cold.end(), leaf) == cold.end()) << leaf.value;
  }
  t_.ExpectRight();
}

TEST_F(PageKeeperTest, ChangedPagesThatWereUsedAreNotWrittenYet) {
  t_.FillSettled(100);
  const std::vector<PageId> leaves = t_.Pages(0);
  const PageId hot = t_.LeafOf(20);
  t_.Put(20, "changed");
  const PageAddress image = t_.ImageOf(hot).newest();
  ForgetTouches();
  t_.pages().Touch(hot);
  Start();
  SwapOut(leaves.size() - 1);
  EXPECT_TRUE(InMemory(hot));
  EXPECT_EQ(t_.ImageOf(hot).newest(), image);
  SwapOut(1);
  EXPECT_FALSE(InMemory(hot));
  EXPECT_NE(t_.ImageOf(hot).newest(), image);
  t_.ExpectRight();
}

TEST_F(PageKeeperTest, APageWithAllItsPartsUsedIsLoadedAndWrittenAsAWhole) {
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
  ForgetTouches();
  Start();
  SwapOut(t_.Pages(0).size());
  EXPECT_FALSE(InMemory(leaf));
  EXPECT_EQ(t_.ImageOf(leaf).count(), 1u);
  EXPECT_GE(loader_.loads(), 1u);
  t_.ExpectRight();
}

TEST_F(PageKeeperTest, WhatIsLoadedToBeWrittenIsSwappedOutBeforeMoreIsLoaded) {
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
  ForgetTouches();
  const uint64_t before = t_.tree().statistics().bytes;
  std::atomic<uint64_t> highest{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "bwtree.load.before_cas") highest.store(std::max(highest.load(), t_.tree().statistics().bytes));
  });
  const size_t leaves = t_.Pages(0).size();
  Start();
  SwapOut(leaves - 1);
  keeper_.reset();
  testing::SetPointHandler({});
  started_.store(nullptr);
  EXPECT_GE(loader_.loads(), leaves / 2);
  // Memory for the leaves of two parents, not for all leaves.
  EXPECT_LE(highest.load(), before + 64 * 1024);
  EXPECT_GE(leaves, 200u);
  t_.ExpectRight();
}

TEST_F(PageKeeperTest, TheBudgetIsKeptWhileOthersWriteAndRead) {
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
        keeper_->Look();
        keeper_->WaitForRoom(PageKeeper::Room::kToRead);
        ASSERT_TRUE(loader_.Load(StoredTree::kTable, Target(key, Side::kAt)).ok());
        look();
      }
      ASSERT_EQ(batch.size(), 1u);
    }
  });
  for (uint64_t i = 0; i < 20'000; ++i) {
    keeper_->Look();
    keeper_->WaitForRoom(PageKeeper::Room::kToApply);
    t_.Put(i, StoredTree::kValue);
    look();
    written.store(i + 1);
  }
  stop.store(true);
  reader->Join();
  EXPECT_LE(highest.load(), kBudget + kMargin);
  EXPECT_GT(keeper_->evictions(), 500u);
  EXPECT_FALSE(keeper_->exhausted());
  EXPECT_EQ(errors_.load(), 0);
  keeper_.reset();
  started_.store(nullptr);
  t_.ExpectRight();
}

// The keeper stops before its first eviction, until the test releases it.
class StoppedKeeperTest : public PageKeeperTest {
 protected:
  void StopAt(uint64_t bytes) {
    t_.FillSettled(200);
    ForgetTouches();
    Start();
    // The keeper once had nothing to evict; it forgets that when there is room.
    tables_.store(&no_tables_);
    SayUsed(kBudget + 1);
    ASSERT_TRUE(Until([&] { return keeper_->exhausted(); }));
    SayUsed(0);
    ASSERT_TRUE(Until([&] { return !keeper_->exhausted(); }));
    tables_.store(&the_table_);
    t_.AtPoint("bwtree.evict.before_cas", [this] {
      reached_.Signal(RealRuntime());
      go_on_.Wait(RealRuntime(), kNoDeadline);
    });
    SayUsed(bytes);
    reached_.Wait(RealRuntime(), kNoDeadline);
  }
  // A thread that brings in data, and must not proceed before the keeper is released.
  std::unique_ptr<Thread> Waiting(PageKeeper::Room room) {
    return RealRuntime().StartThread("waits", [this, room] {
      begun_.fetch_add(1);
      keeper_->WaitForRoom(room);
      EXPECT_TRUE(let_go_.load());
    });
  }
  // There is room again.
  void LetGo(int waiting) {
    ASSERT_TRUE(Until([&] { return begun_.load() == waiting; }));
    for (int i = 0; i < 50; ++i) RealRuntime().Yield();  // enough time for a wrong thread to proceed
    let_go_.store(true);
    said_.store(0);
    go_on_.Signal(RealRuntime());
  }

  const std::vector<TableId> no_tables_;
  Event reached_;
  Event go_on_;
  std::atomic<int> begun_{0};
  std::atomic<bool> let_go_{false};
};

TEST_F(StoppedKeeperTest, WhoBringsInDataWaitsUntilThereIsRoom) {
  StopAt(kBudget + 1);
  const auto reads = Waiting(PageKeeper::Room::kToRead);
  const auto applies = Waiting(PageKeeper::Room::kToApply);
  LetGo(2);
  reads->Join();
  applies->Join();
}

TEST_F(StoppedKeeperTest, WhoAppliesTheLogLeavesASixteenthToWhoReads) {
  StopAt(kBudget);
  keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  // The thread waits for kPatience if there never is more room, and not at all if there is.
  const MonotonicTime begin = RealRuntime().Now();
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
  EXPECT_GE(RealRuntime().Now() - begin, PageKeeper::kPatience);
  said_.store(kBudget + 1);
  const auto applies = Waiting(PageKeeper::Room::kToApply);
  LetGo(1);
  applies->Join();
  said_.store(kBudget / 16 * 15);
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
}

TEST_F(PageKeeperTest, WhenNothingCanBeSwappedOutNobodyWaitsAndItIsSaid) {
  t_.Put(1, "the root of a table stays");
  Start();
  SayUsed(kBudget + 1);
  keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
  EXPECT_TRUE(Until([&] { return keeper_->exhausted(); }));
  EXPECT_GE(keeper_->rounds(), 3u);
  EXPECT_EQ(keeper_->evictions(), 0u);
  // Within the budget again: not exhausted any more.
  SayUsed(kBudget);
  EXPECT_TRUE(Until([&] { return !keeper_->exhausted(); }));
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);  // although less than its share is left
  SayUsed(0);
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
  // The same once more.
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return keeper_->exhausted(); }));
  SayUsed(0);
  EXPECT_TRUE(Until([&] { return !keeper_->exhausted(); }));
  EXPECT_EQ(errors_.load(), 0);
}

// Each attempt of the keeper lets some threads proceed, so the data that they bring in is bounded.
TEST_F(PageKeeperTest, WhenNothingCanBeSwappedOutSomeGoOnForEachTry) {
  t_.Put(1, "the root of a table stays");
  Start();
  SayUsed(kBudget + 1);
  ASSERT_TRUE(Until([&] { return keeper_->exhausted(); }));
  const uint64_t rounds = keeper_->rounds();
  for (int i = 0; i < 1000; ++i) keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  EXPECT_GE(keeper_->rounds() - rounds, 3 * (1000 / 64 - 2));
  SayUsed(0);
}

TEST_F(PageKeeperTest, AFullDiskExhaustsMemoryUntilThereIsSpace) {
  t_.FillSettled(200);
  for (uint64_t i = 0; i < 200; ++i) t_.Put(i, "changed");
  ForgetTouches();
  t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
  Start();
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return keeper_->exhausted(); }));
  keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  keeper_->WaitForRoom(PageKeeper::Room::kToApply);
  EXPECT_GE(errors_.load(), 1);
  EXPECT_EQ(last_error_.load(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(keeper_->evictions(), 0u);
  t_.disk().RemoveAllFaults();
  EXPECT_TRUE(Until([&] { return keeper_->evictions() > 0; }));
  SayUsed(0);
  EXPECT_TRUE(Until([&] { return !keeper_->exhausted(); }));
  t_.ExpectRight();
}

TEST_F(PageKeeperTest, AFailedWriteIsToldAndNothingIsLostInMemory) {
  t_.FillSettled(200);
  for (uint64_t i = 0; i < 200; ++i) t_.Put(i, "changed");
  ForgetTouches();
  t_.disk().AddFault({.kinds = kDiskWrite, .count = 1});
  Start();
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return errors_.load() > 0; }));
  EXPECT_EQ(last_error_.load(), ErrorCode::kIoError);
  keeper_->WaitForRoom(PageKeeper::Room::kToRead);
  EXPECT_EQ(keeper_->evictions(), 0u);
  keeper_.reset();
  started_.store(nullptr);
  t_.ExpectRight();
}

TEST_F(PageKeeperTest, TablesThatAreGoneArePassedBy) {
  t_.FillSettled(200);
  ForgetTouches();
  const std::vector<TableId> with_others{TableId(1), StoredTree::kTable, TableId(99)};
  const std::vector<TableId> others{TableId(1), TableId(99)};
  tables_.store(&with_others);
  Start();
  SwapOut(10);
  // Only tables that are gone.
  tables_.store(&others);
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return keeper_->exhausted(); }));
  SayUsed(0);
  keeper_.reset();
  t_.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
