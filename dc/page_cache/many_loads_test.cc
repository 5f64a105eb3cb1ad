// Many loads at once: the reads in flight, the order of waiters, loads that wait for memory or that nobody waits for,
// and files that have to be opened first.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/segment_format.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Loads of many leaves, and continuations in place of threads that wait.
class ManyLoadsTest : public ::testing::Test {
 protected:
  // Counts its calls, and calls `then` within each, if there is one.
  class Waiter final : public LoadWaiter {
   public:
    void OnLoaded(const Status& status) override {
      if (!status.ok()) failed_.fetch_add(1);
      if (then) then();
      calls_.fetch_add(1);
    }
    int calls() const { return calls_.load(); }
    int failed() const { return failed_.load(); }
    std::function<void()> then;

   private:
    std::atomic<int> calls_{0};
    std::atomic<int> failed_{0};
  };

  ManyLoadsTest() {
    t_.FillSettled(400);
    for (uint64_t i = 0; i < 400; i += 20) keys_.push_back(KeyOf(i));
    EvictAll();
  }
  void EvictAll() {
    for (const PageId leaf : t_.Pages(0)) {
      if (t_.HeadOf(leaf) != nullptr) EXPECT_TRUE(t_.Evict(leaf));
    }
  }
  std::unique_ptr<PageLoader> NewLoader(const PageLoaderOptions& options = {}) {
    return *PageLoader::Create(RealRuntime(), t_, t_.domain(), t_.store(), &damaged_, options);
  }
  size_t NotInMemory() {
    size_t count = 0;
    for (const std::string& key : keys_) count += t_.tree().FindUnloadedLeaves(Target(key, Side::kAt), true, 0).size();
    return count;
  }
  // False: the condition has not become true in time.
  template <typename Condition>
  [[nodiscard]] static bool Until(const Condition& condition, Duration patience = std::chrono::seconds(30)) {
    const MonotonicTime limit = RealRuntime().Now() + patience;
    while (!condition()) {
      if (RealRuntime().Now() > limit) return false;
      RealRuntime().Yield();
    }
    return true;
  }
  static Result<bool> Start(PageLoader& loader, const std::string& key, LoadUrgency urgency, LoadWaiter* waiter) {
    return loader.Start(StoredTree::kTable, Target(key, Side::kAt), urgency, waiter);
  }

  StoredTree t_;
  DamagedPages damaged_{RealRuntime()};
  std::vector<std::string> keys_;
};

TEST_F(ManyLoadsTest, LoadAllReturnsWhenEachLeafWasTried) {
  const auto loader = NewLoader();
  EXPECT_EQ(NotInMemory(), keys_.size());
  EXPECT_TRUE(loader->LoadAll(StoredTree::kTable, {}, Side::kAt).ok());
  EXPECT_TRUE(loader->LoadAll(StoredTree::kTable, std::span(keys_).first(1), Side::kAt).ok());
  EXPECT_EQ(NotInMemory(), keys_.size() - 1);
  EXPECT_TRUE(loader->LoadAll(StoredTree::kTable, keys_, Side::kAt).ok());
  EXPECT_EQ(NotInMemory(), 0u);
  t_.ExpectRight();
}

TEST_F(ManyLoadsTest, LoadAllReturnsAnErrorAndLoadsTheOtherLeaves) {
  const auto loader = NewLoader();
  t_.disk().AddFault({.kinds = kDiskRead, .count = 1});
  EXPECT_EQ(loader->LoadAll(StoredTree::kTable, keys_, Side::kAt), ErrorCode::kIoError);
  EXPECT_EQ(NotInMemory(), 1u);
}

TEST_F(ManyLoadsTest, ReadsOfOneCallAreInFlightTogetherUpToTheBound) {
  const auto loader = NewLoader({.threads = 1, .reads_in_flight = 12});
  t_.disk().HoldOperations(kDiskRead);
  const auto caller =
      RealRuntime().StartThread("caller", [&] { (void)loader->LoadAll(StoredTree::kTable, keys_, Side::kAt); });
  EXPECT_TRUE(Until([&] { return t_.disk().held_operations() >= 12; })) << t_.disk().held_operations();
  for (int i = 0; i < 200; ++i) {
    RealRuntime().Yield();
    EXPECT_LE(t_.disk().held_operations(), 12 + ImageParts::kMax - 1);
  }
  t_.disk().HoldOperations(0);
  caller->Join();
  EXPECT_EQ(NotInMemory(), 0u);
}

