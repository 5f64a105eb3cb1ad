// Progress: a thread is stopped at a named point, between a load and its compare-and-swap (or between the steps of a
// split). All others then finish kOperations operations each, also on the same page and key. No thread waits for
// another in the tree, so there is no exception to list.
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKeys = 2000;
constexpr uint64_t kHotKey = 1000;
constexpr int kOthers = 2;
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define DEUT_SANITIZED
#endif
#endif
#ifdef DEUT_SANITIZED
constexpr int kOperations = 20000;  // enough for the sanitizers; the release build proves the number
#else
constexpr int kOperations = 100000;
#endif

// Test points of the tree. The test finds the reclamation domain's points by running the workload.
constexpr const char* kTreePoints[] = {
    "bwtree.update.before_cas",        "bwtree.update.before_forced_cas", "bwtree.consolidate.collected",
    "bwtree.consolidate.before_cas",   "bwtree.split.before_cas",         "bwtree.split.before_post",
    "bwtree.forced_split.before_post", "bwtree.split_root.before_cas",    "bwtree.post.before_cas",
    "bwtree.change.before_cas",        "bwtree.descend.step_right",       "bwtree.descend.before_child",
    "mapping_table.pop.before_cas",    "mapping_table.push.before_cas"};

class Workload {
 public:
  explicit Workload(TestTree& tree) : tree_(tree), latest_(kKeys) {}

  void Operate(Random& random) {
    const uint64_t key = random.OneIn(2) ? kHotKey : random.Below(kKeys);
    switch (random.Below(8)) {
      case 0: {
        RecordBatch batch;
        if (tree_.tree->Read(KeyOf(key), &batch) == BwTree::Found::kYes) ASSERT_EQ(batch.size(), 1u);
        return;
      }
      case 1: {
        RecordBatch batch;
        ScanCursor cursor;
        ScanBudget budget;
        const bool ascending = random.OneIn(2);
        (ascending ? cursor.low : cursor.high) = KeyOf(key);
        budget.records = 10;
        ASSERT_TRUE(ascending ? tree_.tree->ScanAscending(&cursor, &budget, &batch)
                              : tree_.tree->ScanDescending(&cursor, &budget, &batch));
        return;
      }
      default: {
        const uint64_t version = clock_.fetch_add(1) + 1;
        const bool put = !random.OneIn(8);
        if (put) {
          tree_.Put(KeyOf(key), std::string(8, 'v'), V(version));
        } else {
          tree_.Delete(KeyOf(key), V(version));
        }
        const uint64_t word = version * 2 + (put ? 1 : 0);
        uint64_t seen = latest_[key].load();
        while (seen < word && !latest_[key].compare_exchange_weak(seen, word)) {
        }
        return;
      }
    }
  }

  // Puts every key, then deletes all but every tenth for good.
  void FillAndEmpty() {
    for (uint64_t key = 0; key < kKeys; ++key) {
      latest_[key] = (clock_ + 1) * 2 + 1;
      tree_.Put(KeyOf(key), std::string(8, 'v'), V(++clock_));
    }
    for (uint64_t key = 0; key < kKeys; ++key) {
      if (key % 10 == 0) continue;
      latest_[key] = (clock_ + 1) * 2;
      tree_.Delete(KeyOf(key), V(++clock_));
    }
    tree_.consolidation = clock_ + 1;
  }

  void ExpectLatest() {
    for (uint64_t key = 0; key < kKeys; ++key) {
      const auto found = tree_.Read(KeyOf(key));
      const uint64_t word = latest_[key].load();
      ASSERT_EQ(found != nullptr, (word & 1) != 0) << key;
      if (found != nullptr) ASSERT_EQ(found->version, V(word / 2)) << key;
    }
  }

 private:
  TestTree& tree_;
  std::atomic<uint64_t> clock_{0};
  std::vector<std::atomic<uint64_t>> latest_;
};

// Makes rare paths common: compare-and-swaps lose often while this object lives.
class FrequentLosses {
 public:
  FrequentLosses() {
    testing::SetCasHandler([this](std::string_view name) {
      const uint64_t number = number_.fetch_add(1);
      return Mix64(number) % 8 < (name == "bwtree.consolidate.cas" || name == "bwtree.split.cas" ? 6u : 1u);
    });
  }
  ~FrequentLosses() { testing::SetCasHandler(nullptr); }

 private:
  std::atomic<uint64_t> number_{0};
};

thread_local bool is_victim = false;

// Splits by other threads stay unfinished for a while, so that some thread meets them.
void LingerInSplit(std::string_view name) {
  if (!name.ends_with("split.before_post")) return;
  for (int i = 0; i < 20; ++i) RealRuntime().Yield();
}

// Stops the victim the first time it passes `target`, until released.
class Stop {
 public:
  explicit Stop(std::string target) : target_(std::move(target)) {
    testing::SetPointHandler([this](std::string_view name) {
      if (stopped_.IsSet()) return;
      if (!is_victim) return LingerInSplit(name);
      if (name != target_) return;
      stopped_.Signal(RealRuntime());
      release_.Wait(RealRuntime(), kNoDeadline);
    });
  }
  ~Stop() { testing::SetPointHandler(nullptr); }

  bool stopped() const { return stopped_.IsSet(); }
  void Release() { release_.Signal(RealRuntime()); }

 private:
  const std::string target_;
  Event stopped_;
  Event release_;
};

