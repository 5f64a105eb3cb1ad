#include "dc/page_cache/page_evictor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
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

// A tree and its evictor. The test sets the amount of used memory, or it is measured.
class PageEvictorTest : public ::testing::Test, public TableList {
 protected:
  static constexpr uint64_t kMeasured = UINT64_MAX;

  void TearDown() override { evictor_.reset(); }

  std::vector<TableId> LiveTables() override { return *tables_.load(); }

  void Start() { Start(uint64_t{kBudget}); }
  // `budget`: a number of bytes, or a function that returns it.
  template <typename Budget>
  void Start(Budget budget) {
    auto created = PageEvictor::Create(RealRuntime(), t_.environment(), t_.store(), t_, *this, *loader_,
                                       PageEvictor::BudgetOfPages([this] { return used(); }, std::move(budget)),
                                       /*merge_interval=*/std::chrono::seconds(1), [this](const Status& status) {
                                         last_error_.store(status.code());
                                         errors_.fetch_add(1);
                                       });
    ASSERT_TRUE(created.ok());
    evictor_ = std::move(*created);
    started_.store(evictor_.get());
  }
  uint64_t used() {
    const PageEvictor* const evictor = started_.load();
    if (evictor == nullptr) return 0;
    // Memory counts as full until `wanted` pages have been evicted.
    if (const uint64_t wanted = wanted_.load(); wanted != 0) return evictor->evictions() < wanted ? kBudget + 1 : 0;
    const uint64_t said = said_.load();
    return said != kMeasured ? said : t_.tree().statistics().bytes;
  }
  void SayUsed(uint64_t bytes) {
    said_.store(bytes);
    evictor_->WakeIfOverHighMark();
  }
  // Lets the evictor work until it has evicted `pages` more pages.
  void SwapOut(uint64_t pages) {
    const uint64_t wanted = evictor_->evictions() + pages;
    wanted_.store(wanted);
    evictor_->WakeIfOverHighMark();
    ASSERT_TRUE(Until([&] { return evictor_->evictions() >= wanted; }));
    wanted_.store(0);
  }

  bool InMemory(PageId leaf) { return t_.HeadOf(leaf) != nullptr; }
  void ClearUsedMarks() {
    for (const PageId leaf : t_.Pages(0)) t_.pages().TestAndClearUsed(leaf);
  }

  StoredTree t_;
  const std::unique_ptr<PageLoader> loader_ = *PageLoader::Create(RealRuntime(), t_, t_.domain(), t_.store());
  const std::vector<TableId> the_table_{StoredTree::kTable};
  std::atomic<const std::vector<TableId>*> tables_{&the_table_};
  std::atomic<uint64_t> said_{0};
  std::atomic<uint64_t> wanted_{0};
  std::atomic<PageEvictor*> started_{nullptr};
  std::atomic<int> errors_{0};
  std::atomic<ErrorCode> last_error_{ErrorCode::kOk};
  std::unique_ptr<PageEvictor> evictor_;
};

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

// The evictor stops before its first eviction, until the test releases it.
class StoppedEvictorTest : public PageEvictorTest {
 protected:
  void StopAt(uint64_t bytes) {
    t_.FillSettled(200);
    ClearUsedMarks();
    Start();
    // The evictor once had nothing to evict; it forgets that when there is free memory.
    tables_.store(&no_tables_);
    SayUsed(kBudget + 1);
    ASSERT_TRUE(Until([&] { return evictor_->exhausted(); }));
    SayUsed(0);
    ASSERT_TRUE(Until([&] { return !evictor_->exhausted(); }));
    tables_.store(&the_table_);
    t_.AtPoint("bwtree.evict.before_cas", [this] {
      reached_.Signal(RealRuntime());
      go_on_.Wait(RealRuntime(), kNoDeadline);
    });
    SayUsed(bytes);
    reached_.Wait(RealRuntime(), kNoDeadline);
  }
  // A thread that brings in data, and must not proceed before the evictor is released.
  std::unique_ptr<Thread> Waiting(PageEvictor::Purpose purpose) {
    return RealRuntime().StartThread("waits", [this, purpose] {
      begun_.fetch_add(1);
      evictor_->WaitForMemory(purpose);
      EXPECT_TRUE(let_go_.load());
    });
  }
  // There is free memory again.
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

// A load that no thread waits for.
class Continuation final : public LoadWaiter {
 public:
  void OnLoaded(const Status& status) override {
    EXPECT_TRUE(status.ok()) << status.ToString();
    loaded_.store(true);
  }
  bool loaded() const { return loaded_.load(); }