TEST_F(ManyLoadsTest, SeveralCallersAtOnceWithReadsThatCompleteInAnyOrder) {
  const auto loader = NewLoader();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Thread>> callers;
    for (int i = 0; i < 3; ++i) {
      callers.push_back(RealRuntime().StartThread("caller", [&, i] {
        (void)loader->LoadAll(StoredTree::kTable, std::span(keys_).subspan(static_cast<size_t>(i) * 5), Side::kAt);
      }));
    }
    callers.clear();
    EXPECT_EQ(NotInMemory(), 0u);
    EvictAll();
  }
  t_.ExpectRight();
}

TEST_F(ManyLoadsTest, AnUnreadablePageIsRecordedAndFailsOnlyItsOwnWaiters) {
  const auto loader = NewLoader();
  t_.disk().AddFault({.kinds = kDiskRead, .count = 1});
  t_.disk().AddFault({.action = DiskFault::Action::kShort, .kinds = kDiskRead, .skip = 8, .count = 1});
  std::vector<Waiter> waiters(keys_.size());
  for (size_t i = 0; i < keys_.size(); ++i) {
    const auto started = Start(*loader, keys_[i], LoadUrgency::kNow, &waiters[i]);
    ASSERT_TRUE(started.ok() && *started);
  }
  int failed = 0;
  for (const Waiter& waiter : waiters) {
    ASSERT_TRUE(Until([&] { return waiter.calls() == 1; }));
    failed += waiter.failed();
  }
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(damaged_.count(), 2u);
  EXPECT_EQ(NotInMemory(), 2u);
}

TEST_F(ManyLoadsTest, MissesOfOnePageShareOneRead) {
  const auto loader = NewLoader();
  t_.disk().HoldOperations(kDiskRead);
  std::vector<Waiter> waiters(10);
  for (Waiter& waiter : waiters) ASSERT_TRUE(Start(*loader, keys_[3], LoadUrgency::kNow, &waiter).ok());
  ASSERT_TRUE(Until([&] { return t_.disk().held_operations() != 0; }));
  t_.disk().HoldOperations(0);
  for (const Waiter& waiter : waiters) ASSERT_TRUE(Until([&] { return waiter.calls() == 1; }));
  EXPECT_EQ(loader->loads(), 1u);
  EXPECT_EQ(NotInMemory(), keys_.size() - 1);
}

TEST_F(ManyLoadsTest, AWaiterMayStartALoadOfTheSamePageAgain) {
  const auto loader = NewLoader({.threads = 1});
  Waiter first;
  Waiter second;
  first.then = [&] {
    // The page leaves memory again before the next waiter looks at it.
    for (const PageId leaf : t_.Pages(0)) {
      if (t_.HeadOf(leaf) != nullptr) EXPECT_TRUE(t_.Evict(leaf));
    }
    const auto started = Start(*loader, keys_[0], LoadUrgency::kNow, &second);
    EXPECT_TRUE(started.ok() && *started);
  };
  ASSERT_TRUE(Start(*loader, keys_[0], LoadUrgency::kNow, &first).ok());
  EXPECT_TRUE(Until([&] { return first.calls() == 1 && second.calls() == 1; }));
  EXPECT_EQ(loader->loads(), 2u);
  EXPECT_EQ(NotInMemory(), keys_.size() - 1);
}

TEST_F(ManyLoadsTest, ALoadWaitsForMemoryWithoutAThreadAndUrgentOnesPassIt) {
  std::atomic<bool> has_memory{false};
  const auto loader = NewLoader({.threads = 1});
  loader->SetMemoryGate([&](uint64_t, LoadAdmission) { return has_memory.load(); });
  Waiter patient;
  ASSERT_TRUE(Start(*loader, keys_[0], LoadUrgency::kWhenMemory, &patient).ok());
  ASSERT_TRUE(loader->Load(StoredTree::kTable, Target(keys_[1], Side::kAt)).ok());
  EXPECT_EQ(patient.calls(), 0);
  EXPECT_EQ(loader->loads(), 1u);
  has_memory.store(true);
  loader->OnMemoryFreed();
  EXPECT_TRUE(Until([&] { return patient.calls() == 1; }));
  EXPECT_EQ(NotInMemory(), keys_.size() - 2);
  loader->SetMemoryGate(nullptr);
}

