// Creating and dropping tables (rule T1).
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "protocol/table_options.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class TableTest : public ::testing::Test {
 protected:
  // Retries, as a client does, while the log's next segment is not allocated yet.
  static std::string RetryWhileExhausted(const std::function<std::string()>& call) {
    const MonotonicTime patience = EngineFixture::Soon();
    std::string done = call();
    for (; done == "RESOURCE_EXHAUSTED" && RealRuntime().Now() < patience; done = call()) RealRuntime().Yield();
    return done;
  }
  std::string Drop(const char* name = "t") {
    return RetryWhileExhausted([&] { return StatusText(f_.manager->DropTable(name, EngineFixture::Soon())); });
  }
  std::string Create(const char* name, TableId* id = nullptr) {
    return RetryWhileExhausted([&] {
      const Result<TableId> created = f_.manager->CreateTable(name, {}, EngineFixture::Soon());
      if (created.ok() && id != nullptr) *id = *created;
      return StatusText(created.status());
    });
  }
  // Returns true once all dropped tables are freed.
  bool WaitFreed() {
    const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
    while (f_.catalogue->dropped() != 0) {
      if (RealRuntime().Now() > patience) return false;
      f_.PumpAndCollect();
    }
    return true;
  }
  EngineFixture f_{{.faulty_disk = true}};
};

TEST_F(TableTest, TheOptionsOfATableReachTheDcThroughTheLog) {
  for (const std::optional<Compression> compression :
       {std::optional<Compression>(), std::optional(Compression::kNone), std::optional(Compression::kZstd)}) {
    const TableOptions options{.compression = compression};
    const std::string name = Concat("t", EncodeTableOptions(options).size(), compression ? NameOf(*compression) : "");
    const Result<TableId> table = f_.manager->CreateTable(name, options, EngineFixture::Soon());
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    ASSERT_TRUE(f_.Settle());
    EXPECT_EQ(DecodeTableOptions(f_.dc->OptionsOf(*table)), options);
  }
}

TEST_F(TableTest, OptionsThatTheDcDoesNotKnowAreRefused) {
  f_.dc->set_knows_table_options(false);
  const TableOptions options{.compression = Compression::kNone};
  EXPECT_EQ(f_.manager->CreateTable("x", options, EngineFixture::Soon()).status(), ErrorCode::kVersionMismatch);
  // The name is still free.
  EXPECT_EQ(Create("x"), "ok");
}

