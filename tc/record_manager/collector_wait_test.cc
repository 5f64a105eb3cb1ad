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
  explicit CollectorWaitTest(EngineFixtureOptions options = {}) : f_(options) {}

  void Write(std::string_view key, std::string_view value) {
    TestTransaction txn = f_.Begin();
    EXPECT_EQ(txn.Put(key, value), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  bool Collected(Collector::Mark* mark) {
    bool collected = false;
    f_.collector->RunBetweenRounds([&](Collector::Access& access) { collected = access.Collected(mark); });
    return collected;
  }

  EngineFixture f_;
};

TEST_F(CollectorWaitTest, ForWhatHadFinished) {
  Write("a", "1");
  Collector::Mark mark = f_.collector->MarkFinished();
  EXPECT_FALSE(Collected(&mark));
  Write("b", "1");
  EXPECT_EQ(f_.dc->Pump(1), 1u);
  f_.Collect();
  EXPECT_EQ(f_.collector->uncollected(), 1u);
  EXPECT_TRUE(Collected(&mark));
  Collector::Mark later = f_.collector->MarkFinished();
  EXPECT_FALSE(f_.collector->WaitCollected(&later, RealRuntime().Now()));
  f_.PumpAndCollect();
  EXPECT_TRUE(f_.collector->WaitCollected(&later, EngineFixture::Soon()));
  EXPECT_EQ(f_.collector->uncollected(), 0u);
}

TEST_F(CollectorWaitTest, ForWhatIsFolded) {
  Write("a", "1");
  Collector::Mark mark = f_.collector->MarkFinished();
  Write("b", "1");
  f_.Fold();
  Write("c", "1");
  EXPECT_EQ(f_.collector->folded(), 2u);
  EXPECT_FALSE(Collected(&mark));
  EXPECT_EQ(f_.dc->Pump(1), 1u);
  f_.Collect();
  EXPECT_EQ(f_.collector->uncollected(), 2u);
  EXPECT_TRUE(Collected(&mark));
  EXPECT_TRUE(f_.Settle());
}

// R5: an entry stays for its last_read until no earlier transaction is open. An entry that is read again stays
// longer, and no thread waits for that.
TEST_F(CollectorWaitTest, ForReadersThatHadRead) {
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  Write("a", "1");
  Write("b", "1");
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_EQ(f_.Begin().Get("b"), "1");
  Collector::Mark mark = f_.collector->MarkFinished();
  const std::unique_ptr<TestTransaction> later = f_.BeginPointer();
  old->Abort();
  f_.PumpAndCollect();
  EXPECT_EQ(f_.collector->uncollected(), 0u);
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_TRUE(f_.collector->WaitCollected(&mark, EngineFixture::Soon()));
}

// While the earlier reader is open nothing that was read after its begin can go.
TEST_F(CollectorWaitTest, ForKeysThatWereReadAfterSomebodyOpenBegan) {
  Write("a", "1");
  Write("b", "1");
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_EQ(f_.Begin().Get("b"), "1");
  Collector::Mark mark = f_.collector->MarkFinished();
  f_.PumpAndCollect();
  EXPECT_EQ(f_.collector->uncollected(), 0u);
  EXPECT_EQ(f_.collector->deferred_entries(), 2u);
  EXPECT_FALSE(Collected(&mark));
  const std::unique_ptr<TestTransaction> later = f_.BeginPointer();
  EXPECT_EQ(f_.Begin().Get("a"), "1");  // by a transaction later than `later`
  EXPECT_FALSE(f_.collector->WaitCollected(&mark, RealRuntime().Now()));
  old->Abort();
  EXPECT_TRUE(f_.collector->WaitCollected(&mark, EngineFixture::Soon()));
  EXPECT_EQ(f_.collector->deferred_entries(), 1u);
  later->Abort();
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(f_.records->entries(), 0u);
}

// R6. A reader hands its entry over, and then a thread waits for it. The round that answers may have taken the
// arrivals before that.
TEST_F(CollectorWaitTest, ForAnEntryThatIsHandedOverDuringARound) {
  EXPECT_TRUE(f_.Settle());
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  const std::unique_ptr<TestTransaction> reader = f_.BeginPointer();
  Collector::Mark mark = f_.collector->MarkFinished();
  std::atomic<bool> made{false};
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "collector.deferred_taken" || made.exchange(true)) return;
    const ReclamationDomain::Guard guard(f_.domain);
    bool is_new = false;
    RecordEntry* const entry = f_.records->FindOrCreateDeferred(HashRecord(f_.kTable, "z"), f_.kTable, "z", &is_new);
    RecordTable::RaiseLastRead(*entry, Timestamp(reader->timestamp()));
    f_.collector->Defer(entry);
  });
  EXPECT_FALSE(Collected(&mark));
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(made);
  reader->Abort();
  old->Abort();
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(f_.records->entries(), 0u);
}

class SpillingCollectorWaitTest : public CollectorWaitTest {
 protected:
  SpillingCollectorWaitTest() : CollectorWaitTest({.spills = true}) {}
  void SpillAll() {
    ASSERT_TRUE(f_.log->WaitDurable(Lsn(f_.log->tail().value - 8), EngineFixture::Soon()).ok());
    f_.Collect();
    f_.Fold();
    f_.SetVersionBudget(0);
    f_.Collect();
    f_.SetVersionBudget(uint64_t{1} << 30);
    EXPECT_EQ(f_.collector->folded(), 0u);
  }
};

// A run goes as a whole. If it has later commits, too, the wait for it lasts until they are applied as well as the
// earlier ones.
TEST_F(SpillingCollectorWaitTest, ForWhatIsSpilled) {
  Write("a", "1");
  Collector::Mark mark = f_.collector->MarkFinished();
  Write("b", "1");
  Write("c", "1");
  SpillAll();
  EXPECT_EQ(f_.collector->uncollected(), 0u);
  EXPECT_FALSE(Collected(&mark));
  EXPECT_EQ(f_.dc->Pump(2), 2u);
  f_.Collect();
  EXPECT_FALSE(f_.spilled->empty());
  EXPECT_TRUE(Collected(&mark));
  Collector::Mark all = f_.collector->MarkFinished();
  EXPECT_FALSE(Collected(&all));
  f_.PumpAndCollect();
  EXPECT_TRUE(f_.spilled->empty());
  EXPECT_TRUE(Collected(&all));
}

}  // namespace
}  // namespace deut::tc
