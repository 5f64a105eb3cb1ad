// A thread that waits for finished transactions to be collected waits for these alone, not for later ones that are
// folded, spilled or read.
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/collector.h"
#include "tc/mvcc/record_hash.h"
#include "tc/mvcc/record_table.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class CollectorWaitTest : public ::testing::Test {
 protected:
  explicit CollectorWaitTest(EngineFixtureOptions options = {}) : f(options) {}

  void Write(std::string_view key, std::string_view value) {
    TestTransaction txn = f.Begin();
    EXPECT_EQ(txn.Put(key, value), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  bool Collected(Collector::Mark* mark) {
    bool collected = false;
    f.collector->RunBetweenRounds([&](Collector::Access& access) { collected = access.Collected(mark); });
    return collected;
  }

  EngineFixture f;
};

TEST_F(CollectorWaitTest, ForWhatHadFinished) {
  Write("a", "1");
  Collector::Mark mark = f.collector->MarkFinished();
  EXPECT_FALSE(Collected(&mark));
  Write("b", "1");
  EXPECT_EQ(f.dc->Pump(1), 1u);
  f.Collect();
  EXPECT_EQ(f.collector->uncollected(), 1u);
  EXPECT_TRUE(Collected(&mark));
  Collector::Mark later = f.collector->MarkFinished();
  EXPECT_FALSE(f.collector->WaitCollected(&later, RealRuntime().Now()));
  f.PumpAndCollect();
  EXPECT_TRUE(f.collector->WaitCollected(&later, EngineFixture::Soon()));
  EXPECT_EQ(f.collector->uncollected(), 0u);
}

TEST_F(CollectorWaitTest, ForWhatIsFolded) {
  Write("a", "1");
  Collector::Mark mark = f.collector->MarkFinished();
  Write("b", "1");
  f.Fold();
  Write("c", "1");
  EXPECT_EQ(f.collector->folded(), 2u);
  EXPECT_FALSE(Collected(&mark));
  EXPECT_EQ(f.dc->Pump(1), 1u);
  f.Collect();
  EXPECT_EQ(f.collector->uncollected(), 2u);
  EXPECT_TRUE(Collected(&mark));
  EXPECT_TRUE(f.Settle());
}

// R5: an entry stays for its last_read until no earlier transaction is open. An entry that is read again stays
// longer, and no thread waits for that.
TEST_F(CollectorWaitTest, ForReadersThatHadRead) {
  const std::unique_ptr<TestTransaction> old = f.BeginPointer();
  Write("a", "1");
  Write("b", "1");
  EXPECT_EQ(f.Begin().Get("a"), "1");
  EXPECT_EQ(f.Begin().Get("b"), "1");
  Collector::Mark mark = f.collector->MarkFinished();
  const std::unique_ptr<TestTransaction> later = f.BeginPointer();
  old->Abort();
  f.PumpAndCollect();
  EXPECT_EQ(f.collector->uncollected(), 0u);
  EXPECT_EQ(f.Begin().Get("a"), "1");
  EXPECT_TRUE(f.collector->WaitCollected(&mark, EngineFixture::Soon()));
}

// While the earlier reader is open nothing that was read after its begin can go.
TEST_F(CollectorWaitTest, ForKeysThatWereReadAfterSomebodyOpenBegan) {
  Write("a", "1");
  Write("b", "1");
  const std::unique_ptr<TestTransaction> old = f.BeginPointer();
  EXPECT_EQ(f.Begin().Get("a"), "1");
  EXPECT_EQ(f.Begin().Get("b"), "1");
  Collector::Mark mark = f.collector->MarkFinished();
  f.PumpAndCollect();
  EXPECT_EQ(f.collector->uncollected(), 0u);
  EXPECT_EQ(f.collector->deferred_entries(), 2u);
  EXPECT_FALSE(Collected(&mark));
  const std::unique_ptr<TestTransaction> later = f.BeginPointer();
  EXPECT_EQ(f.Begin().Get("a"), "1");  // by a transaction later than `later`
  EXPECT_FALSE(f.collector->WaitCollected(&mark, RealRuntime().Now()));
  old->Abort();
  EXPECT_TRUE(f.collector->WaitCollected(&mark, EngineFixture::Soon()));
  EXPECT_EQ(f.collector->deferred_entries(), 1u);
  later->Abort();
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
}

// R6. A reader hands its entry over, and then a thread waits for it. The round that answers may have taken the
// arrivals before that.
TEST_F(CollectorWaitTest, ForAnEntryThatIsHandedOverDuringARound) {
  EXPECT_TRUE(f.Settle());
  const std::unique_ptr<TestTransaction> old = f.BeginPointer();
  const std::unique_ptr<TestTransaction> reader = f.BeginPointer();
  Collector::Mark mark = f.collector->MarkFinished();
  std::atomic<bool> made{false};
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "collector.deferred_taken" || made.exchange(true)) return;
    const ReclamationDomain::Guard guard(f.domain);
    bool is_new = false;
    RecordEntry* const entry = f.records->FindOrCreateDeferred(HashRecord(f.kTable, "z"), f.kTable, "z", &is_new);
    RecordTable::RaiseLastRead(*entry, Timestamp(reader->timestamp()));
    f.collector->Defer(entry);
  });
  EXPECT_FALSE(Collected(&mark));
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(made);
  reader->Abort();
  old->Abort();
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
}

class SpillingCollectorWaitTest : public CollectorWaitTest {
 protected:
  SpillingCollectorWaitTest() : CollectorWaitTest({.spills = true}) {}
  void SpillAll() {
    ASSERT_TRUE(f.log->WaitDurable(Lsn(f.log->tail().value - 8), EngineFixture::Soon()).ok());
    f.Collect();
    f.Fold();
    f.SetVersionBudget(0);
    f.Collect();
    f.SetVersionBudget(uint64_t{1} << 30);
    EXPECT_EQ(f.collector->folded(), 0u);
  }
};

// A run goes as a whole. If it has later commits, too, the wait for it lasts until they are applied as well as the
// earlier ones.
TEST_F(SpillingCollectorWaitTest, ForWhatIsSpilled) {
  Write("a", "1");
  Collector::Mark mark = f.collector->MarkFinished();
  Write("b", "1");
  Write("c", "1");
  SpillAll();
  EXPECT_EQ(f.collector->uncollected(), 0u);
  EXPECT_FALSE(Collected(&mark));
  EXPECT_EQ(f.dc->Pump(2), 2u);
  f.Collect();
  EXPECT_FALSE(f.spilled->empty());
  EXPECT_TRUE(Collected(&mark));
  Collector::Mark all = f.collector->MarkFinished();
  EXPECT_FALSE(Collected(&all));
  f.PumpAndCollect();
  EXPECT_TRUE(f.spilled->empty());
  EXPECT_TRUE(Collected(&all));
}

}  // namespace
}  // namespace deut::tc
