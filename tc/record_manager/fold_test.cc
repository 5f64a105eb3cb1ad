// Committed updates in sorted runs (S8): how scans find them at each step of a fold and of a merge; when they go;
// which commits a reader of them waits for; tables and ranges that change meanwhile.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

class FoldTest : public ::testing::Test {
 protected:
  static void Write(EngineFixture& f, std::string_view key, std::string_view value) {
    TestTransaction txn = f.Begin();
    EXPECT_EQ(value == "-" ? txn.Remove(key) : txn.Put(key, value), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  void Write(std::string_view key, std::string_view value) { Write(f_, key, value); }
  const CommittedRuns& Runs() { return f_.catalogue->Find(EngineFixture::kTable)->runs(); }
  uint64_t Postings() { return f_.RangeOf("a").posting_count(); }
  void ExpectNothingLeft() {
    EXPECT_TRUE(f_.Settle());
    EXPECT_TRUE(f_.CopiesBecome(0));
    EXPECT_EQ(f_.collector->uncollected(), 0u);
    EXPECT_EQ(f_.collector->folded(), 0u);
    EXPECT_EQ(f_.records->entries(), 0u);
    EXPECT_EQ(PinnedBytes(*f_.engine), 0u);
    EXPECT_EQ(Runs().bytes(), 0u);
    EXPECT_EQ(Postings(), 0u);
  }

  EngineFixture f_;
};

TEST_F(FoldTest, ScansFindTheKeysInRuns) {
  f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}});
  {
    TestTransaction old = f_.Begin();
    Write("b", "1");
    Write("bb", "1");
    Write("c", "-");
    f_.Fold();
    EXPECT_EQ(f_.collector->folded(), 3u);
    EXPECT_EQ(Runs().entries(), 3u);
    f_.Collect();
    EXPECT_EQ(Postings(), 0u);
    EXPECT_EQ(f_.Contents(), "a=0 b=1 bb=1");
    EXPECT_EQ(f_.Begin().Scan("", "", Direction::kDescending), "bb=1 b=1 a=0");
    EXPECT_EQ(f_.Begin().Scan("b", "bb"), "b=1");
    EXPECT_EQ(f_.Begin().Get("c"), "-");
    EXPECT_EQ(old.Scan(), "a=0 b=0 c=0");
    Write("b", "2");
    f_.Fold();
    f_.Collect();
    EXPECT_EQ(f_.Contents(), "a=0 b=2 bb=1");
    EXPECT_EQ(f_.dc->Pump(), 0u);
  }
  ExpectNothingLeft();
  EXPECT_EQ(f_.Contents(), "a=0 b=2 bb=1");
}

// Versions written while the collector folds or collects are above in the chain. A pass walks over them once, not
// once for each commit below.
TEST_F(FoldTest, ALongChainIsWalkedOnce) {
  constexpr int kCommits = 200;
  const auto write_many = [&] {
    for (int i = 0; i < kCommits; ++i) Write("a", std::to_string(i));
  };
  std::atomic<int> steps{0}, published{0};
  {
    const std::unique_ptr<TestTransaction> reader = f_.BeginPointer();
    write_many();
    testing::SetPointHandler([&](std::string_view name) {
      if (name == "collector.chain_step") steps.fetch_add(1);
      if (name == "collector.fold.published" && published.fetch_add(1) == 0) write_many();
    });
    f_.Fold();
    EXPECT_GE(published.load(), 1);  // the collector may fold the new commits by itself
    EXPECT_GE(steps.load(), 2 * kCommits);
    EXPECT_LE(steps.load(), 6 * kCommits) << "folding";
    EXPECT_EQ(reader->Get("a"), "-");
  }
  steps.store(0);
  f_.dc->Pump();
  f_.Collect();
  testing::SetPointHandler(nullptr);
  EXPECT_LE(steps.load(), 6 * kCommits) << "collecting";
  ExpectNothingLeft();
}

