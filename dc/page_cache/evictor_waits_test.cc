// Waits for free memory: the threads and loads that wait for the evictor, and those that proceed although nothing can be
// evicted.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_evictor_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

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

}  // namespace
}  // namespace deut::dc
