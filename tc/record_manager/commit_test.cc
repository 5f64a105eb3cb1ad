// When a commit is visible, acknowledged, and remembered: rules D1, D4, S2, R7. The restart of a DC.
#include <string>

#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

TransactionOptions Durable() { return TransactionOptions{}; }

class CommitTest : public ::testing::Test {
 protected:
  // Returns the answer to a commit with a deadline of a moment, while the device does not answer.
  std::string CommitSoon(TestTransaction& txn) {
    return StatusText(f_.manager->Commit(txn.transaction(), RealRuntime().Now() + milliseconds(50)).status());
  }
  EngineFixture f_{{.faulty_disk = true}};
};

TEST_F(CommitTest, ADurableCommitWaitsForItself) {
  std::unique_ptr<TestTransaction> t10 = f_.BeginPointer(Durable()), t20 = f_.BeginPointer();
  EXPECT_EQ(t10->Put("a", "1"), "ok");
  EXPECT_EQ(t20->Put("b", "1"), "ok");
  f_.disk->HoldCompletions(true);
  EXPECT_EQ(CommitSoon(*t20), "ok");  // buffered: waits for nothing
  EXPECT_EQ(CommitSoon(*t10), "OUTCOME_UNKNOWN");
  // It is ordered nevertheless: others see it (provisionally).
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  f_.disk->HoldCompletions(false);
  TestTransaction t30 = f_.Begin(Durable());
  EXPECT_EQ(t30.Put("c", "1"), "ok");
  EXPECT_EQ(t30.Commit(), "ok");
  EXPECT_GT(f_.log->durable(), t30.transaction().commit_lsn());
}

// D1: everything that a durable reader has shown must be durable: a value, a tombstone, a committed key in the bounds
// of a scan, "the key exists".
TEST_F(CommitTest, ADurableReaderWaitsForWhatItDependedOn) {
  f_.Load({{"old", "0"}, {"gone", "0"}});
  f_.disk->HoldCompletions(true);
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("new", "1"), "ok");
    EXPECT_EQ(t.Remove("gone"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  const auto after = [&](const std::function<void(TestTransaction&)>& read) {
    TestTransaction t = f_.Begin(Durable());
    read(t);
    return CommitSoon(t);
  };
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Get("new"), "1"); }), "DEADLINE_EXCEEDED");
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Get("gone"), "-"); }), "DEADLINE_EXCEEDED");
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Scan(), "new=1 old=0"); }), "DEADLINE_EXCEEDED");
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Insert("new", "2"), "ALREADY_EXISTS"); }), "DEADLINE_EXCEEDED");
  // A record from the DC is durable, and so is the absence of a key there.
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Get("old"), "0"); }), "ok");
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Scan("o"), "old=0"); }), "ok");
  EXPECT_EQ(after([](TestTransaction& t) { EXPECT_EQ(t.Get("never"), "-"); }), "ok");
  f_.disk->HoldCompletions(false);
  TestTransaction t = f_.Begin(Durable());
  EXPECT_EQ(t.Get("new"), "1");
  EXPECT_EQ(t.Commit(), "ok");
}

TEST_F(CommitTest, AFailedPreconditionWaitsForWhatItHasShown) {
  f_.disk->HoldCompletions(true);
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("a", "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  const auto acknowledged = [&](const TransactionOptions& options) {
    TestTransaction t = f_.Begin(options);
    EXPECT_EQ(t.Insert("a", "2"), "ALREADY_EXISTS");
    return StatusText(f_.manager->AbortAcknowledged(t.transaction(), RealRuntime().Now() + milliseconds(50)));
  };
  EXPECT_EQ(acknowledged(Durable()), "DEADLINE_EXCEEDED");
  EXPECT_EQ(acknowledged(EngineFixture::Buffered()), "ok");
  f_.disk->HoldCompletions(false);
  EXPECT_EQ(acknowledged(Durable()), "ok");
}

// D4: no transaction sees a commit whose record is not in the log.
TEST_F(CommitTest, ACommitIsVisibleOnlyOnceItsRecordIsInTheLog) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  std::string read;
  AtPoint point("commit.appending", [&] { read = t20.Get("a"); });
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_TRUE(point.reached());
  EXPECT_EQ(read, "read-uncommitted");
}

// S2: while a transaction's record is being appended, the log's start does not pass it.
TEST_F(CommitTest, TheOldestFirstRecordCoversACommitInProgress) {
  TestTransaction t10 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  Lsn oldest;
  AtPoint point("commit.appended", [&] { oldest = f_.active->OldestFirstRecord(); });
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_TRUE(point.reached());
  EXPECT_LE(oldest, t10.transaction().commit_lsn());
  EXPECT_EQ(f_.active->OldestFirstRecord(), f_.log->tail());
}

