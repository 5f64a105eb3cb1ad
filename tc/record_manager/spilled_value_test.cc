// Spilled versions (S9): what point reads, scans, conditions and writers see of them, at any timestamp, while they
// are spilled, merged, applied; with a read cache; on a disk that is full or fails.
#include "tc/record_manager/spilled_value.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pinned.h"
#include "tc/record_manager/read_ahead.h"

namespace deut::tc {
namespace {

std::string Key(int i) { return Concat("k", 1000 + i); }
std::string Value(int key, int generation) { return Concat("v", key, ".", generation); }
std::string AllOf(int count, int generation) {
  std::string all;
  for (int i = 0; i < count; ++i) all += Concat(i == 0 ? "" : " ", Key(i), "=", Value(i, generation));
  return all;
}

class SpilledValueTest : public ::testing::Test {
 protected:
  static EngineFixtureOptions Options() {
    EngineFixtureOptions options;
    options.spills = true;
    options.faulty_disk = true;
    options.read_cache_bytes = 1 << 20;
    options.max_deferred_entries = 0;
    return options;
  }

  void Write(int count, int generation) {
    TestTransaction txn = f_.Begin();
    for (int i = 0; i < count; ++i) ASSERT_EQ(txn.Put(Key(i), Value(i, generation)), "ok");
    ASSERT_EQ(txn.Commit(), "ok");
  }
  // Spills everything that is committed. Afterwards the budget has room again.
  void SpillAll() {
    const Lsn last(f_.log->tail().value - 8);
    ASSERT_TRUE(f_.log->WaitDurable(last, EngineFixture::Soon()).ok());
    f_.Collect();
    f_.Fold();
    f_.SetVersionBudget(0);
    f_.Collect();
    f_.SetVersionBudget(uint64_t{1} << 30);
  }
  void ExpectAllSpilled() {
    EXPECT_EQ(f_.collector->folded(), 0u);
    EXPECT_FALSE(f_.spilled->empty());
    EXPECT_EQ(f_.catalogue->Find(EngineFixture::kTable)->runs().entries(), 0u);
    EXPECT_EQ(f_.collector->folded_bytes(), f_.spilled->memory_bytes());
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(f_.Settle());
    f_.ClearReadCache();
    EXPECT_TRUE(f_.Settle());
    EXPECT_TRUE(f_.spilled->empty());
    EXPECT_EQ(f_.records->entries(), 0u);
    EXPECT_EQ(PinnedBytes(*f_.engine), 0u);
    f_.domain.Collect();
    EXPECT_EQ(f_.storage->List("log/spill")->size(), 2u);  // the lock, and the name of its owner
  }