// A whole fold at each step of a scan, and then everything applied and collected.
TEST_F(FoldTest, FoldedBetweenTwoStepsOfAScan) {
  for (const char* point_name : {"scan.before_raise", "scan.raised", "scan.before_postings", "scan.postings_walked",
                                 "scan.looked", "scan.before_dc", "scan.after_dc"}) {
    for (const bool collected : {false, true}) {
      SCOPED_TRACE(::testing::Message() << point_name << collected);
      EngineFixture g;
      g.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}});
      Write(g, "b", "1");
      Write(g, "bb", "1");
      Write(g, "c", "-");
      TestTransaction scan = g.Begin();
      AtPoint point(point_name, [&] {
        g.Fold();
        g.Collect();
        if (!collected) return;
        EXPECT_EQ(g.dc->Pump(), 3u);
        g.Collect();
        EXPECT_EQ(g.records->entries(), 0u);
      });
      EXPECT_EQ(scan.Scan(), "a=0 b=1 bb=1");
      EXPECT_TRUE(point.reached());
      EXPECT_EQ(g.collector->folded(), collected ? 0u : 3u);
    }
  }
}

// A whole scan at each step of a fold.
TEST_F(FoldTest, AScanBetweenTwoStepsOfAFold) {
  for (const char* point_name : {"runs.before_publish", "collector.fold.published", "collector.marked",
                                 "range.unlink.before_cas", "chain.remove.before_cas", "collector.readers_known"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g;
    g.Load({{"a", "0"}, {"b", "0"}});
    {
      TestTransaction old = g.Begin();
      {
        TestTransaction txn = g.Begin();
        EXPECT_EQ(txn.Insert("a", "x"), "ALREADY_EXISTS");  // a withdrawn version
        EXPECT_EQ(txn.Put("b", "1"), "ok");
        EXPECT_EQ(txn.Commit(), "ok");
      }
      std::string contents;
      AtPoint point(point_name, [&] { contents = g.Contents(); });
      g.Fold();
      g.Collect();
      EXPECT_TRUE(point.reached());
      EXPECT_EQ(contents, "a=0 b=1");
      EXPECT_EQ(g.Contents(), "a=0 b=1");
    }
    EXPECT_TRUE(g.Settle());
  }
}

// S8: runs go when they are applied, not before. A merge keeps the keys that are not applied.
TEST_F(FoldTest, RunsAreKeptUntilTheyAreApplied) {
  TestTransaction old = f_.Begin();
  for (int i = 0; i < 20; ++i) {
    Write(std::to_string(i), "1");
    f_.Fold();
    f_.Collect();
  }
  EXPECT_EQ(Runs().entries(), 20u);
  EXPECT_LT(Runs().runs(), 5u);
  EXPECT_EQ(f_.Begin().Scan("1", "12"), "1=1 10=1 11=1");
  old.Abort();
  ExpectNothingLeft();
}

// The earliest timestamp of a key's updates decides whether a reader may see one of them.
TEST_F(FoldTest, AReaderBetweenTwoUpdatesOfAKey) {
  TestTransaction old = f_.Begin();
  Write("a", "1");
  TestTransaction reader = f_.Begin();
  f_.Fold();
  Write("a", "2");
  f_.Fold();
  f_.Collect();
  EXPECT_EQ(Runs().entries(), 1u);
  EXPECT_EQ(reader.Scan(), "a=1");
  EXPECT_EQ(f_.Contents(), "a=2");
  EXPECT_EQ(old.Scan(), "");
}

// The latest commit of a key's updates decides whether the DC has them all.
TEST_F(FoldTest, AKeyWhoseFirstUpdateIsApplied) {
  TestTransaction first = f_.Begin();
  Write("a", "1");
  Write("x", "1");
  TestTransaction old = f_.Begin();
  Write("a", "2");
  f_.Fold();
  Write("a", "3");
  f_.Fold();
  f_.Collect();
  first.Abort();
  EXPECT_EQ(f_.dc->Pump(), 2u);
  f_.Collect();
  EXPECT_EQ(f_.Contents(), "a=3 x=1");
  EXPECT_EQ(f_.Begin().Scan("", "", Direction::kDescending), "x=1 a=3");
}

TEST_F(FoldTest, NewRangesOverRuns) {
  Write("a", "1");
  Write("m", "1");
  f_.Fold();
  Write("z", "1");
  f_.SetRanges({"g", "p"});
  EXPECT_EQ(f_.Contents(), "a=1 m=1 z=1");
  f_.Fold();
  f_.SetRanges({});
  EXPECT_EQ(f_.Contents(), "a=1 m=1 z=1");
  ExpectNothingLeft();
}

// The runs of a dropped table go with the entries that are applied.
TEST_F(FoldTest, ADroppedTable) {
  const Catalogue::TablePointer table = *f_.catalogue->FindByName("t");  // keeps the table from being freed
  {
    TestTransaction old = f_.Begin();
    Write("a", "1");
    f_.Fold();
    EXPECT_TRUE(f_.manager->DropTable("t", EngineFixture::Soon()).ok());
  }
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(table->runs().bytes(), 0u);
  EXPECT_EQ(f_.collector->folded(), 0u);
}

// S6, early: a key that is written again and again under old readers keeps the versions that they read, and little
// more.
TEST_F(FoldTest, UnreadVersionsGoEarly) {
  f_.Load({{"a", "0"}});
  TestTransaction old = f_.Begin();
  std::vector<std::unique_ptr<TestTransaction>> readers;
  std::vector<std::string> values;
  for (int i = 1; i <= 60; ++i) {
    Write("a", std::to_string(i));
    Write("b", i % 7 == 0 ? "-" : std::to_string(i));
    if (i % 20 == 0) {
      readers.push_back(f_.BeginPointer());
      values.push_back("a=" + std::to_string(i) + " b=" + std::to_string(i));
    }
    if (i % 5 == 0) f_.Fold();
  }
  EXPECT_GT(f_.collector->unread(), 100u);
  const auto check = [&] {
    EXPECT_EQ(old.Scan(), "a=0");
    for (size_t i = 0; i < readers.size(); ++i) EXPECT_EQ(readers[i]->Scan(), values[i]);
    EXPECT_EQ(f_.Contents(), "a=60 b=60");
  };
  check();
  f_.PumpAndCollect();
  check();
  old.Abort();
  values.front() = "a=20 b=20";
  f_.PumpAndCollect();
  for (size_t i = 0; i < readers.size(); ++i) EXPECT_EQ(readers[i]->Scan(), values[i]);
  readers.clear();
  ExpectNothingLeft();
  EXPECT_EQ(f_.Contents(), "a=60 b=60");
}

// A snapshot, and one that begins later, read the versions that were kept for them.
TEST_F(FoldTest, SnapshotsReadWhatWasKept) {
  Write("a", "1");
  f_.active->AdvanceNow();
  TestTransaction old = f_.Begin();
  TestTransaction snapshot = f_.BeginSnapshot();
  for (int i = 2; i <= 20; ++i) {
    Write("a", std::to_string(i));
    f_.Fold();
  }
  EXPECT_EQ(snapshot.Scan(), "a=1");
  TestTransaction other = f_.BeginSnapshot();
  EXPECT_EQ(other.Scan(), "a=1");
  old.Abort();
  f_.active->AdvanceNow();
  EXPECT_EQ(snapshot.Get("a"), "1");
  EXPECT_EQ(f_.Contents(), "a=20");
}

// Commits that wait for an open transaction are all folded. Those that wait only for the DC are left for a while.
TEST_F(FoldTest, CommitsThatNoReaderHoldsBackAreNotFoldedAtOnce) {
  const auto folded = [this] {
    for (int round = 0; round < 2; ++round) f_.collector->RunBetweenRounds([](Collector::Access&) {});
    return f_.collector->folded();
  };
  Write("a", "1");
  f_.Fold();
  EXPECT_EQ(folded(), 1u);
  Write("b", "1");
  EXPECT_EQ(folded(), 1u);
  TestTransaction old = f_.Begin();
  Write("c", "1");
  EXPECT_EQ(folded(), 1u);
  f_.Fold();
  EXPECT_EQ(folded(), 3u);
  Write("d", "1");
  EXPECT_EQ(folded(), 4u);
  old.Abort();
  ExpectNothingLeft();
}

// S9: all that is pinned counts, in whatever form, and nothing of the count is lost.
TEST_F(FoldTest, PinnedBytesAreCounted) {
  const auto pinned = [this] { return PinnedBytes(*f_.engine); };
  EXPECT_EQ(pinned(), 0u);
  TestTransaction old = f_.Begin();
  TestTransaction writer = f_.Begin();
  EXPECT_EQ(writer.Put("a", std::string(1000, 'v')), "ok");
  const uint64_t one = pinned();
  EXPECT_GT(one, 1000 + sizeof(RecordEntry) + sizeof(TransactionRecord) + sizeof(WriteSet));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(writer.Put(std::to_string(i), ""), "ok");
  EXPECT_GT(pinned(), one + 100 * (sizeof(RecordEntry) + sizeof(RecordVersion) + sizeof(WriteItem)));
  EXPECT_EQ(writer.Commit(), "ok");
  const uint64_t all = pinned();
  f_.Fold();
  f_.Collect();
  EXPECT_EQ(f_.engine->counters.pinned_bytes.load(), 0u);
  EXPECT_LT(pinned(), all);
  EXPECT_GT(pinned(), 1000 + 100 * (sizeof(RecordEntry) + sizeof(RecordVersion)) + Runs().bytes());
  old.Abort();
  ExpectNothingLeft();
}

// S9: over the budget writers are refused, and told which transaction holds everything back. A key that is written
// again and again does not exhaust the budget.
TEST_F(FoldTest, TheBudgetNamesTheOldestReader) {
  f_.SetVersionBudget(100000);
  TestTransaction old = f_.Begin();
  for (int i = 0; i < 1000; ++i) {
    Write("a", std::to_string(i));
    if (i % 10 == 0) f_.Fold();
  }
  f_.Fold();
  std::string refused;
  for (int i = 0; i < 1000 && refused.empty(); ++i) {
    TestTransaction txn = f_.Begin();
    const Status put = f_.manager->Put(txn.transaction(), EngineFixture::kTable, "k" + std::to_string(i), "v");
    if (put.ok()) {
      EXPECT_EQ(txn.Commit(), "ok");
      continue;
    }
    EXPECT_EQ(put, ErrorCode::kResourceExhausted);
    EXPECT_GT(put.retry_after_ms(), 0u);
    refused = put.message();
  }
  EXPECT_NE(refused.find("transaction " + std::to_string(old.timestamp()) + " "), std::string::npos) << refused;
  old.Abort();
  EXPECT_TRUE(f_.Settle());
  Write("b", "1");
}

// The engine is stopped with folded commits that were never applied.
TEST_F(FoldTest, TheEnd) {
  {
    TestTransaction old = f_.Begin();
    Write("a", "1");
    f_.Fold();
    Write("b", "1");
  }
  f_.Stop();
  EXPECT_EQ(f_.records->entries(), 0u);
  EXPECT_EQ(f_.engine->counters.pinned_bytes.load(), 0u);
  EXPECT_EQ(f_.catalogue->Find(EngineFixture::kTable)->runs().bytes(), 0u);
}

// D1: a durable scan waits for the commits of the versions that it has shown, folded or not, and for no later commit
// of the key.
TEST(FoldDurabilityTest, AScanWaitsForWhatItHasShown) {
  EngineFixture f({.faulty_disk = true});
  TransactionOptions durable;
  const auto commits = [](TestTransaction& txn, EngineFixture& g) {
    return StatusText(g.manager->Commit(txn.transaction(), RealRuntime().Now() + milliseconds(50)).status());
  };
  TestTransaction old = f.Begin();
  {
    TestTransaction txn = f.Begin(durable);
    EXPECT_EQ(txn.Put("a", "1"), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  TestTransaction between = f.Begin(durable);
  f.disk->HoldCompletions(true);
  {
    TestTransaction txn = f.Begin();
    EXPECT_EQ(txn.Put("a", "2"), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  f.Fold();
  EXPECT_EQ(between.Scan(), "a=1");
  EXPECT_EQ(commits(between, f), "ok");
  TestTransaction after = f.Begin(durable);
  EXPECT_EQ(after.Scan(), "a=2");
  EXPECT_EQ(commits(after, f), "DEADLINE_EXCEEDED");
  f.disk->HoldCompletions(false);
}

}  // namespace
}  // namespace deut::tc