// L1: a slot counts until the commit is in the log, so nothing later is shipped before it.
TEST_F(CommitTest, LowWaterWaitsForACommitInProgress) {
  TestTransaction t10 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  for (const char* name : {"commit.before_append", "commit.appended", "commit.committed"}) {
    Timestamp low_water;
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put(name, "1"), "ok");
    t10.Abort();
    AtPoint point(name, [&] { low_water = f_.active->AdvanceNow(); });
    EXPECT_EQ(t.Commit(), "ok");
    EXPECT_TRUE(point.reached());
    EXPECT_LE(low_water.value, t.timestamp());
  }
  // A round of another thread, in progress at this moment, may be the one that counts.
  const Deadline limit = EngineFixture::Soon();
  while (f_.active->AdvanceNow() != f_.active->next_timestamp() && RealRuntime().Now() < limit) RealRuntime().Yield();
  EXPECT_EQ(f_.active->low_water(), f_.active->next_timestamp());
}

TEST_F(CommitTest, ACommitWithoutUpdatesIsNoRecord) {
  const Lsn tail = f_.log->tail();
  TestTransaction t = f_.Begin(Durable());
  EXPECT_EQ(t.Insert("a", "1"), "ok");
  t.Abort();
  TestTransaction u = f_.Begin(Durable());
  EXPECT_EQ(u.Update("a", "1"), "NOT_FOUND");
  EXPECT_EQ(u.ScanForUpdate(), "");
  EXPECT_EQ(u.Commit(), "ok");
  EXPECT_EQ(f_.log->tail(), tail);
  f_.Collect();
  EXPECT_EQ(f_.RangeOf("a").posting_count(), 0u);
  EXPECT_EQ(f_.records->entries(), 0u);
}

// Only the last version of a key is logged, and the sequence says which (S10, X2).
// Reads leave nothing behind that would have to be collected, so they do not wake the collector. A transaction that
// has posted an intent does, however it ends.
TEST_F(CommitTest, AReadOnlyTransactionIsNotHandedToTheCollector) {
  f_.Load({{"a", "1"}});
  const uint64_t before = f_.collector->collected();
  {
    TestTransaction reader = f_.Begin();
    EXPECT_EQ(reader.Get("a"), "1");
    EXPECT_EQ(reader.Get("b"), "-");
    EXPECT_EQ(reader.Scan(), "a=1");
    EXPECT_EQ(reader.Commit(), "ok");
    TestTransaction aborted = f_.Begin();
    EXPECT_EQ(aborted.Get("a"), "1");
    EXPECT_EQ(f_.Begin().Get("a"), "1");
  }
  f_.Collect();
  EXPECT_EQ(f_.collector->collected(), before);
  f_.Begin().Put("a", "2");  // withdrawn
  f_.Collect();
  EXPECT_EQ(f_.collector->collected(), before + 1);
  EXPECT_EQ(f_.RangeOf("a").posting_count(), 0u);
}

TEST_F(CommitTest, OneUpdateAKey) {
  TestTransaction t = f_.Begin();
  EXPECT_EQ(t.Put("a", "1"), "ok");
  EXPECT_EQ(t.Put("b", "1"), "ok");
  EXPECT_EQ(t.Put("a", "2"), "ok");
  EXPECT_EQ(t.Insert("c", "1"), "ok");
  EXPECT_EQ(t.Remove("c"), "ok");
  EXPECT_EQ(t.Insert("b", "x"), "ALREADY_EXISTS");
  EXPECT_EQ(t.Commit(), "ok");
  std::unique_ptr<LogReader> reader = f_.log->NewReader(t.transaction().commit_lsn());
  LogRecord record;
  ASSERT_TRUE(reader->Next(&record, EngineFixture::Soon()).ok());
  std::string text;
  for (const Update& update : record.updates) {
    text += std::to_string(update.sequence) + (update.kind == LogEntryKind::kDelete ? "-" : "+") +
            std::string(update.key) + std::string(update.value) + " ";
  }
  EXPECT_EQ(text, "2+b1 3+a2 5-c ");
}

// A DC that restarts has less than was collected. The TC asks it all the same, and the gate before the reader first
// restores the DC's content.
TEST_F(CommitTest, ARestartedDc) {
  f_.Load({{"a", "1"}});
  const Result<TableId> table = f_.manager->CreateTable("young", {}, EngineFixture::Soon());
  ASSERT_TRUE(table.ok());
  const auto write = [&](const std::string& key) {
    TestTransaction t = f_.Begin();
    t.table = *table;
    EXPECT_EQ(t.Put(key, "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  };
  const auto contents = [&] {
    TestTransaction t = f_.Begin();
    t.table = *table;
    const std::string got = t.Get("y1");
    return t.Scan() + " " + got;
  };
  write("y1");
  f_.dc->Restart();
  EXPECT_EQ(contents(), "y1=1 1");  // the DC does not know the table: all of it is in the TC
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(f_.records->entries(), 0u);
  write("y2");
  f_.dc->Restart();
  EXPECT_EQ(contents(), "y1=1 y2=1 1") << "what was collected is the DC's, whatever its applied position says";
  EXPECT_EQ(f_.Contents(), "a=1");
}

}  // namespace
}  // namespace deut::tc