// The evictor may load the page that a read waits for. It must not wait until the evictor has freed memory.
TEST_F(ManyLoadsTest, AnUrgentLoadTakesALoadThatWaitsForMemoryAlong) {
  const auto loader = NewLoader({.threads = 1});
  loader->SetMemoryGate([](uint64_t, LoadAdmission) { return false; });
  Waiter patient;
  ASSERT_TRUE(Start(*loader, keys_[0], LoadUrgency::kWhenMemory, &patient).ok());
  Waiter urgent;
  ASSERT_TRUE(Start(*loader, keys_[0], LoadUrgency::kNow, &urgent).ok());
  EXPECT_TRUE(Until([&] { return urgent.calls() == 1 && patient.calls() == 1; }, std::chrono::seconds(10)));
  loader->SetMemoryGate(nullptr);  // so that the loader can end
  EXPECT_TRUE(Until([&] { return urgent.calls() == 1 && patient.calls() == 1; }));
  EXPECT_EQ(loader->loads(), 1u);
}

// Reads in flight are waited for; loads that have not begun to read are given up.
TEST_F(ManyLoadsTest, TheLoaderEndsWithLoadsThatNobodyWaitsFor) {
  auto loader = NewLoader({.threads = 1, .reads_in_flight = 1});
  t_.disk().HoldOperations(kDiskRead);
  loader->ReadAhead(StoredTree::kTable, keys_, Side::kAt);
  ASSERT_TRUE(Until([&] { return t_.disk().held_operations() != 0; }));
  Event stopping;
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "page_cache.load.stopping") stopping.Signal(RealRuntime());
  });
  const auto end = RealRuntime().StartThread("end", [&] { loader.reset(); });
  ASSERT_TRUE(stopping.Wait(RealRuntime(), kNoDeadline));
  t_.disk().HoldOperations(0);
  end->Join();
  testing::SetPointHandler({});
  EXPECT_EQ(NotInMemory(), keys_.size() - 1);
  t_.ExpectRight();
}

TEST_F(ManyLoadsTest, LoadsThatNobodyWaitsForAreGivenUpWhenMemoryIsShort) {
  std::atomic<bool> has_memory{false};
  const auto loader = NewLoader({.threads = 1});
  loader->SetMemoryGate([&](uint64_t, LoadAdmission) { return has_memory.load(); });
  loader->ReadAhead(StoredTree::kTable, std::span(keys_).first(9), Side::kAt);
  Waiter patient;
  ASSERT_TRUE(Start(*loader, keys_[9], LoadUrgency::kWhenMemory, &patient).ok());
  // When this load has ended, the thread has looked for memory for all of them.
  ASSERT_TRUE(loader->Load(StoredTree::kTable, Target(keys_[10], Side::kAt)).ok());
  has_memory.store(true);
  loader->OnMemoryFreed();
  EXPECT_TRUE(Until([&] { return patient.calls() == 1; }));
  loader->SetMemoryGate(nullptr);
  EXPECT_EQ(loader->loads(), 2u);
  EXPECT_EQ(NotInMemory(), keys_.size() - 2);
}

TEST_F(ManyLoadsTest, ALoadThatGetsAWaiterPassesThoseThatNobodyWaitsFor) {
  const auto loader = NewLoader({.threads = 1, .reads_in_flight = 1});
  t_.disk().HoldOperations(kDiskRead);
  loader->ReadAhead(StoredTree::kTable, keys_, Side::kAt);
  ASSERT_TRUE(Until([&] { return t_.disk().held_operations() != 0; }));
  Waiter waiter;
  uint64_t begun = 0;
  waiter.then = [&] { begun = loader->loads(); };
  ASSERT_TRUE(Start(*loader, keys_[15], LoadUrgency::kWhenMemory, &waiter).ok());
  t_.disk().HoldOperations(0);
  ASSERT_TRUE(Until([&] { return waiter.calls() == 1; }));
  EXPECT_LE(begun, 2u);
}

// A page that was read and is not installed yet has its buffer still.
TEST_F(ManyLoadsTest, PagesThatAreNotInstalledYetTakeTheirPlaces) {
  const auto loader = NewLoader({.threads = 1, .reads_in_flight = 2});
  Event building;
  Event go_on;
  std::atomic<int> passes{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "bwtree.load.before_cas" || passes.fetch_add(1) != 0) return;
    building.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  const auto caller =
      RealRuntime().StartThread("caller", [&] { (void)loader->LoadAll(StoredTree::kTable, keys_, Side::kAt); });
  ASSERT_TRUE(building.Wait(RealRuntime(), kNoDeadline));
  EXPECT_LE(loader->loads(), 2u);
  go_on.Signal(RealRuntime());
  caller->Join();
  testing::SetPointHandler({});
  EXPECT_EQ(NotInMemory(), 0u);
}

