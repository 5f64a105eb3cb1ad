// Progress: a thread is stopped at a named point, between its look and its compare-and-swap, in the active slots, the
//   record table, the chains, the ranges, or between the steps of an operation. Other threads then finish 100,000
//   operations each, on the same keys, buckets and ranges. Many of these are transactions that lose a conflict with
//   the stopped one, which is an outcome, not a wait.
// Few of these operations are commits (one in a hundred), and one in four thousand is a scan of the range that is
//   written to. While a stopped transaction holds low-water down, or the collector itself is stopped, nothing is
//   collected, and such a scan looks at every posting made since. One in fifty scans the other range. None of that is
//   waiting; it is only slow.
// There are two intended exceptions. A thread that is stopped inside a round of low-water holds low-water back (L2:
//   one thread at a time). The collector is one thread. No thread waits for either.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/txn/write_set.h"

namespace deut::tc {
namespace {

constexpr int kOthers = 2;
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr int kOperations = 30000;  // enough for the sanitizer; the number is the release build's
#define DEUT_FEW_OPERATIONS
#endif
#endif
#ifndef DEUT_FEW_OPERATIONS
constexpr int kOperations = 100000;
#endif

constexpr const char* kPoints[] = {"active.claim.before_cas",
                                   "active.begin.before_publish",
                                   "active.begin.after_publish",
                                   "active.begin.after_draw",
                                   "active.snapshot.before_publish",
                                   "active.snapshot.after_publish",
                                   "active.round.between",
                                   "active.round.scanned",
                                   "active.round.proposed",
                                   "range.raise.before_cas",
                                   "range.post.before_cas",
                                   "record_table.insert.before_cas",
                                   "record_table.raise.before_cas",
                                   "record_table.walk",
                                   "record_table.grow.before_cas",
                                   "record_table.floor.located",
                                   "record_table.floor.before_cas",
                                   "chain.install.before_cas",
                                   "read.floor_raised",
                                   "write_set.index_built",
                                   "write_set.index_loaded",
                                   "write.posted",
                                   "write.published",
                                   "write.installed",
                                   "write.checked",
                                   "scan.before_raise",
                                   "scan.raised",
                                   "scan.before_postings",
                                   "scan.postings_walked",
                                   "scan.looked",
                                   "scan.before_dc",
                                   "scan.after_dc",
                                   "collector.finish.before_cas",
                                   "collector.taken",
                                   "collector.readers_known",
                                   "chain.unread.before_unlink",
                                   "active.round.for_readers",
                                   "collector.fold.published",
                                   "collector.marked",
                                   "runs.before_publish",
                                   "chain.remove.before_cas",
                                   "record_table.seal.before_cas",
                                   "record_table.unlink.before_cas",
                                   "range.unlink.before_cas",
                                   "partition.published",
                                   "partition.sealed",
                                   "partition.marked",
                                   "range.fill.before_cas",
                                   "partition.before_swing"};

thread_local bool is_other = false;

class Stop {
 public:
  explicit Stop(std::string target) : state_(std::make_shared<State>(std::move(target))) {
    // The handler shares the state, because a thread may still be inside it when this object has been destroyed.
    testing::SetPointHandler([state = state_](std::string_view name) {
      if (is_other || name != state->target || state->stopped.IsSet()) return;
      state->stopped.Signal(RealRuntime());
      state->release.Wait(RealRuntime(), kNoDeadline);
    });
  }
  ~Stop() { testing::SetPointHandler(nullptr); }
  bool stopped() const { return state_->stopped.IsSet(); }
  bool WaitStopped() { return state_->stopped.Wait(RealRuntime(), EngineFixture::Soon()); }
  void Release() { state_->release.Signal(RealRuntime()); }