 private:
  std::atomic<bool> loaded_{false};
};

class StoppedEvictorLoadTest : public StoppedEvictorTest {
 protected:
  // Starts a load that must wait.
  void StartLoad(Continuation* load) {
    StopAt(kBudget + 1);
    const std::string key = KeyOf(50);
    ASSERT_TRUE(t_.Evict(t_.LeafOf(50)));
    const Result<bool> started =
        loader_->Start(StoredTree::kTable, Target(key, Side::kAt), LoadUrgency::kWhenMemory, load);
    ASSERT_TRUE(started.ok() && *started);
    for (int i = 0; i < 200; ++i) RealRuntime().Yield();
    EXPECT_FALSE(load->loaded());
    EXPECT_EQ(loader_->loads(), 0u);
  }
};

TEST_F(StoppedEvictorLoadTest, ALoadThatNoThreadWaitsForWaitsForFreeMemory) {
  Continuation load;
  StartLoad(&load);
  LetGo(/*waiting=*/0);
  EXPECT_TRUE(Until([&] { return load.loaded(); }));
}

TEST_F(StoppedEvictorLoadTest, ItGoesOnWhenTheEvictorEnds) {
  Continuation load;
  StartLoad(&load);
  const auto end = RealRuntime().StartThread("end", [&] { evictor_.reset(); });
  EXPECT_TRUE(Until([&] { return load.loaded(); }));
  go_on_.Signal(RealRuntime());
  end->Join();
}

TEST_F(StoppedEvictorTest, AThreadThatBringsInDataWaitsForFreeMemory) {
  StopAt(kBudget + 1);
  const auto reads = Waiting(PageEvictor::Purpose::kToRead);
  const auto applies = Waiting(PageEvictor::Purpose::kToApply);
  LetGo(2);
  reads->Join();
  applies->Join();
}

TEST_F(StoppedEvictorTest, AThreadThatAppliesTheLogLeavesASixteenthToReaders) {
  StopAt(kBudget);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  // The thread waits for kMaxApplyWait if memory never becomes free, and not at all if there is.
  const MonotonicTime begin = RealRuntime().Now();
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
  EXPECT_GE(RealRuntime().Now() - begin, PageEvictor::kMaxApplyWait);
  said_.store(kBudget + 1);
  const auto applies = Waiting(PageEvictor::Purpose::kToApply);
  LetGo(1);
  applies->Join();
  said_.store(kBudget / 16 * 15);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
}

TEST_F(PageEvictorTest, WhenNoPageCanBeEvictedNoThreadWaitsAndMemoryIsExhausted) {
  t_.Put(1, "the root of a table stays");
  Start();
  SayUsed(kBudget + 1);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
  EXPECT_TRUE(Until([&] { return evictor_->exhausted(); }));
  EXPECT_GE(evictor_->rounds(), 3u);
  EXPECT_EQ(evictor_->evictions(), 0u);
  // Within the budget again: not exhausted any more.
  SayUsed(kBudget);
  EXPECT_TRUE(Until([&] { return !evictor_->exhausted(); }));
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);  // although less than its share is left
  SayUsed(0);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
  // The same once more.
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return evictor_->exhausted(); }));
  SayUsed(0);
  EXPECT_TRUE(Until([&] { return !evictor_->exhausted(); }));
  EXPECT_EQ(errors_.load(), 0);
}

// A thread that applies the log would wait before each update, if nothing can be evicted and its share is full.
TEST_F(PageEvictorTest, WhenNoPageCanBeEvictedBelowTheLimitApplyingGoesOn) {
  t_.Put(1, "the root of a table stays");
  Start();
  SayUsed(kBudget);
  ASSERT_TRUE(Until([&] { return evictor_->rounds() >= 12; }));
  // Calls that wait take a round or more each, in every try. Rounds of the evictor's own pass beside calls that do not
  // wait, many of them if this thread has no processor for a while, but not in every try.
  EXPECT_TRUE(Until([&] {
    const uint64_t before = evictor_->rounds();
    for (int i = 0; i < 60; ++i) evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
    return evictor_->rounds() - before < 60;
  }));
  EXPECT_FALSE(evictor_->exhausted());
  SayUsed(0);
}

// Each attempt of the evictor lets some threads proceed, so the data that they bring in is bounded.
TEST_F(PageEvictorTest, WhenNoPageCanBeEvictedSomeThreadsProceedAfterEachAttempt) {
  t_.Put(1, "the root of a table stays");
  Start();
  SayUsed(kBudget + 1);
  ASSERT_TRUE(Until([&] { return evictor_->exhausted(); }));
  const uint64_t rounds = evictor_->rounds();
  for (int i = 0; i < 1000; ++i) evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  EXPECT_GE(evictor_->rounds() - rounds, 3 * (1000 / 64 - 2));
  SayUsed(0);
}