TEST_F(ManyLoadsTest, ThePagesThatOtherThreadsAreLoadingCountAsMemory) {
  const auto loader = NewLoader({.threads = 2});
  std::atomic<uint64_t> loading{0};
  loader->SetMemoryGate([&](uint64_t bytes, LoadAdmission) {
    loading.store(bytes);
    return true;
  });
  t_.disk().HoldOperations(kDiskRead);
  const std::span<const std::string> others = std::span<const std::string>(keys_).first(keys_.size() - 1);
  uint64_t expected = 0;
  for (size_t i = 0; i < others.size(); ++i) {
    const ImageParts image = t_.ImageOf(t_.LeafOf(20 * i));
    for (const PageAddress part : image.all()) expected += part.length_bound();
  }
  const auto caller =
      RealRuntime().StartThread("caller", [&] { (void)loader->LoadAll(StoredTree::kTable, others, Side::kAt); });
  EXPECT_TRUE(Until([&] { return loader->loads() == others.size(); }));
  Waiter patient;
  EXPECT_TRUE(Start(*loader, keys_.back(), LoadUrgency::kWhenMemory, &patient).ok());
  EXPECT_TRUE(Until([&] { return loader->loads() == keys_.size(); }));
  EXPECT_EQ(loading.load(), expected);
  t_.disk().HoldOperations(0);
  caller->Join();
  EXPECT_TRUE(Until([&] { return patient.calls() == 1; }));
  loader->SetMemoryGate(nullptr);
}

TEST_F(ManyLoadsTest, TheThreadsThatGetAQueueShareAllReads) {
  std::atomic<int> queues{0};
  testing::SetCasHandler(
      [&](std::string_view name) { return name == "page_cache.load.queue" && queues.fetch_add(1) == 1; });
  const auto loader = NewLoader({.threads = 4, .reads_in_flight = 15});
  testing::SetCasHandler({});
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < 400; ++i) keys.push_back(KeyOf(i));
  // Two of the threads remain, with 8 and 7 places.
  size_t even = 0;
  size_t odd = 0;
  for (const PageId leaf : t_.Pages(0)) ++(leaf.value % 2 == 0 ? even : odd);
  t_.disk().HoldOperations(kDiskRead);
  const auto caller =
      RealRuntime().StartThread("caller", [&] { (void)loader->LoadAll(StoredTree::kTable, keys, Side::kAt); });
  const uint64_t expected = std::min<size_t>(even, 8) + std::min<size_t>(odd, 7);
  EXPECT_TRUE(Until([&] { return loader->loads() >= expected; })) << loader->loads();
  EXPECT_EQ(loader->loads(), expected);
  t_.disk().HoldOperations(0);
  caller->Join();
}

TEST_F(ManyLoadsTest, NoMoreThreadsThanReads) {
  std::atomic<int> queues{0};
  testing::SetCasHandler([&](std::string_view name) {
    if (name == "page_cache.load.queue") queues.fetch_add(1);
    return false;
  });
  const auto loader = NewLoader({.threads = 4, .reads_in_flight = 3});
  testing::SetCasHandler({});
  EXPECT_EQ(queues.load(), 2) << "and the first one, which a test cannot refuse";
}

TEST_F(ManyLoadsTest, WaitersOfOnePageAreCalledInTheOrderOfTheirArrival) {
  const auto loader = NewLoader({.threads = 1});
  t_.disk().HoldOperations(kDiskRead);
  std::vector<size_t> order;
  std::vector<Waiter> waiters(20);
  for (size_t i = 0; i < waiters.size(); ++i) {
    waiters[i].then = [&order, i] { order.push_back(i); };
    ASSERT_TRUE(Start(*loader, keys_[3], LoadUrgency::kNow, &waiters[i]).ok());
  }
  t_.disk().HoldOperations(0);
  for (const Waiter& waiter : waiters) ASSERT_TRUE(Until([&] { return waiter.calls() == 1; }));
  for (size_t i = 0; i < waiters.size(); ++i) EXPECT_EQ(order[i], i);
}

