// Transactions one after another: reads, writes, scans both ways, limits, snapshots, errors.
#include "tc/record_manager/record_manager.h"

#include <string>

#include "common/base/concat.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

TEST(RecordManagerTest, PutGetRemoveAcrossTransactions) {
  EngineFixture f;
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Get("a"), "-");
    EXPECT_EQ(t.Put("a", "1"), "ok");
    EXPECT_EQ(t.Get("a"), "1");
    EXPECT_EQ(t.Put("a", "2"), "ok");
    EXPECT_EQ(t.Get("a"), "2");
    EXPECT_EQ(t.Commit(), "ok");
  }
  for (const bool applied : {false, true}) {
    SCOPED_TRACE(applied);
    if (applied) f.PumpAndCollect();
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Get("a"), "2");
    EXPECT_EQ(t.Get("b"), "-");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Remove("a"), "ok");
    EXPECT_EQ(t.Get("a"), "-");
    EXPECT_EQ(t.Remove("never"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_EQ(f.Begin().Get("a"), "-");
  f.PumpAndCollect();
  EXPECT_EQ(f.Begin().Get("a"), "-");
  EXPECT_EQ(f.dc->records(), 0u);
}

TEST(RecordManagerTest, InsertAndUpdateJudgeWhatIsThere) {
  EngineFixture f;
  f.Load({{"dc", "1"}});  // only at the DC
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put("tc", "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Insert("dc", "x"), "ALREADY_EXISTS");
    EXPECT_EQ(t.Insert("tc", "x"), "ALREADY_EXISTS");
    EXPECT_EQ(t.Update("none", "x"), "NOT_FOUND");
    EXPECT_EQ(t.Get("none"), "-");
    EXPECT_EQ(t.Get("dc"), "1");
    EXPECT_EQ(t.Get("tc"), "1");
    EXPECT_EQ(t.Update("dc", "2"), "ok");
    EXPECT_EQ(t.Update("tc", "2"), "ok");
    EXPECT_EQ(t.Insert("new", "1"), "ok");
    EXPECT_EQ(t.Insert("new", "2"), "ALREADY_EXISTS");
    EXPECT_EQ(t.Update("new", "3"), "ok");
    EXPECT_EQ(t.Remove("new"), "ok");
    EXPECT_EQ(t.Update("new", "4"), "NOT_FOUND");
    EXPECT_EQ(t.Insert("new", "5"), "ok");
    EXPECT_EQ(t.Get("new"), "5");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_EQ(f.Contents(), "dc=2 new=5 tc=2");
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.Contents(), "dc=2 new=5 tc=2");
  EXPECT_EQ(f.records->entries(), 0u);
}

// R4, R11: the intent version of a failed insert is seen by no transaction, not even by the inserter.
TEST(RecordManagerTest, AFailedPreconditionLeavesNothing) {
  EngineFixture f;
  f.Load({{"a", "1"}});
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Insert("a", "x"), "ALREADY_EXISTS");
  EXPECT_EQ(t.Get("a"), "1");
  EXPECT_EQ(t.Scan(), "a=1");
  EXPECT_EQ(t.Update("b", "x"), "NOT_FOUND");
  EXPECT_EQ(t.Insert("b", "2"), "ok");
  EXPECT_EQ(t.Put("a", "3"), "ok");
  EXPECT_EQ(t.Scan(), "a=3 b=2");
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f.Contents(), "a=3 b=2");
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.Contents(), "a=3 b=2");
  EXPECT_EQ(f.records->entries(), 0u);
}