  EngineFixture f_{Options()};
};

TEST_F(SpilledValueTest, ReadersOfEachAgeFindTheirs) {
  constexpr int kKeys = 500;
  Write(kKeys, 0);
  ASSERT_TRUE(f_.Settle());
  {
    std::vector<std::unique_ptr<TestTransaction>> readers;
    readers.push_back(f_.BeginPointer());
    for (int generation = 1; generation <= 3; ++generation) {
      Write(kKeys, generation);
      readers.push_back(f_.BeginPointer());
      SpillAll();
    }
    ExpectAllSpilled();
    EXPECT_EQ(f_.records->entries(), 0u);
    for (int r = 0; r < 4; ++r) {
      TestTransaction& reader = *readers[static_cast<size_t>(r)];
      for (int i = 0; i < kKeys; i += 17) EXPECT_EQ(reader.Get(Key(i)), Value(i, r));
      EXPECT_TRUE(reader.Scan() == AllOf(kKeys, r)) << r;
      EXPECT_EQ(reader.Scan(Key(7), Key(9)), Concat(Key(7), "=", Value(7, r), " ", Key(8), "=", Value(8, r)));
      EXPECT_EQ(reader.Scan(Key(7), Key(9), Direction::kDescending),
                Concat(Key(8), "=", Value(8, r), " ", Key(7), "=", Value(7, r)));
    }
    EXPECT_GT(f_.engine->counters.spilled_reads.load(), 0u);
    EXPECT_EQ(f_.dc->Pump(), 0u);
  }
  ExpectNothingLeft();
  EXPECT_TRUE(f_.Contents() == AllOf(kKeys, 3));
}

// More runs than stay unmerged, over one another. Some generations have no reader, so a merge leaves them out.
TEST_F(SpilledValueTest, ReadersOfEachAgeFindTheirsInMergedRuns) {
  constexpr int kKeys = 40;
  constexpr int kGenerations = 30;
  Write(kKeys, 0);
  ASSERT_TRUE(f_.Settle());
  {
    std::vector<std::pair<int, std::unique_ptr<TestTransaction>>> readers;
    readers.emplace_back(0, f_.BeginPointer());
    for (int generation = 1; generation <= kGenerations; ++generation) {
      Write(kKeys, generation);
      if (generation % 5 == 0) readers.emplace_back(generation, f_.BeginPointer());
      SpillAll();
    }
    ExpectAllSpilled();
    EXPECT_GT(f_.spilled->merges(), 0u);
    EXPECT_LT(f_.spilled->runs(), size_t{kGenerations});
    EXPECT_LT(f_.spilled->versions(), uint64_t{kGenerations * kKeys});
    for (const auto& [generation, reader] : readers) {
      for (int i = 0; i < kKeys; i += 7) EXPECT_EQ(reader->Get(Key(i)), Value(i, generation));
      EXPECT_TRUE(reader->Scan() == AllOf(kKeys, generation)) << generation;
    }
    EXPECT_EQ(f_.dc->Pump(), 0u);
  }
  ExpectNothingLeft();
  EXPECT_TRUE(f_.Contents() == AllOf(kKeys, kGenerations));
}

TEST_F(SpilledValueTest, TombstonesOwnWritesAndConditions) {
  f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}});
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  {
    TestTransaction txn = f_.Begin();
    ASSERT_EQ(txn.Put("a", "1"), "ok");
    ASSERT_EQ(txn.Remove("b"), "ok");
    ASSERT_EQ(txn.Insert("d", "1"), "ok");
    ASSERT_EQ(txn.Put("e", "0"), "ok");
    ASSERT_EQ(txn.Put("e", "1"), "ok");
    ASSERT_EQ(txn.Commit(), "ok");
  }
  SpillAll();
  ExpectAllSpilled();
  EXPECT_EQ(old->Scan(), "a=0 b=0 c=0");
  EXPECT_EQ(old->Get("b"), "0");
  EXPECT_EQ(f_.Contents(), "a=1 c=0 d=1 e=1");
  {
    TestTransaction txn = f_.Begin();
    EXPECT_EQ(txn.Get("b"), "-");
    EXPECT_EQ(txn.Insert("d", "2"), "ALREADY_EXISTS");
    EXPECT_EQ(txn.Update("b", "2"), "NOT_FOUND");
    EXPECT_EQ(txn.Insert("b", "2"), "ok");
    EXPECT_EQ(txn.Update("a", "2"), "ok");
    EXPECT_EQ(txn.Remove("e"), "ok");
    EXPECT_EQ(txn.Scan(), "a=2 b=2 c=0 d=1");
    EXPECT_EQ(txn.Get("a"), "2");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  EXPECT_EQ(f_.Contents(), "a=2 b=2 c=0 d=1");
  EXPECT_EQ(old->Scan(), "a=0 b=0 c=0");
  SpillAll();
  EXPECT_EQ(f_.Contents(), "a=2 b=2 c=0 d=1");
  EXPECT_EQ(old->Scan(), "a=0 b=0 c=0");
  old->Abort();
  ExpectNothingLeft();
  EXPECT_EQ(f_.Contents(), "a=2 b=2 c=0 d=1");
}