TEST_F(ManyLoadsTest, AWaiterThatCallsItselfAgainLetsOthersPass) {
  constexpr int kCalls = 1000;
  const auto loader = NewLoader({.threads = 1});
  t_.disk().HoldOperations(kDiskRead);
  Waiter busy;
  int calls = 0;
  busy.then = [&] {
    if (++calls < kCalls) PageLoader::CallAgain(&busy);
  };
  Waiter other;
  int before = 0;
  other.then = [&] { before = calls; };
  ASSERT_TRUE(Start(*loader, keys_[0], LoadUrgency::kNow, &busy).ok());
  ASSERT_TRUE(Start(*loader, keys_[1], LoadUrgency::kNow, &other).ok());
  EXPECT_TRUE(Until([&] { return loader->loads() == 2; }));
  t_.disk().HoldOperations(0);
  EXPECT_TRUE(Until([&] { return other.calls() == 1 && busy.calls() == kCalls; }));
  EXPECT_LE(before, 10);
}

// Some leaves have an image in segments whose files are not open.
class UnopenedFileTest : public ManyLoadsTest {
 protected:
  // The last kUnopened of keys_.
  static constexpr size_t kUnopened = 6;

  UnopenedFileTest() {
    t_.NewFlusher();  // begins new segments
    for (size_t i = keys_.size() - kUnopened; i < keys_.size(); ++i) {
      const PageId leaf = t_.LeafOf(20 * i);
      t_.Put(20 * i, "elsewhere");
      t_.Flush(leaf);
      const ImageParts image = t_.ImageOf(leaf);
      segment_ = SegmentName(image.count() == 1 ? SegmentKind::kBase : SegmentKind::kDelta, image.newest().segment());
    }
    EvictAll();
  }

  std::string segment_;  // of all of them
};

TEST_F(UnopenedFileTest, AFileThatIsOpenedHoldsNoOtherReadBack) {
  const auto loader = NewLoader({.threads = 1});
  t_.disk().HoldOperations(kDiskOpen, segment_);
  std::vector<Waiter> unopened(kUnopened);
  for (size_t i = 0; i < kUnopened; ++i) {
    ASSERT_TRUE(Start(*loader, keys_[keys_.size() - kUnopened + i], LoadUrgency::kNow, &unopened[i]).ok());
  }
  EXPECT_TRUE(Until([&] { return t_.disk().held_operations() != 0; }));
  Waiter other;
  ASSERT_TRUE(Start(*loader, keys_[0], LoadUrgency::kNow, &other).ok());
  EXPECT_TRUE(Until([&] { return other.calls() == 1; }, std::chrono::seconds(10)));
  for (const Waiter& waiter : unopened) EXPECT_EQ(waiter.calls(), 0);
  t_.disk().HoldOperations(0);
  for (const Waiter& waiter : unopened) ASSERT_TRUE(Until([&] { return waiter.calls() == 1; }));
  EXPECT_EQ(NotInMemory(), keys_.size() - kUnopened - 1);
  t_.ExpectRight();
}

TEST_F(UnopenedFileTest, AShortageOfDescriptorsIsWaitedOutWithoutTheLoadThread) {
  const auto loader = NewLoader({.threads = 1});
  const int fault =
      t_.disk().AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen, .path_contains = segment_});
  Waiter unopened;
  ASSERT_TRUE(Start(*loader, keys_.back(), LoadUrgency::kNow, &unopened).ok());
  EXPECT_TRUE(Until([&] { return t_.disk().hits(fault) >= 2; })) << "tried again";
  EXPECT_TRUE(loader->Load(StoredTree::kTable, Target(keys_[0], Side::kAt)).ok());
  t_.disk().RemoveFault(fault);
  ASSERT_TRUE(Until([&] { return unopened.calls() == 1; }));
  EXPECT_EQ(unopened.failed(), 0);
}

TEST_F(UnopenedFileTest, ALastingShortageEndsAllLoadsAndIsNoDamage) {
  const auto loader = NewLoader({.threads = 1});
  const int fault =
      t_.disk().AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen, .path_contains = segment_});
  std::vector<Waiter> unopened(kUnopened);
  for (size_t i = 0; i < kUnopened; ++i) {
    ASSERT_TRUE(Start(*loader, keys_[keys_.size() - kUnopened + i], LoadUrgency::kNow, &unopened[i]).ok());
  }
  for (const Waiter& waiter : unopened) {
    ASSERT_TRUE(Until([&] { return waiter.calls() == 1; }));
    EXPECT_EQ(waiter.failed(), 1);
  }
  EXPECT_EQ(damaged_.count(), 0u);
  t_.disk().RemoveFault(fault);
  EXPECT_TRUE(loader->Load(StoredTree::kTable, Target(keys_.back(), Side::kAt)).ok());
}

}  // namespace
}  // namespace deut::dc