// Returns the points that the workload passes in a short run.
std::set<std::string> PointsPassed() {
  std::mutex mutex;
  std::set<std::string> names;
  testing::SetPointHandler([&](std::string_view name) {
    LingerInSplit(name);
    const std::lock_guard<std::mutex> lock(mutex);
    names.emplace(name);
  });
  TestTree t;
  Workload workload(t);
  {
    FrequentLosses losses;
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t i = 0; i < 3; ++i) {
      threads.push_back(RealRuntime().StartThread("finder", [&workload, i] {
        Random random(i);
        for (int n = 0; n < 20000; ++n) workload.Operate(random);
      }));
    }
    threads.clear();
    t.domain.Collect();
  }
  testing::SetPointHandler(nullptr);
  return names;
}

void RunOthers(Workload& workload) {
  std::atomic<int> finished{0};
  Event all_finished;
  std::vector<std::unique_ptr<Thread>> others;
  for (uint64_t i = 0; i < kOthers; ++i) {
    others.push_back(RealRuntime().StartThread("other", [&, i] {
      Random random(10 + i);
      for (int n = 0; n < kOperations; ++n) workload.Operate(random);
      if (finished.fetch_add(1) + 1 == kOthers) all_finished.Signal(RealRuntime());
    }));
  }
  EXPECT_TRUE(all_finished.Wait(RealRuntime(), RealRuntime().Now() + seconds(60)))
      << "others wait for the stopped thread";
}

// Runs on a tree of its own. False: the victim did not reach the point while this tree was young, when it splits
// most.
bool StopOnce(const std::string& point, uint64_t seed, bool last) {
  TestTree t;
  Workload workload(t);
  Stop stop(point);
  std::atomic<bool> victim_may_end{false};
  std::atomic<int> victim_operations{0};
  std::unique_ptr<Thread> victim;
  {
    FrequentLosses losses;
    victim = RealRuntime().StartThread("victim", [&] {
      is_victim = true;
      Random random(2 * seed);
      for (; !victim_may_end.load(); victim_operations.fetch_add(1)) workload.Operate(random);
    });
    // The victim runs alone at first, for points that a young tree passes once. Then another thread joins, for points
    // that need two threads.
    Random random(2 * seed + 1);
    while (!stop.stopped() && victim_operations.load() < 2000) RealRuntime().Yield();
    const MonotonicTime turn = RealRuntime().Now() + seconds(1);
    while (!stop.stopped() && RealRuntime().Now() < turn) workload.Operate(random);
  }
  const bool stopped = stop.stopped();
  EXPECT_TRUE(stopped || !last) << "the victim never came there";
  if (stopped) RunOthers(workload);
  victim_may_end.store(true);
  stop.Release();
  victim->Join();
  if (stopped) workload.ExpectLatest();
  return stopped;
}

void StopAt(const std::string& point) {
  SCOPED_TRACE(point);
  const MonotonicTime patience = RealRuntime().Now() + seconds(60);
  for (uint64_t seed = 1;; ++seed) {
    const bool last = RealRuntime().Now() >= patience;
    if (StopOnce(point, seed, last) || last) return;
  }
}

TEST(BwTreeProgressTest, OthersFinishWhileOneIsStopped) {
  std::set<std::string> points = PointsPassed();
  for (const char* point : kTreePoints) EXPECT_EQ(points.count(point), 1u) << point << " was never passed";
  for (const std::string& point : points) {
    const bool of_others = !point.starts_with("bwtree.") && !point.starts_with("mapping_table.");
    EXPECT_TRUE(of_others || std::find(std::begin(kTreePoints), std::end(kTreePoints), point) != std::end(kTreePoints))
        << point << " is not in the list";
  }
  for (const char* point : kTreePoints) StopAt(point);
}

// The merging thread stops between any two steps; the other threads also use the pages that it was about to merge.
TEST(BwTreeProgressTest, OthersFinishWhileAMergeIsStopped) {
  for (const char* point : {"bwtree.merge.before_remove", "bwtree.merge.before_unlink", "bwtree.merge.before_absorb",
                            "bwtree.merge.before_touch"}) {
    SCOPED_TRACE(point);
    BwTreeOptions options = SmallPages();
    options.inner_page_bytes = 1024;
    TestTree t(options);
    Workload workload(t);
    workload.FillAndEmpty();
    Stop stop(point);
    std::atomic<bool> victim_may_end{false};
    const auto victim = RealRuntime().StartThread("victim", [&] {
      is_victim = true;
      while (!victim_may_end.load()) MergeOnce(t.tree.get());
    });
    const MonotonicTime patience = RealRuntime().Now() + seconds(20);
    while (!stop.stopped() && RealRuntime().Now() < patience) RealRuntime().Yield();
    EXPECT_TRUE(stop.stopped()) << "the victim never came there";
    RunOthers(workload);
    victim_may_end.store(true);
    stop.Release();
    victim->Join();
    workload.ExpectLatest();
  }
}

// The reclamation domain's own points: users of the tree run while a thread is stopped inside the domain.
TEST(BwTreeProgressTest, OthersFinishWhileOneIsStoppedInReclamation) {
  for (const char* point : {"reclamation.enter.before_store", "reclamation.enter.before_second_look",
                            "reclamation.retire.garbage_out", "reclamation.before_seal"}) {
    StopAt(point);
  }
}

}  // namespace
}  // namespace deut::dc