// R1: a writer that began before a spilled version was written meets it as it would in the chain.
TEST_F(SpilledValueTest, AnEarlierWriterMeetsWhatIsGone) {
  const std::unique_ptr<TestTransaction> first = f_.BeginPointer(), second = f_.BeginPointer();
  {
    TestTransaction txn = f_.Begin();
    ASSERT_EQ(txn.Put("a", "1"), "ok");
    ASSERT_EQ(txn.Commit(), "ok");
  }
  SpillAll();
  ExpectAllSpilled();
  EXPECT_EQ(f_.records->entries(), 0u);
  EXPECT_EQ(first->Put("a", "0"), "bucket-floor");
  {
    TestTransaction later = f_.Begin();
    EXPECT_EQ(later.Get("a"), "1");
  }
  EXPECT_EQ(second->Put("a", "0"), "record-read-later");
  EXPECT_EQ(f_.Contents(), "a=1");
}

// The entry stays, because its removal meets a reader's raise. last_read, which was raised with the cut, stops the
// writer.
TEST_F(SpilledValueTest, TheCutRaisesLastRead) {
  const std::unique_ptr<TestTransaction> early = f_.BeginPointer();
  {
    TestTransaction txn = f_.Begin();
    ASSERT_EQ(txn.Put("a", "1"), "ok");
    ASSERT_EQ(txn.Commit(), "ok");
  }
  std::string put;
  {
    // Between the cut and the entry's removal.
    AtPoint point("spill.cut", [&] {
      f_.engine->version_budget_bytes = uint64_t{1} << 30;  // this is the collector's thread, which reads it
      put = early->Put("a", "0");
    });
    SpillAll();
    EXPECT_TRUE(point.reached());
  }
  EXPECT_EQ(put, "record-read-later");
  EXPECT_EQ(f_.Contents(), "a=1");
}

// A reader has looked at the chain before it is cut, and looks at the runs after they are published.
TEST_F(SpilledValueTest, AReaderOnItsWayMissesNothing) {
  f_.Load({{"a", "0"}});
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  {
    TestTransaction txn = f_.Begin();
    ASSERT_EQ(txn.Put("a", "1"), "ok");
    ASSERT_EQ(txn.Commit(), "ok");
  }
  std::string found, scanned;
  {
    AtPoint point("spill.cut", [&] {
      TestTransaction reader = f_.Begin();
      found = reader.Get("a");
      scanned = reader.Scan();
    });
    SpillAll();
    EXPECT_TRUE(point.reached());
  }
  EXPECT_EQ(found, "1");
  EXPECT_EQ(scanned, "a=1");
  EXPECT_EQ(old->Get("a"), "0");
}

// A run is taken off before the versions that were committed after it leave their chain. Otherwise an older version
// would come up again.
TEST_F(SpilledValueTest, AnOlderSpilledValueDoesNotComeBack) {
  {
    const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
    Write(3, 1);
    SpillAll();
    Write(3, 2);
  }
  ASSERT_EQ(f_.spilled->runs(), 1u);
  std::vector<std::string> seen;
  f_.dc->Pump();
  for (int i = 0; i < 4; ++i) {
    f_.Collect();
    seen.push_back(f_.Contents());
  }
  for (const std::string& contents : seen) ASSERT_EQ(contents, AllOf(3, 2));
  ExpectNothingLeft();
}