TEST_F(TableTest, CreateUseDropCreateAgain) {
  const Result<TableId> first = f_.manager->CreateTable("x", {}, EngineFixture::Soon());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Create("x"), "ALREADY_EXISTS");
  EXPECT_EQ(Create(""), "INVALID_ARGUMENT");
  EXPECT_EQ(Create(std::string(256, 'x').c_str()), "INVALID_ARGUMENT");
  {
    TestTransaction t = f_.Begin();
    t.table = *first;
    EXPECT_EQ(t.Get("a"), "-");
    EXPECT_EQ(t.Scan(), "");
    EXPECT_EQ(t.Insert("a", "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
    EXPECT_EQ(f_.dc->requests(), 0u) << "the DC does not know the table yet";
  }
  {
    TestTransaction t = f_.Begin();
    t.table = *first;
    EXPECT_EQ(t.Scan(), "a=1");
  }
  f_.PumpAndCollect();
  {
    TestTransaction t = f_.Begin();
    t.table = *first;
    EXPECT_EQ(t.Scan(), "a=1");
  }
  EXPECT_EQ(Drop("x"), "ok");
  EXPECT_EQ(Drop("x"), "NOT_FOUND");
  {
    TestTransaction t = f_.Begin();
    t.table = *first;
    EXPECT_EQ(t.Get("a"), "NOT_FOUND");
    EXPECT_EQ(t.Put("a", "2"), "NOT_FOUND");
  }
  const Result<TableId> second = f_.manager->CreateTable("x", {}, EngineFixture::Soon());
  ASSERT_TRUE(second.ok());
  EXPECT_GT(second->value, first->value);
  TestTransaction t = f_.Begin();
  t.table = *second;
  EXPECT_EQ(t.Scan(), "");
  t.Abort();
  f_.PumpAndCollect();
  EXPECT_EQ(f_.collector->uncollected(), 0u);
}

TEST_F(TableTest, DropMeetsAnUndecidedWriter) {
  TestTransaction t10 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(Drop(), "table-writer");
  EXPECT_EQ(t10.Commit(), "ok");  // its write came before the drop; a further one would lose
  EXPECT_EQ(f_.Contents(), "a=1") << "the failed drop has opened the table again";
  TestTransaction declared = f_.Begin(EngineFixture::Declaring({"b"}));
  EXPECT_EQ(Drop(), "table-writer");
  declared.Abort();
  EXPECT_EQ(Drop(), "ok");
}

// A drop that is not decided is like an uncommitted version: a later transaction loses, an earlier one does not see
// it. It is no NOT_FOUND before it is committed, because the drop may fail. There is no later reader that the drop
// would have to find: it closes the table before its timestamp is drawn.
TEST_F(TableTest, ADropThatIsNotDecided) {
  for (const char* point_name : {"active.begin.after_draw", "commit.before_append"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g;
    g.Load({{"a", "0"}});
    TestTransaction t10 = g.Begin(), writer = g.Begin();
    if (point_name == std::string("active.begin.after_draw")) EXPECT_EQ(writer.Put("w", "1"), "ok");
    TestTransaction old_snapshot = g.BeginSnapshot();
    std::string got, put, scan, for_update, earlier, snapshots;
    AtPoint point(point_name, [&] {
      got = g.Begin().Get("a");
      put = g.Begin().Put("b", "1");
      scan = g.Begin().Scan();
      for_update = g.Begin().ScanForUpdate();
      snapshots = old_snapshot.Get("a") + g.BeginSnapshot().Get("a");
      earlier = t10.Get("a");
    });
    // The first drop fails because of the writer.
    const std::string dropped = StatusText(g.manager->DropTable("t", EngineFixture::Soon()));
    EXPECT_TRUE(point.reached());
    for (const std::string& later : {got, put, scan, for_update}) EXPECT_EQ(later, "table-writer");
    EXPECT_EQ(snapshots, "00");
    if (dropped == "ok") {
      EXPECT_EQ(earlier, "0");
      EXPECT_EQ(t10.Scan(), "a=0");
      EXPECT_EQ(g.Begin().Get("a"), "NOT_FOUND");
      EXPECT_EQ(g.Begin().Put("a", "1"), "NOT_FOUND");
    } else {
      EXPECT_EQ(dropped, "table-writer");
      // The drop's timestamp was not known yet.
      EXPECT_EQ(earlier, "table-writer");
      EXPECT_EQ(writer.Commit(), "ok");
      EXPECT_EQ(g.Contents(), "a=0 w=1");
    }
  }
}

// A transaction earlier than a committed drop sees the table to its end, and cannot write any more. Its answers show
// one state.
TEST_F(TableTest, ADropIsNotSeenByEarlierTransactions) {
  f_.Load({{"a", "0"}, {"b", "0"}});
  TestTransaction t10 = f_.Begin(), t11 = f_.Begin(), t12 = f_.Begin();
  TestTransaction snapshot = f_.BeginSnapshot();
  EXPECT_EQ(t10.Get("a"), "0");
  Operation scan{.limit_records = 1};
  bool more = false;
  EXPECT_EQ(t10.ScanBatch(&scan, &more), "a=0");
  EXPECT_EQ(Drop(), "ok");
  EXPECT_EQ(f_.dc->Pump(), 0u) << "S1: an earlier transaction is open";
  EXPECT_EQ(t10.Get("a"), "0");
  EXPECT_EQ(t10.ScanBatch(&scan, &more), "b=0");
  EXPECT_EQ(t10.Scan(), "a=0 b=0");
  EXPECT_EQ(snapshot.Scan(), "a=0 b=0");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t11.Put("c", "1"), "table-read-later");
  EXPECT_EQ(t12.ScanForUpdate(), "table-read-later");
  EXPECT_EQ(f_.Begin().Get("a"), "NOT_FOUND");
  EXPECT_EQ(f_.Begin().Scan(), "NOT_FOUND");
  snapshot.Abort();
  f_.active->AdvanceNow();
  EXPECT_EQ(f_.BeginSnapshot().Get("a"), "NOT_FOUND");
}

// D1: the answer that the table does not exist any more must be durable before it is acknowledged.
TEST_F(TableTest, AReaderThatFindsADroppedTableDependsOnTheDrop) {
  f_.Load({{"a", "0"}});
  f_.disk->HoldCompletions(true);
  EXPECT_EQ(StatusText(f_.manager->DropTable("t", RealRuntime().Now() + milliseconds(20))), "OUTCOME_UNKNOWN");
  std::unique_ptr<TestTransaction> reader = f_.BeginPointer(TransactionOptions{});
  EXPECT_EQ(reader->Get("a"), "NOT_FOUND");
  EXPECT_EQ(StatusText(f_.manager->Commit(reader->transaction(), RealRuntime().Now() + milliseconds(20)).status()),
            "DEADLINE_EXCEEDED");
  f_.disk->HoldCompletions(false);
  std::unique_ptr<TestTransaction> later = f_.BeginPointer(TransactionOptions{});
  EXPECT_EQ(later->Get("a"), "NOT_FOUND");
  EXPECT_EQ(later->Commit(), "ok");
}

// A transaction that is repeated declares the keys that its last attempt wrote (R11). A table that was dropped
// meanwhile does not make it fail.
TEST_F(TableTest, ADeclaredKeyOfADroppedTable) {
  const Result<TableId> other = f_.manager->CreateTable("x", {}, EngineFixture::Soon());
  ASSERT_TRUE(other.ok());
  TransactionOptions declaring = EngineFixture::Declaring({"a"});
  declaring.declared.push_back({.table = *other, .key = "b"});
  EXPECT_EQ(Drop("x"), "ok");
  TestTransaction t = f_.Begin(declaring);
  EXPECT_EQ(t.Put("a", "1"), "ok");
  t.table = *other;
  EXPECT_EQ(t.Put("b", "1"), "NOT_FOUND");
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "a=1");
}