 private:
  struct State {
    explicit State(std::string t) : target(std::move(t)) {}
    const std::string target;
    Event stopped, release;
  };
  const std::shared_ptr<State> state_;
};

// Writes go to keys below it. The victim's large write set and most scans are above it.
constexpr const char* kCut = "s";

// A write set that is large enough to be sorted, and a scan that meets it.
void WriteManyAndScan(EngineFixture& f) {
  {
    TestTransaction txn = f.Begin();
    for (uint32_t i = 0; i < 2 * WriteSet::kTail && txn.open(); ++i) txn.Put(kCut + std::to_string(i), "v");
    if (txn.open()) txn.Commit();
  }
  f.Begin().Scan(kCut);
}

// One operation of any kind, on few keys.
void Operate(EngineFixture& f, Random& random) {
  const std::string key = "k" + std::to_string(random.Below(6));
  const uint64_t what = random.Below(1000);
  if (what < 10) {
    TestTransaction txn = f.Begin();
    if (!txn.Get(key).empty() && txn.open() && txn.Put(key, "v") == "ok" && txn.Remove("j" + key) == "ok") txn.Commit();
  } else if (what == 10 && random.OneIn(4)) {
    f.Begin().Scan(key, kCut, random.OneIn(2) ? Direction::kDescending : Direction::kAscending);
  } else if (what < 31) {
    if (random.OneIn(4)) {
      f.Begin().ScanForUpdate(kCut);
    } else {
      f.Begin().Scan(kCut, "", random.OneIn(2) ? Direction::kDescending : Direction::kAscending);
    }
  } else if (what < 80) {
    f.active->AdvanceNow();
  } else if (what < 180) {
    f.BeginSnapshot().Get(key);
  } else if (what < 230) {
    TestTransaction txn = f.Begin();
    if (txn.Insert(key, "i") == "ok") txn.Put(key, "j");
  } else if (what < 500) {
    f.Begin().Put(key, "v");
  } else {
    f.Begin().Get(key);
  }
}

void StopAt(const std::string& point) {
  SCOPED_TRACE(point);
  EngineFixture f({.log2_buckets = 2,
                   .max_deferred_entries = 4,
                   .collector_period = microseconds(100),
                   .fold_after = microseconds(100)});
  f.Load({{"k1", "0"}, {"k3", "0"}, {"s1", "0"}, {"s2", "0"}});
  f.SetRanges({kCut});
  {
    Stop stop(point);
    std::atomic<bool> victim_may_end{false}, pump_may_end{false};
    // The DC's side is not under test, so it must not be the one that stops.
    std::unique_ptr<Thread> pump = RealRuntime().StartThread("pump", [&] {
      is_other = true;
      for (int i = 0; !pump_may_end.load(); ++i) {
        f.dc->Pump();
        if (i % 16 == 0) f.dc->TrimLog();
        RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(500));
      }
    });
    std::unique_ptr<Thread> victim = RealRuntime().StartThread("victim", [&] {
      Random random(1);
      for (int i = 0; !stop.stopped() && !victim_may_end.load(); ++i) {
        if (i % 500 == 0) WriteManyAndScan(f);
        if (i % 100 == 50) f.SetRanges({"k3", kCut});
        if (i % 100 == 99) f.SetRanges({kCut});
        Operate(f, random);
      }
    });
    std::unique_ptr<Thread> company = RealRuntime().StartThread("company", [&] {
      is_other = true;
      Random random(2);
      while (!stop.stopped() && !victim_may_end.load()) Operate(f, random);
    });
    EXPECT_TRUE(stop.WaitStopped()) << "nobody came there";
    std::atomic<int> finished{0};
    Event all_finished;
    std::vector<std::unique_ptr<Thread>> others;
    for (uint64_t i = 0; i < kOthers; ++i) {
      others.push_back(RealRuntime().StartThread("other", [&, i] {
        is_other = true;
        Random random(10 + i);
        for (int n = 0; n < kOperations; ++n) Operate(f, random);
        if (finished.fetch_add(1) + 1 == kOthers) all_finished.Signal(RealRuntime());
      }));
    }
    EXPECT_TRUE(all_finished.Wait(RealRuntime(), RealRuntime().Now() + seconds(120)))
        << "others wait for the stopped thread";
    victim_may_end.store(true);
    stop.Release();
    others.clear();
    victim.reset();
    company.reset();
    pump_may_end.store(true);
    pump.reset();
  }
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
}

class EngineProgressTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EngineProgressTest, OthersFinishWhileOneIsStopped) { StopAt(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Points, EngineProgressTest, ::testing::ValuesIn(kPoints), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace deut::tc
