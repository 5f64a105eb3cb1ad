// Progress: a thread is stopped at a named point, between what it looked at and its compare-and-swap, in the active slots, the record table,
// the chains, the ranges or between the steps of an operation. Others then finish 100,000 operations each, on the same keys and buckets: most of them
// transactions that lose a conflict with the stopped one, which is an outcome, not a wait.
// The exceptions, on purpose: who is stopped inside a round of low-water holds low-water back (L2: one thread at a time), and
// the collector is one thread; nobody waits for either.
#include <algorithm>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

constexpr int kOthers = 2;
constexpr int kOperations = 100000;

constexpr const char* kPoints[] = {"active.claim.before_cas",
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
                                   "record_table.floor.before_cas",
                                   "chain.install.before_cas",
                                   "read.floor_raised",
                                   "write.posted",
                                   "write.published",
                                   "write.installed",
                                   "write.checked",
                                   "scan.before_raise",
                                   "scan.raised",
                                   "scan.looked",
                                   "scan.before_dc",
                                   "scan.after_dc",
                                   "collector.finish.before_cas",
                                   "collector.taken",
                                   "chain.remove.before_cas",
                                   "record_table.seal.before_cas",
                                   "record_table.unlink.before_cas",
                                   "range.unlink.before_cas"};

thread_local bool is_other = false;

class Stop {
 public:
  explicit Stop(std::string target) : target_(std::move(target)) {
    testing::SetPointHandler([this](std::string_view name) {
      if (is_other || name != target_ || stopped_.IsSet()) return;
      stopped_.Signal(RealRuntime());
      release_.Wait(RealRuntime(), kNoDeadline);
    });
  }
  ~Stop() { testing::SetPointHandler(nullptr); }
  bool stopped() const { return stopped_.IsSet(); }
  bool WaitStopped() { return stopped_.Wait(RealRuntime(), EngineFixture::Soon()); }
  void Release() { release_.Signal(RealRuntime()); }

 private:
  const std::string target_;
  Event stopped_, release_;
};

// Everything there is, on few keys. Commits are rare: while a stopped transaction holds low-water down they pile up, and a scan looks
// at all of them.
void Operate(EngineFixture& f, Random& random) {
  const std::string key = "k" + std::to_string(random.Below(6));
  switch (random.Below(40)) {
    case 0: {
      TestTransaction txn = f.Begin();
      if (txn.Get(key) != "" && txn.open() && txn.Put(key, "v") == "ok" && txn.Remove("x" + key) == "ok") txn.Commit();
      return;
    }
    case 1: {
      TestTransaction txn = f.Begin();
      txn.Scan(key, "", random.OneIn(2) ? Direction::kDescending : Direction::kAscending);
      return;
    }
    case 2:
    case 3:
      f.active->AdvanceNow();
      return;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: {
      TestTransaction snapshot = f.BeginSnapshot();
      snapshot.Get(key);
      return;
    }
    case 9:
    case 10: {
      TestTransaction txn = f.Begin();
      if (txn.Insert(key, "i") == "ok") txn.Put(key, "j");
      return;
    }
    default: {
      TestTransaction txn = f.Begin();
      if (random.OneIn(2)) {
        txn.Get(key);
      } else {
        txn.Put(key, "v");
      }
      return;
    }
  }
}

void StopAt(const std::string& point) {
  SCOPED_TRACE(point);
  EngineFixture f({.log2_buckets = 2, .max_deferred_entries = 4, .collector_period = microseconds(100)});
  f.Load({{"k1", "0"}, {"k3", "0"}});
  {
    Stop stop(point);
    std::atomic<bool> victim_may_end{false}, pump_may_end{false};
    // The DC's side is not under test: it must not be the one that stops.
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
      while (!victim_may_end.load()) Operate(f, random);
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
  f.PumpAndCollect();
  EXPECT_TRUE(f.collector->WaitIdle(EngineFixture::Soon()));
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