// T1, the race: the writer has found the table, then the whole drop happens. (Every such writer is earlier than the
// drop, which closes the table before it draws its timestamp. Both may lose.)
TEST_F(TableTest, WholeDropBetweenTwoStepsOfAWriter) {
  for (const char* point_name : {"write.table_found", "write.posted", "write.published", "chain.install.before_cas",
                                 "write.installed", "write.checked"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g;
    TestTransaction writer = g.Begin();
    std::string dropped;
    AtPoint point(point_name, [&] { dropped = StatusText(g.manager->DropTable("t", EngineFixture::Soon())); });
    const bool wrote = writer.Put("a", "1") == "ok" && writer.Commit() == "ok";
    EXPECT_TRUE(point.reached());
    EXPECT_FALSE(wrote && dropped == "ok");
  }
}

TEST_F(TableTest, TwoDropsOfOneTable) {
  f_.Load({{"a", "0"}});
  std::string second, created;
  AtPoint point("commit.appended", [&] {
    second = Drop();
    created = Create("t");
  });
  EXPECT_EQ(Drop(), "ok");
  EXPECT_TRUE(point.reached());
  EXPECT_EQ(second, "NOT_FOUND");
  EXPECT_EQ(created, "ALREADY_EXISTS") << "the name is free when the drop is committed, not before";
  EXPECT_EQ(Create("t"), "ok");
  EXPECT_TRUE(f_.catalogue->FindByName("t").ok());
}

// A drop that fails undoes its own traces, never those of the next drop.
TEST_F(TableTest, ADropThatFailsForgetsOnlyItself) {
  f_.Load({{"a", "0"}});
  TestTransaction writer = f_.Begin();
  EXPECT_EQ(writer.Put("w", "1"), "ok");
  std::string second;
  AtPoint point("table.reopening", [&] {
    EXPECT_EQ(writer.Commit(), "ok");
    second = Drop();
  });
  EXPECT_EQ(Drop(), "table-writer");
  EXPECT_TRUE(point.reached());
  if (second != "ok") EXPECT_EQ(Drop(), "ok");
  EXPECT_EQ(f_.Begin().Get("a"), "NOT_FOUND") << "the second drop: " << second;
  f_.active->AdvanceNow();
  EXPECT_EQ(f_.BeginSnapshot().Get("a"), "NOT_FOUND");
}

// A creation that is ordered but not known to be durable: the table is there, with the right place in the log.
TEST_F(TableTest, ACreationOfUnknownOutcome) {
  f_.disk->HoldCompletions(true);
  const Result<TableId> created = f_.manager->CreateTable("x", {}, RealRuntime().Now() + milliseconds(50));
  EXPECT_EQ(StatusText(created.status()), "OUTCOME_UNKNOWN");
  f_.disk->HoldCompletions(false);
  const auto table = f_.catalogue->FindByName("x");
  ASSERT_TRUE(table.ok());
  {
    TestTransaction t = f_.Begin();
    t.table = (*table)->id();
    EXPECT_EQ(t.Put("a", "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
    EXPECT_LT((*table)->created_at().commit, t.transaction().commit_lsn());
  }
  f_.PumpAndCollect();
  f_.dc->Restart();
  TestTransaction t = f_.Begin();
  t.table = (*table)->id();
  EXPECT_EQ(t.Get("a"), "1");
}

// More tables than 16 bits can count. Nothing is kept of the dropped ones once no transaction can use them.
TEST_F(TableTest, ManyTablesAreCreatedAndDropped) {
  TableId last;
  for (int i = 0; i < 70'000; ++i) {
    ASSERT_EQ(Create("x", &last), "ok") << i;
    if (i % 1000 == 0) {
      TestTransaction t = f_.Begin();
      t.table = last;
      ASSERT_EQ(t.Put("a", "1"), "ok");
      ASSERT_EQ(t.Commit(), "ok");
    }
    ASSERT_EQ(Drop("x"), "ok") << i;
    if (i % 1000 != 999) continue;
    f_.PumpAndCollect();
    f_.dc->TrimLog();
  }
  EXPECT_GT(last.value, 70'000u);
  EXPECT_TRUE(WaitFreed());
  EXPECT_EQ(f_.catalogue->FindAlsoDropped(last), nullptr);
}

// T1: nothing of a dropped table goes while a transaction earlier than the drop is open, because that reads the table
// to its end.
TEST_F(TableTest, ADroppedTableStaysForEarlierTransactions) {
  f_.Load({{"a", "0"}});
  TestTransaction snapshot = f_.BeginSnapshot();
  EXPECT_EQ(Drop(), "ok");
  TestTransaction later = f_.Begin();
  f_.PumpAndCollect();
  EXPECT_EQ(f_.catalogue->dropped(), 1u);
  EXPECT_EQ(snapshot.Scan(), "a=0");
  EXPECT_EQ(later.Get("a"), "NOT_FOUND");
  snapshot.Abort();
  f_.PumpAndCollect();
  EXPECT_EQ(f_.catalogue->dropped(), 1u) << "a transaction that may have looked the table up is open";
  EXPECT_EQ(later.Get("a"), "NOT_FOUND");
  later.Abort();
  EXPECT_TRUE(WaitFreed());
  EXPECT_EQ(f_.Begin().Get("a"), "NOT_FOUND");
}

// A background thread that holds the table keeps it.
TEST_F(TableTest, ADroppedTableStaysForABackgroundThread) {
  std::vector<Catalogue::TablePointer> held = f_.catalogue->tables();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(Drop(), "ok");
  for (int i = 0; i < 5; ++i) f_.PumpAndCollect();
  EXPECT_EQ(f_.catalogue->dropped(), 1u);
  EXPECT_EQ(held[0]->name(), "t");
  held.clear();
  EXPECT_TRUE(WaitFreed());
}

// T1: a thread without a transaction asks for a table's name under a guard. Until it ends, neither the states nor the
// array that it looks at are freed.
TEST_F(TableTest, ANameIsAskedForBesideADropAndManyCreations) {
  for (const char* point_name : {"table_index.array_loaded", "table_index.state_loaded"}) {
    ASSERT_EQ(Create("doomed"), "ok");
    const TableId id = (*f_.catalogue->FindByName("doomed"))->id();
    std::weak_ptr<TableState> doomed = *f_.catalogue->FindByName("doomed");
    bool freed = false;
    {
      AtPoint point(point_name, [&] {
        // More tables than the index has room for, so that it is replaced.
        for (int i = 0; i < 200; ++i) ASSERT_EQ(Create(Concat(point_name, i).c_str()), "ok");
        ASSERT_EQ(Drop("doomed"), "ok");
        ASSERT_TRUE(WaitFreed());
        f_.domain.Collect();
        freed = doomed.expired();
      });
      const Result<std::string> name = f_.catalogue->NameOf(id);
      EXPECT_TRUE(point.reached());
      EXPECT_FALSE(freed) << point_name;
      if (name.ok()) EXPECT_EQ(*name, "doomed");
    }
    EXPECT_EQ(f_.catalogue->NameOf(id).status(), ErrorCode::kNotFound);
    f_.domain.Collect();
    EXPECT_TRUE(doomed.expired()) << "it is freed afterwards";
  }
}

// T1: the DC applies the drop during the collector's round, and restarts before the next one. A commit that the round
// did not take for applied is still to be folded, so its table is still found.
TEST_F(TableTest, ADropThatIsAppliedDuringARoundBeforeTheDcRestarts) {
  TestTransaction t = f_.Begin();
  ASSERT_EQ(t.Put("a", "1"), "ok");
  ASSERT_EQ(t.Commit(), "ok");
  f_.Collect();
  ASSERT_EQ(Drop(), "ok");
  Event restarted;
  std::atomic<int> step{0};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "collector.taken" && step.load() == 0) {
      step.store(1);
      f_.dc->Pump();
    } else if (name == "catalogue.taken_out" && step.load() == 1) {
      step.store(2);
      f_.dc->Restart();
      restarted.Signal(RealRuntime());
    }
  });
  ASSERT_TRUE(restarted.Wait(RealRuntime(), EngineFixture::Soon()));
  testing::SetPointHandler(nullptr);
  f_.Fold();
  EXPECT_TRUE(WaitFreed());
}

// Ranges that were replaced have postings that the collector still counts when the table goes.
TEST_F(TableTest, ADroppedTableWhoseRangesWereReplacedIsFreed) {
  for (int i = 0; i < 20; ++i) f_.Load({{std::string(1, static_cast<char>('a' + i)), "0"}});
  f_.SetRanges({"g", "n"});
  TestTransaction t = f_.Begin();
  EXPECT_EQ(t.Put("h", "1"), "ok");
  f_.SetRanges({"k"});
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(Drop(), "ok");
  EXPECT_TRUE(WaitFreed());
}

TEST_F(TableTest, DroppedTablesThatAreNotFreedAreLimited) {
  EngineFixture few{{.max_tables = 3}};
  const auto create_and_drop = [&] {
    const Status created = few.manager->CreateTable("x", {}, EngineFixture::Soon()).status();
    return created.ok() ? few.manager->DropTable("x", EngineFixture::Soon()) : created;
  };
  TestTransaction open = few.BeginSnapshot();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(create_and_drop().ok());
  const Status refused = create_and_drop();
  EXPECT_EQ(refused, ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("--max_tables"), std::string::npos) << refused.ToString();
  open.Abort();
  const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
  while (few.catalogue->dropped() != 0 && RealRuntime().Now() < patience) few.PumpAndCollect();
  EXPECT_TRUE(create_and_drop().ok());
}

// Tasks for the collector's thread are run even after it has ended, so no caller waits for ever.
TEST_F(TableTest, TasksAfterTheEnd) {
  f_.Load({{"a", "0"}});
  f_.collector->Stop();
  bool ran = false;
  Collector::Mark mark = f_.collector->MarkFinished();
  f_.collector->RunBetweenRounds([&](Collector::Access& access) { ran = access.Collected(&mark); });
  EXPECT_TRUE(ran);
  EXPECT_TRUE(f_.collector->WaitCollected(&mark, EngineFixture::Soon()));
}

// The callers' threads then run them, several at once, beside the thread that stops the collector (ThreadSanitizer
// would report a race).
TEST_F(TableTest, TasksOfManyThreadsAtTheEnd) {
  f_.Load({{"a", "0"}});
  std::vector<std::unique_ptr<Thread>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(RealRuntime().StartThread("caller", [&] {
      for (int n = 0; n < 200; ++n) {
        Collector::Mark mark = f_.collector->MarkFinished();
        EXPECT_TRUE(f_.collector->WaitCollected(&mark, EngineFixture::Soon()));
      }
    }));
  }
  f_.collector->Stop();
  callers.clear();
}

}  // namespace
}  // namespace deut::tc