// A thread is stopped inside its guard, so no evicted page is freed. Memory comes free when the thread goes on.
TEST_F(PageEvictorTest, WhileRetiredMemoryExceedsTheBudgetThreadsWaitForIt) {
  t_.FillSettled(400);
  ClearUsedMarks();
  const std::vector<PageId> leaves = t_.Pages(0);
  Start();
  std::atomic<bool> let_go{false};
  std::unique_ptr<Thread> waits;
  {
    const ReclamationDomain::Guard guard(t_.domain());
    SwapOut(leaves.size());  // nothing more can be evicted
    const uint64_t pending = t_.domain().pending_bytes();
    ASSERT_GT(pending, 1000u);
    SayUsed(kBudget + pending / 2);
    const auto attempts = [&] {  // three attempts that begin now, of three rounds each
      const uint64_t rounds = evictor_->rounds();
      return Until([&] { return evictor_->rounds() >= rounds + 12; });
    };
    ASSERT_TRUE(attempts());
    EXPECT_FALSE(evictor_->exhausted());
    waits = RealRuntime().StartThread("waits", [&] {
      evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
      EXPECT_TRUE(let_go.load());
    });
    ASSERT_TRUE(attempts());
    EXPECT_FALSE(evictor_->exhausted());
    let_go.store(true);
  }
  SayUsed(0);
  waits->Join();
}

TEST_F(PageEvictorTest, AFullDiskExhaustsMemoryUntilThereIsSpace) {
  t_.FillSettled(200);
  for (uint64_t i = 0; i < 200; ++i) t_.Put(i, "changed");
  ClearUsedMarks();
  t_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
  Start();
  SayUsed(kBudget + 1);
  EXPECT_TRUE(Until([&] { return evictor_->exhausted(); }));
  evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
  evictor_->WaitForMemory(PageEvictor::Purpose::kToApply);
  EXPECT_GE(errors_.load(), 1);
  EXPECT_EQ(last_error_.load(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(evictor_->evictions(), 0u);
  t_.disk().RemoveAllFaults();
  EXPECT_TRUE(Until([&] { return evictor_->evictions() > 0; }));
  SayUsed(0);
  EXPECT_TRUE(Until([&] { return !evictor_->exhausted(); }));
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

TEST_F(PageEvictorTest, PagesThatAreBeingLoadedCountWhenALoadIsAdmitted) {
  t_.FillSettled(100);
  Start();
  SayUsed(kBudget - 1000);
  EXPECT_TRUE(evictor_->AdmitsLoad(1000, LoadAdmission::kOrdinary));
  EXPECT_FALSE(evictor_->AdmitsLoad(1001, LoadAdmission::kOrdinary));
  EXPECT_FALSE(evictor_->AdmitsLoad(1001, LoadAdmission::kSpeculative));
  EXPECT_TRUE(evictor_->AdmitsLoad(1001, LoadAdmission::kOverdue));
  SayUsed(0);
  EXPECT_TRUE(evictor_->AdmitsLoad(1001, LoadAdmission::kOrdinary));
}

// Pages that nobody waits for would use up the admissions of those that somebody waits for.
TEST_F(PageEvictorTest, WhenNoPageCanBeEvictedNoPageIsReadThatNobodyWaitsFor) {
  t_.Put(1, "the root of a table stays");
  Start();
  SayUsed(kBudget + 1);
  ASSERT_TRUE(Until([&] { return evictor_->exhausted(); }));
  EXPECT_FALSE(evictor_->AdmitsLoad(0, LoadAdmission::kSpeculative));
  EXPECT_TRUE(Until([&] { return evictor_->AdmitsLoad(0, LoadAdmission::kOrdinary); }));
  SayUsed(0);
}

// The evictor's report wakes the load, and the load that finds no memory wakes the evictor.
TEST_F(PageEvictorTest, AnEvictorThatCannotHelpALoadPausesBetweenItsAttempts) {
  t_.FillSettled(400);
  const std::string key = KeyOf(50);
  ClearUsedMarks();
  const std::vector<PageId> leaves = t_.Pages(0);
  Start();
  Continuation load;
  {
    const ReclamationDomain::Guard guard(t_.domain());  // no evicted page is freed
    SwapOut(leaves.size());
    SayUsed(kBudget + t_.domain().pending_bytes() / 2);
    const auto passed = [&](uint64_t rounds) {
      const uint64_t before = evictor_->rounds();
      return Until([&] { return evictor_->rounds() >= before + rounds; });
    };
    ASSERT_TRUE(passed(6));  // an attempt that finds this state has ended
    // This thread has a guard, so another one starts the load.
    RealRuntime()
        .StartThread("starts",
                     [&] {
                       const Result<bool> started =
                           loader_->Start(StoredTree::kTable, Target(key, Side::kAt), LoadUrgency::kWhenMemory, &load);
                       ASSERT_TRUE(started.ok() && *started);
                     })
        ->Join();
    // Each attempt has three rounds. The first of these may have begun before, and the last may not have ended.
    constexpr uint64_t kAttempts = 8;
    const MonotonicTime begin = RealRuntime().Now();
    ASSERT_TRUE(passed(3 * kAttempts));
    EXPECT_GE(RealRuntime().Now() - begin, (kAttempts - 2) * PageEvictor::kPauseWithoutProgress);
    EXPECT_FALSE(load.loaded());
  }
  SayUsed(0);
  EXPECT_TRUE(Until([&] { return load.loaded(); }));
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