TEST(RecordManagerTest, AbortUndoesEverything) {
  EngineFixture f;
  f.Load({{"a", "1"}, {"b", "1"}});
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put("a", "2"), "ok");
    EXPECT_EQ(t.Remove("b"), "ok");
    EXPECT_EQ(t.Insert("c", "2"), "ok");
    t.Abort();
  }
  EXPECT_EQ(f.Contents(), "a=1 b=1");
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Insert("c", "3"), "ok");
    EXPECT_EQ(t.Put("a", "3"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_EQ(f.Contents(), "a=3 b=1 c=3");
  f.PumpAndCollect();
  EXPECT_EQ(f.Contents(), "a=3 b=1 c=3");
}

TEST(RecordManagerTest, ScansMergeWhatBothSidesHold) {
  EngineFixture f;
  f.Load({{"b", "dc"}, {"d", "dc"}, {"f", "dc"}, {"h", "dc"}});
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put("a", "tc"), "ok");
    EXPECT_EQ(t.Put("d", "tc"), "ok");
    EXPECT_EQ(t.Remove("f"), "ok");
    EXPECT_EQ(t.Put("i", "tc"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Put("c", "own"), "ok");
  EXPECT_EQ(t.Remove("b"), "ok");
  EXPECT_EQ(t.Scan(), "a=tc c=own d=tc h=dc i=tc");
  EXPECT_EQ(t.Scan("", "", Direction::kDescending), "i=tc h=dc d=tc c=own a=tc");
  EXPECT_EQ(t.Scan("c", "h"), "c=own d=tc");
  EXPECT_EQ(t.Scan("c", "h", Direction::kDescending), "d=tc c=own");
  EXPECT_EQ(t.Scan("h"), "h=dc i=tc");
  EXPECT_EQ(t.Scan("", "c"), "a=tc");
  EXPECT_EQ(t.Scan("e", "g"), "");
  EXPECT_EQ(t.Scan("g", "e"), "");
}

TEST(RecordManagerTest, ScansCrossRanges) {
  EngineFixture f;
  f.Load({{"a", "1"}, {"g", "1"}, {"h", "1"}, {"n", "1"}, {"z", "1"}});
  {
    TestTransaction t = f.Begin();
    for (const char* key : {"b", "g", "m", "o"}) EXPECT_EQ(t.Put(key, "2"), "ok");
    EXPECT_EQ(t.Remove("h"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  f.SetRanges({"g", "n", "p"});
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Scan(), "a=1 b=2 g=2 m=2 n=1 o=2 z=1");
  EXPECT_EQ(t.Scan("", "", Direction::kDescending), "z=1 o=2 n=1 m=2 g=2 b=2 a=1");
  EXPECT_EQ(t.Scan("b", "n"), "b=2 g=2 m=2");
  EXPECT_EQ(t.Scan("b", "n", Direction::kDescending), "m=2 g=2 b=2");
  EXPECT_EQ(t.Scan("g", "h"), "g=2");
  EXPECT_EQ(t.Scan("p", "q"), "");
}

// For every limit, every direction, every place of the records: the pieces together are the whole.
TEST(RecordManagerTest, LimitsAndResume) {
  EngineFixture f;
  std::string ascending, descending;
  std::vector<std::pair<std::string, std::string>> at_dc, at_tc;
  for (int i = 0; i < 30; ++i) {
    const std::string key = "k" + std::to_string(100 + i);
    const std::string value = std::to_string(i);
    (i % 3 == 0 ? at_tc : at_dc).push_back({key, value});
    ConcatTo(&ascending, i == 0 ? "" : " ", key, "=", value);
    descending = Concat(key, "=", value, i == 0 ? "" : " ", descending);
  }
  f.Load(at_dc);
  {
    TestTransaction t = f.Begin();
    for (const auto& [key, value] : at_tc) EXPECT_EQ(t.Put(key, value), "ok");
    EXPECT_EQ(t.Put("k1005", "x"), "ok");
    EXPECT_EQ(t.Remove("k1005"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  for (const bool ranges : {false, true}) {
    if (ranges) f.SetRanges({"k105", "k106", "k120"});
    for (const uint32_t dc_records : {0u, 1u, 3u}) {
      f.dc->set_scan_records(dc_records);
      for (const auto& [records, bytes] : {std::pair<uint32_t, uint32_t>{0, 1}, {1, 1 << 20}, {4, 1 << 20}, {0, 100}}) {
        for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
          SCOPED_TRACE(::testing::Message() << ranges << " dc " << dc_records << " records " << records << " bytes "
                                            << bytes << " direction " << static_cast<int>(direction));
          TestTransaction t = f.Begin();
          Operation scan{.direction = direction, .limit_records = records, .limit_bytes = bytes};
          std::string all;
          int batches = 0;
          for (bool more = true; more; ++batches) {
            const std::string text = t.ScanBatch(&scan, &more);
            const size_t count = text.empty() ? 0 : 1 + static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
            if (records != 0) EXPECT_LE(count, records);
            if (bytes == 1) EXPECT_LE(count, 1u);
            if (!all.empty() && !text.empty()) all += ' ';
            all += text;
            ASSERT_LE(batches, 40);
          }
          EXPECT_EQ(all, direction == Direction::kAscending ? ascending : descending);
        }
      }
    }
  }
}

TEST(RecordManagerTest, SnapshotsReadBelowTheOldestWriter) {
  EngineFixture f;
  f.Load({{"a", "1"}, {"b", "1"}});
  TestTransaction writer = f.Begin();
  EXPECT_EQ(writer.Put("a", "2"), "ok");
  TestTransaction later = f.Begin();
  EXPECT_EQ(later.Put("b", "2"), "ok");
  EXPECT_EQ(later.Put("c", "2"), "ok");
  EXPECT_EQ(later.Commit(), "ok");
  f.active->AdvanceNow();
  {
    // The snapshot's timestamp is the oldest writer's own: no conflict with its posting.
    TestTransaction snapshot = f.BeginSnapshot();
    EXPECT_EQ(snapshot.timestamp(), writer.timestamp());
    EXPECT_EQ(snapshot.Get("a"), "1");
    EXPECT_EQ(snapshot.Get("b"), "1");
    EXPECT_EQ(snapshot.Scan(), "a=1 b=1");
    EXPECT_EQ(snapshot.Scan("", "", Direction::kDescending), "b=1 a=1");
    EXPECT_EQ(writer.Put("d", "2"), "ok");  // a snapshot causes no aborts
    EXPECT_EQ(writer.Commit(), "ok");
    f.PumpAndCollect();
    EXPECT_EQ(snapshot.Scan(), "a=1 b=1");
    EXPECT_EQ(snapshot.Put("a", "x"), "WRONG_STATE");
    EXPECT_EQ(snapshot.ScanForUpdate(), "WRONG_STATE");
    EXPECT_EQ(snapshot.Commit(), "ok");
  }
  TransactionOptions fresh = EngineFixture::Buffered();
  fresh.isolation = Isolation::kSnapshot;
  fresh.min_timestamp = Timestamp{later.timestamp()};
  EXPECT_EQ(f.Begin(fresh).Scan(), "a=2 b=2 c=2 d=2");
  fresh.min_timestamp = Timestamp{uint64_t{1} << 60};
  EXPECT_EQ(StatusText(f.manager->Begin(fresh, EngineFixture::Soon()).status()), "INVALID_ARGUMENT");
}

// L2, ahead: a transaction that has only read and stays open does not hold back snapshots of later commits. It reads
// on as before, and loses if it writes after that.
TEST(RecordManagerTest, AnOpenReaderHoldsNoSnapshotBack) {
  EngineFixture f;
  f.Load({{"a", "0"}, {"b", "0"}});
  TestTransaction reader = f.Begin(), reads_then_writes = f.Begin();
  EXPECT_EQ(reader.Get("a"), "0");
  EXPECT_EQ(reads_then_writes.Get("b"), "0");
  TransactionOptions fresh = EngineFixture::Buffered();
  fresh.isolation = Isolation::kSnapshot;
  for (int i = 1; i <= 20; ++i) {
    TestTransaction writer = f.Begin();
    ASSERT_EQ(writer.Put("a", std::to_string(i)), "ok");
    ASSERT_EQ(writer.Put("c", std::to_string(i)), "ok");
    const uint64_t written_at = writer.timestamp();
    ASSERT_EQ(writer.Commit(), "ok");
    // Versions that no transaction reads leave early (S6).
    if (i % 2 == 0) f.Fold();
    fresh.min_timestamp = Timestamp{written_at};
    TestTransaction snapshot = f.Begin(fresh);
    EXPECT_GT(snapshot.timestamp(), written_at);
    ASSERT_EQ(snapshot.Scan(), Concat("a=", i, " b=0 c=", i));
    ASSERT_EQ(snapshot.Get("a"), std::to_string(i));
  }
  EXPECT_EQ(reader.Scan(), "a=0 b=0");
  EXPECT_EQ(reader.Commit(), "ok");
  EXPECT_EQ(reads_then_writes.Put("b", "1"), "passed-by-snapshot");
  // If the write is declared it counts from the begin on, and snapshots wait for it.
  TestTransaction again = f.Begin(EngineFixture::Declaring({"b"}));
  EXPECT_EQ(again.Get("b"), "0");
  TestTransaction writer = f.Begin();
  ASSERT_EQ(writer.Put("a", "21"), "ok");
  fresh.min_timestamp = Timestamp{writer.timestamp()};
  ASSERT_EQ(writer.Commit(), "ok");
  EXPECT_EQ(StatusText(f.manager->Begin(fresh, RealRuntime().Now() + milliseconds(100)).status()), "DEADLINE_EXCEEDED");
  EXPECT_EQ(again.Put("b", "1"), "ok");
  EXPECT_EQ(again.Commit(), "ok");
  EXPECT_EQ(f.Begin(fresh).Get("b"), "1");
}

// Before the first round of low-water a snapshot reads below the reservation made at the start, not below nothing.
TEST(RecordManagerTest, ASnapshotOfTheFirstMoment) {
  EngineFixture f;
  TestTransaction snapshot = f.BeginSnapshot();
  EXPECT_GE(snapshot.timestamp(), 1u);
  EXPECT_EQ(snapshot.Scan(), "");
  EXPECT_LE(f.active->low_water().value, snapshot.timestamp());
}

TEST(RecordManagerTest, MultiGetAsksOnce) {
  EngineFixture f;
  f.Load({{"a", "1"}, {"c", "1"}});
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Put("b", "own"), "ok");
  const std::vector<std::string> keys = {"a", "b", "c", "d", ""};
  std::vector<Operation> gets;
  std::vector<OperationResult> results(keys.size());
  std::vector<const Operation*> get_pointers;
  std::vector<OperationResult*> result_pointers;
  for (const std::string& key : keys) gets.push_back({.table = EngineFixture::kTable, .key = key});
  for (size_t i = 0; i < keys.size(); ++i) {
    get_pointers.push_back(&gets[i]);
    result_pointers.push_back(&results[i]);
  }
  const uint64_t before = f.dc->requests();
  ASSERT_TRUE(
      f.manager->MultiGet(t.transaction(), get_pointers, absl::MakeSpan(result_pointers), EngineFixture::Soon()).ok());
  EXPECT_EQ(f.dc->requests() - before, 3u);
  const auto value = [&](size_t i) {
    RecordBatch::Iterator it(results[i].records);
    return it.Valid() ? std::string(it.record().value) : StatusText(results[i].status);
  };
  EXPECT_EQ(value(0), "1");
  EXPECT_EQ(value(1), "own");
  EXPECT_EQ(value(2), "1");
  EXPECT_EQ(value(3), "ok");
  EXPECT_EQ(value(4), "INVALID_ARGUMENT");
}

TEST(RecordManagerTest, Errors) {
  EngineFixture f;
  TestTransaction t = f.Begin();
  const std::string longest(kMaxKeyBytes, 'k');
  const std::string too_long(kMaxKeyBytes + 1, 'k');
  EXPECT_EQ(t.Put("", "v"), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Put(too_long, "v"), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Get(""), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Get(too_long), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Remove(""), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Insert(too_long, "v"), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Put("big", std::string(kMaxValueBytes + 1, 'v')), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Scan(std::string(kMaxKeyBytes + 2, 'k')), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Put(longest, "v"), "ok");
  EXPECT_EQ(t.Get(longest), "v");
  EXPECT_EQ(t.Put("empty", ""), "ok");
  EXPECT_EQ(t.Scan("e", "f"), "empty=");
  t.table = TableId{2};
  EXPECT_EQ(t.Put("a", "v"), "NOT_FOUND");
  EXPECT_EQ(t.Get("a"), "NOT_FOUND");
  EXPECT_EQ(t.Scan(), "NOT_FOUND");
  t.table = TableId{1u << 30};
  EXPECT_EQ(t.Get("a"), "NOT_FOUND");
  t.table = EngineFixture::kTable;
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(t.Put("a", "v"), "WRONG_STATE");
  EXPECT_EQ(t.Get("a"), "WRONG_STATE");
  EXPECT_EQ(t.Scan(), "WRONG_STATE");
  EXPECT_EQ(t.Commit(), "WRONG_STATE");
  {
    TestTransaction big = f.Begin();
    EXPECT_EQ(big.Put("big", std::string(kMaxValueBytes, 'v')), "ok");
    EXPECT_EQ(big.Get("big").size(), size_t{kMaxValueBytes});
  }
}

TEST(RecordManagerTest, ARefusalByTheDcEndsTheTransaction) {
  EngineFixture f;
  f.Load({{"a", "1"}});
  f.dc->set_error(DEUT_ERROR(kUnavailable, "away"));
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put("b", "1"), "ok");
    EXPECT_EQ(t.Get("b"), "1");  // needs no DC
    EXPECT_EQ(t.Insert("a", "1"), "UNAVAILABLE");
    EXPECT_FALSE(t.open());
  }
  f.dc->set_error(Status::Ok());
  EXPECT_EQ(f.Contents(), "a=1");
  f.dc->set_has_space(false);
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Remove("a"), "ok");  // X7: deletes get through
  EXPECT_EQ(t.Put("b", "1"), "RESOURCE_EXHAUSTED");
}

// Other transactions have committed since its puts were accepted.
TEST(RecordManagerTest, X7PutsThatHaveNoRoomAnyMoreAreRefusedAtTheCommit) {
  EngineFixture f;
  f.Load({{"a", "1"}, {"b", "1"}});
  TestTransaction puts = f.Begin(), removes = f.Begin();
  EXPECT_EQ(puts.Put("a", "2"), "ok");
  EXPECT_EQ(removes.Remove("b"), "ok");
  f.dc->set_has_space(false);
  EXPECT_EQ(puts.Commit(), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(removes.Commit(), "ok");
  f.dc->set_has_space(true);
  EXPECT_EQ(f.Contents(), "a=1");
}

TEST(RecordManagerTest, TheVersionBudgetRefusesWritersUntilTheDcHasCaughtUp) {
  EngineFixture f;
  f.SetVersionBudget(1000);
  const std::string key(1000, 'k');  // a value might leave memory (S9)
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put(key, "1"), "ok");
    EXPECT_EQ(f.Begin().Put("b", "1"), "RESOURCE_EXHAUSTED");
    // A transaction's own bytes do not count against it; they have a limit of their own (write_limit_test).
    EXPECT_EQ(t.Put("b", "1"), "ok");
  }
  f.Collect();
  EXPECT_EQ(f.engine->counters.pinned_bytes.load(), 0u);
  {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put(key, "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_EQ(f.Begin().Put("b", "1"), "RESOURCE_EXHAUSTED");
  f.PumpAndCollect();
  EXPECT_EQ(f.Begin().Put("b", "1"), "ok");
}

}  // namespace
}  // namespace deut::tc