// An open transaction's version is above the spilled ones in the chain. So these stay in the chain, too, and go
// another time.
TEST_F(SpilledValueTest, BelowAnOpenTransactionItStays) {
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  Write(4, 1);
  const std::unique_ptr<TestTransaction> writer = f_.BeginPointer();
  ASSERT_EQ(writer->Put(Key(1), "open"), "ok");
  SpillAll();
  EXPECT_EQ(f_.collector->folded(), 1u);
  EXPECT_EQ(f_.spilled->versions(), 4u);
  EXPECT_EQ(f_.records->entries(), 1u);
  writer->Abort();
  f_.Collect();
  EXPECT_EQ(f_.Begin().Get(Key(1)), Value(1, 1));
  Write(1, 2);
  SpillAll();
  ExpectAllSpilled();
  EXPECT_EQ(f_.collector->spilled(), 5u);
  EXPECT_EQ(f_.Begin().Get(Key(1)), Value(1, 1));
  EXPECT_EQ(f_.Begin().Get(Key(0)), Value(0, 2));
  old->Abort();
  ExpectNothingLeft();
}

// S7: an answer that is older than the spilled version is not kept, whichever thread brings it and whenever.
TEST_F(SpilledValueTest, NoCopyHidesWhatWasSpilled) {
  f_.Load({{"a", "0"}});
  f_.ClearReadCache();
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  const std::unique_ptr<TestTransaction> older = f_.BeginPointer();
  {
    AtPoint point("read.before_fill", [&] {
      TestTransaction txn = f_.Begin();
      ASSERT_EQ(txn.Put("a", "1"), "ok");
      ASSERT_EQ(txn.Commit(), "ok");
      SpillAll();
    });
    EXPECT_EQ(old->Get("a"), "0");
    ASSERT_TRUE(point.reached());
  }
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_EQ(older->Get("a"), "0");  // the runs have nothing for it, the DC has
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_EQ(f_.Contents(), "a=1");
  old->Abort();
  older->Abort();
  ExpectNothingLeft();
  EXPECT_EQ(f_.Contents(), "a=1");
}

// The same for reading ahead, which asks for nothing any more while there are runs.
TEST_F(SpilledValueTest, NothingIsReadAheadOverWhatWasSpilled) {
  f_.Load({{"a", "0"}});
  f_.ClearReadCache();
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  ReadAhead ahead(*f_.engine);
  const Operation get{.kind = OperationKind::kGet, .table = EngineFixture::kTable, .key = "a"};
  EXPECT_TRUE(ahead.Add(get));
  EXPECT_TRUE(ahead.Start());
  {
    AtPoint point("read_ahead.before_fill", [&] {
      TestTransaction txn = f_.Begin();
      ASSERT_EQ(txn.Put("a", "1"), "ok");
      ASSERT_EQ(txn.Commit(), "ok");
      SpillAll();
    });
    ahead.Finish(EngineFixture::Soon());
    ASSERT_TRUE(point.reached());
  }
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_FALSE(ahead.Add(get));
  EXPECT_FALSE(ahead.Start());
  old->Abort();
  ExpectNothingLeft();
  EXPECT_EQ(f_.Contents(), "a=1");
}

// A commit that may still arrive is earlier than the commits that are there, so nothing behind it is spilled.
TEST_F(SpilledValueTest, ACommitInProgressIsSpilledBeforeLaterOnes) {
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  std::unique_ptr<TestTransaction> late = f_.BeginPointer();
  ASSERT_EQ(late->Put("a", "1"), "ok");
  std::atomic<bool> stopped{false}, go{false};
  {
    AtPoint point("commit.committed", [&] {
      stopped = true;
      while (!go) std::this_thread::yield();
    });
    std::thread committer([&] { EXPECT_EQ(late->Commit(), "ok"); });
    while (!stopped) std::this_thread::yield();
    {
      TestTransaction txn = f_.Begin();
      ASSERT_EQ(txn.Put("b", "1"), "ok");
      ASSERT_EQ(txn.Commit(), "ok");
    }
    SpillAll();
    EXPECT_TRUE(f_.spilled->empty());
    EXPECT_EQ(f_.collector->folded(), 1u);
    go = true;
    committer.join();
  }
  SpillAll();
  ExpectAllSpilled();
  EXPECT_EQ(f_.Contents(), "a=1 b=1");
}

