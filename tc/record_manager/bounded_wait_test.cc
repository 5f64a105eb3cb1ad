// R9: a later transaction waits for an earlier one that is committing, and for no other. The committer is a thread
// that is stopped while its status is `committing`, until another thread waits for it. Then it must wake the waiter.
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

// Signals the waits that go to sleep, and counts the wakes.
class WatchedRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return RealRuntime().Now(); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    slept.Signal(RealRuntime());
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override {
    wakes.fetch_add(1);
    RealRuntime().Wake(word, waiters);
  }
  void Yield() override { RealRuntime().Yield(); }

  Event slept;
  std::atomic<int> wakes{0};
};

class BoundedWaitTest : public ::testing::Test {
 protected:
  explicit BoundedWaitTest(EngineFixtureOptions options = {.conflict_wait = seconds(20)})
      : f_([&] {
          options.engine_runtime = &runtime_;
          return options;
        }()) {
    f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}});
  }

  uint64_t waits() const { return f_.engine->counters.waits.load(); }

  WatchedRuntime runtime_;
  EngineFixture f_;
};

// Commits a transaction on a thread of its own, which stops in the middle until Join, or until another thread waits
// for it.
class Committing {
 public:
  explicit Committing(TestTransaction& txn) {
    testing::SetPointHandler([this](std::string_view name) {
      if (name != "commit.appending" || stopped_.IsSet()) return;
      stopped_.Signal(RealRuntime());
      release_.Wait(RealRuntime(), EngineFixture::Soon());
    });
    committer_ = RealRuntime().StartThread("committer", [&] { EXPECT_EQ(txn.Commit(), "ok"); });
    EXPECT_TRUE(stopped_.Wait(RealRuntime(), EngineFixture::Soon()));
  }
  ~Committing() {
    release_.Signal(RealRuntime());
    Join();
  }
  Committing(const Committing&) = delete;
  Committing& operator=(const Committing&) = delete;

  // Releases the committer when another thread has gone to sleep for it.
  void ReleaseWhenAwaited(WatchedRuntime& runtime) {
    releaser_ = RealRuntime().StartThread("releaser", [this, &runtime] {
      EXPECT_TRUE(runtime.slept.Wait(RealRuntime(), EngineFixture::Soon())) << "nobody waits";
      release_.Signal(RealRuntime());
    });
  }
  void Join() {
    releaser_.reset();
    committer_.reset();
    testing::SetPointHandler(nullptr);
  }

 private:
  Event stopped_, release_;
  std::unique_ptr<Thread> committer_, releaser_;
};

// An operation of a later transaction that meets the committing one's write of "b".
struct Meeting {
  const char* name;
  std::string (*run)(TestTransaction&);
  const char* outcome;
  const char* at_once;  // without a wait
};
std::string DoGet(TestTransaction& t) { return t.Get("b"); }
std::string DoScan(TestTransaction& t) { return t.Scan(); }
std::string DoScanDown(TestTransaction& t) { return t.Scan("", "", Direction::kDescending); }
std::string DoScanForUpdate(TestTransaction& t) { return t.ScanForUpdate(); }
std::string DoPut(TestTransaction& t) { return t.Put("b", "2"); }
std::string DoRemove(TestTransaction& t) { return t.Remove("b"); }
std::string DoInsert(TestTransaction& t) { return t.Insert("b", "2"); }

class MeetingTest : public BoundedWaitTest, public ::testing::WithParamInterface<Meeting> {};

TEST_P(MeetingTest, WaitsUntilItIsCommitted) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  ASSERT_EQ(t10.Put("b", "1"), "ok");
  ASSERT_EQ(t10.Put("bb", "1"), "ok");
  Committing committing(t10);
  committing.ReleaseWhenAwaited(runtime_);
  EXPECT_EQ(GetParam().run(t20), GetParam().outcome);
  committing.Join();
  EXPECT_EQ(waits(), 1u);
  EXPECT_EQ(f_.engine->counters.waits_ended.load(), 1u);
  EXPECT_GE(runtime_.wakes.load(), 1) << "it was time that ended the wait";
  EXPECT_EQ(t20.Commit(), "ok");
}

INSTANTIATE_TEST_SUITE_P(All, MeetingTest,
                         ::testing::Values(Meeting{"get", DoGet, "1", "read-uncommitted"},
                                           Meeting{"scan", DoScan, "a=0 b=1 bb=1 c=0", "range-writer"},
                                           Meeting{"scan_down", DoScanDown, "c=0 bb=1 b=1 a=0", "range-writer"},
                                           Meeting{"scan_for_update", DoScanForUpdate, "a=0 b=1 bb=1 c=0",
                                                   "range-writer"},
                                           Meeting{"put", DoPut, "ok", "write-uncommitted"},
                                           Meeting{"remove", DoRemove, "ok", "write-uncommitted"},
                                           Meeting{"insert", DoInsert, "ALREADY_EXISTS", "write-uncommitted"}),
                         [](const auto& param) { return param.param.name; });

class ShortWaitTest : public BoundedWaitTest, public ::testing::WithParamInterface<Meeting> {
 protected:
  ShortWaitTest() : BoundedWaitTest({.conflict_wait = milliseconds(3)}) {}
};

// The wait is limited. A transaction that is not decided when the time is up is a conflict.
TEST_P(ShortWaitTest, LosesWhenTheTimeIsUp) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  ASSERT_EQ(t10.Put("b", "1"), "ok");
  const Committing committing(t10);
  EXPECT_EQ(GetParam().run(t20), GetParam().at_once);
  EXPECT_EQ(waits(), 1u);
  EXPECT_EQ(f_.engine->counters.waits_ended.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, ShortWaitTest,
                         ::testing::Values(Meeting{"get", DoGet, "", "read-uncommitted"},
                                           Meeting{"scan", DoScan, "", "range-writer"},
                                           Meeting{"put", DoPut, "", "write-uncommitted"}),
                         [](const auto& param) { return param.param.name; });

// An active transaction may stay active as long as its client likes.
TEST_F(BoundedWaitTest, NobodyWaitsForAnActiveTransaction) {
  f_.engine->conflicts.wait = milliseconds(3);
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin(), t40 = f_.Begin();
  EXPECT_EQ(t10.Put("b", "1"), "ok");
  EXPECT_EQ(t20.Get("b"), "read-uncommitted");
  EXPECT_EQ(t30.Scan(), "range-writer");
  EXPECT_EQ(t40.Put("b", "4"), "write-uncommitted");
  EXPECT_EQ(waits(), 0u);
  EXPECT_EQ(t10.Commit(), "ok");
}

// Waits go from later to earlier timestamps, so they form no cycle.
TEST_F(BoundedWaitTest, NobodyWaitsForALaterTransaction) {
  f_.engine->conflicts.wait = milliseconds(3);
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  ASSERT_EQ(t20.Put("b", "2"), "ok");
  const Committing committing(t20);
  EXPECT_EQ(t10.Put("b", "1"), "write-uncommitted");
  EXPECT_EQ(waits(), 0u);
}

TEST_F(BoundedWaitTest, NobodyWaitsWhereItIsSwitchedOff) {
  f_.engine->conflicts.wait = Duration{0};
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  ASSERT_EQ(t10.Put("b", "1"), "ok");
  const Committing committing(t10);
  EXPECT_EQ(t20.Get("b"), "read-uncommitted");
  EXPECT_EQ(waits(), 0u);
}

}  // namespace
}  // namespace deut::tc