TEST_F(SpilledValueTest, AFullDiskLosesNothing) {
  constexpr int kKeys = 100;
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  Write(kKeys, 1);
  f_.disk->AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskChanging, .path_contains = "spill-"});
  SpillAll();
  EXPECT_TRUE(f_.spilled->empty());
  EXPECT_GT(f_.collector->failed_spills(), 0u);
  EXPECT_EQ(f_.collector->folded(), 1u);
  EXPECT_TRUE(f_.Contents() == AllOf(kKeys, 1));
  f_.disk->RemoveAllFaults();
  EXPECT_EQ(f_.storage->List("log/spill")->size(), 2u);  // the lock, and the name of its owner
}

TEST_F(SpilledValueTest, ABlockThatCannotBeReadFailsItsReaderAlone) {
  f_.Load({{"z", "0"}});
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  Write(100, 1);
  SpillAll();
  ExpectAllSpilled();
  for (const DiskFault::Action action : {DiskFault::Action::kIoError, DiskFault::Action::kFlipBit}) {
    f_.disk->AddFault({.action = action, .kinds = kDiskRead, .path_contains = "spill-"});
    const char* const error = action == DiskFault::Action::kIoError ? "IO_ERROR" : "CORRUPTION";
    EXPECT_EQ(f_.Begin().Get(Key(1)), error);
    EXPECT_EQ(f_.Begin().Scan(), error);
    EXPECT_EQ(f_.Begin().Insert(Key(1), "x"), error);
    RecordBatch batch;
    TestTransaction txn = f_.Begin();
    const Status read = f_.manager->Get(txn.transaction(), txn.table, Key(1), &batch, EngineFixture::Soon());
    EXPECT_NE(read.ToString().find("log/spill/spill-1"), std::string::npos) << read.ToString();
    EXPECT_NE(read.ToString().find("offset 0"), std::string::npos) << read.ToString();
    f_.disk->RemoveAllFaults();
  }
  EXPECT_EQ(f_.Begin().Get(Key(1)), Value(1, 1));
  EXPECT_EQ(old->Get("z"), "0");
  old->Abort();
  ExpectNothingLeft();
}

// Readers and writers on a few keys while everything is folded, spilled, merged and applied all the time. A
// transaction writes all keys. So whatever a reader reads, in any way, is one generation.
TEST_F(SpilledValueTest, Stress) {
  constexpr int kKeys = 24;
  constexpr int kRounds = 60;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> compared{0};
  std::vector<std::thread> threads;
  for (int reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      while (!done) {
        TestTransaction txn = f_.Begin();
        const std::string first = txn.Scan();
        if (!txn.open()) continue;
        for (int again = 0; again < 6 && txn.open(); ++again) {
          const std::string next = reader == 1 ? txn.Scan() : txn.Get(Key(again));
          if (!txn.open()) break;
          if (reader == 1) {
            EXPECT_EQ(next, first);
          } else if (!first.empty()) {
            EXPECT_NE(first.find(Concat(Key(again), "=", next)), std::string::npos) << first << " / " << next;
          } else {
            EXPECT_EQ(next, "-");
          }
          ++compared;
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) f_.dc->Pump();
  });
  for (int round = 1; round <= kRounds;) {
    f_.SetVersionBudget(uint64_t{1} << 30);
    TestTransaction txn = f_.Begin();
    std::string put = "ok";
    for (int i = 0; i < kKeys && put == "ok"; ++i) put = txn.Put(Key(i), Value(i, round));
    if (put == "ok" && txn.Commit() == "ok") ++round;
    f_.Fold();
    f_.SetVersionBudget(0);
    f_.Collect();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  f_.SetVersionBudget(uint64_t{1} << 30);
  EXPECT_GT(compared.load(), 0u);
  EXPECT_GT(f_.collector->spilled(), 0u);
  EXPECT_TRUE(f_.Contents() == AllOf(kKeys, kRounds));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace deut::tc
