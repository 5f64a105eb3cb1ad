// Values that are paged out (S9): what point reads, scans and read-modify-writes see of them, in the log's memory and
// on its disk; when the log is trimmed, cannot be read, or is appended to.
#include "tc/record_manager/logged_value.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

constexpr size_t kValueBytes = 4000;

std::string Key(int i) { return Concat("k", 1000 + i); }
std::string Value(int key, int generation, size_t bytes = kValueBytes) {
  std::string value = Concat(key, ":", generation, ":");
  value.resize(bytes, static_cast<char>('a' + (key + generation) % 26));
  return value;
}
// The records with keys [0, count).
std::string AllOf(int count, int generation) {
  std::string all;
  for (int i = 0; i < count; ++i) all += Concat(i == 0 ? "" : " ", Key(i), "=", Value(i, generation));
  return all;
}

class LoggedValueTest : public ::testing::Test {
 protected:
  static EngineFixtureOptions Options() {
    EngineFixtureOptions options;
    options.version_budget_bytes = 256 << 10;
    options.faulty_disk = true;
    return options;
  }

  // Commits each key by itself. If there is no room, it makes everything that can leave memory do so.
  void Write(int count, int generation) {
    for (int i = 0; i < count; ++i) WriteOne(Key(i), Value(i, generation));
  }
  void WriteOne(const std::string& key, const std::string& value) {
    const Deadline soon = EngineFixture::Soon();
    for (;;) {
      TestTransaction txn = f_.Begin();
      const std::string put = txn.Put(key, value);
      const std::string done = put == "ok" ? txn.Commit() : put;
      if (done == "ok") return;
      ASSERT_EQ(done, "RESOURCE_EXHAUSTED");  // the budget, or a file of the log, is exhausted
      ASSERT_LT(RealRuntime().Now(), soon);
      f_.Fold();
      f_.Collect();
    }
  }
  // Pages out everything that is committed and large enough. Afterwards the budget has room again.
  void PageAllOut() {
    const Lsn last(f_.log->tail().value - 8);
    ASSERT_TRUE(f_.log->WaitDurable(last, EngineFixture::Soon()).ok());
    f_.Fold();
    f_.SetVersionBudget(0);
    f_.Collect();
    f_.SetVersionBudget(uint64_t{1} << 30);
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(f_.Settle());
    EXPECT_EQ(f_.collector->folded(), 0u);
    EXPECT_EQ(f_.records->entries(), 0u);
    EXPECT_EQ(PinnedBytes(*f_.engine), 0u);
  }

  EngineFixture f_{Options()};
};

TEST_F(LoggedValueTest, OldReadersReadTheirValuesWhateverIsWritten) {
  constexpr int kKeys = 300;  // over a megabyte a generation: four times the budget, and more than the log's buffer
  {
    Write(kKeys, 0);
    ASSERT_TRUE(f_.Settle());
    std::vector<std::unique_ptr<TestTransaction>> readers;
    readers.push_back(f_.BeginPointer());
    EXPECT_EQ(readers[0]->Get(Key(7)), Value(7, 0));
    for (int generation = 1; generation <= 3; ++generation) {
      Write(kKeys, generation);
      f_.Fold();
      f_.Collect();
      readers.push_back(f_.BeginPointer());
    }
    EXPECT_GT(f_.collector->paged_out(), 2u * kKeys);
    EXPECT_LE(PinnedBytes(*f_.engine), 2 * f_.engine->version_budget_bytes);
    for (int round = 0; round < 2; ++round) {
      for (int r = 0; r < static_cast<int>(readers.size()); ++r) {
        for (int i = 0; i < kKeys; i += 17) EXPECT_EQ(readers[static_cast<size_t>(r)]->Get(Key(i)), Value(i, r));
        EXPECT_TRUE(readers[static_cast<size_t>(r)]->Scan() == AllOf(kKeys, r)) << r;
      }
    }
    const RedoLogCounters log = f_.log->counters();
    EXPECT_GT(log.values_from_disk, 0u);
    EXPECT_GT(log.values_from_kept, log.values_from_disk);
    EXPECT_GT(f_.engine->counters.log_reads.load(), 0u);
    EXPECT_EQ(f_.dc->Pump(), 0u);
  }
  ExpectNothingLeft();
  EXPECT_TRUE(f_.Contents() == AllOf(kKeys, 3));
}

TEST_F(LoggedValueTest, ScansDescendAndMixWithWhatIsInMemory) {
  constexpr int kKeys = 40;
  f_.SetVersionBudget(uint64_t{1} << 30);
  Write(kKeys, 0);
  ASSERT_TRUE(f_.Settle());
  {
    const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
    Write(kKeys, 1);
    PageAllOut();
    EXPECT_EQ(f_.collector->paged_out(), static_cast<uint64_t>(kKeys));
    const std::unique_ptr<TestTransaction> middle = f_.BeginPointer();
    {
      TestTransaction txn = f_.Begin();
      for (int i = 0; i < kKeys; i += 2) ASSERT_EQ(txn.Put(Key(i), Value(i, 2)), "ok");
      ASSERT_EQ(txn.Remove(Key(1)), "ok");
      ASSERT_EQ(txn.Commit(), "ok");
    }
    std::string latest, backwards;
    for (int i = 0; i < kKeys; ++i) {
      if (i == 1) continue;
      const std::string record = Concat(Key(i), "=", Value(i, i % 2 == 0 ? 2 : 1));
      latest += (i == 0 ? "" : " ") + record;
      backwards = Concat(record, backwards.empty() ? "" : " ", backwards);
    }
    EXPECT_EQ(f_.Contents(), latest);
    EXPECT_EQ(f_.Begin().Scan({}, {}, Direction::kDescending), backwards);
    EXPECT_EQ(middle->Scan(), AllOf(kKeys, 1));
    EXPECT_EQ(old->Scan(), AllOf(kKeys, 0));
  }
  ExpectNothingLeft();
}

// A large transaction is logged in chunks. Values that it has itself replaced or removed are not in the log.
TEST_F(LoggedValueTest, ATransactionInChunks) {
  constexpr int kKeys = 30;  // four chunks
  f_.SetVersionBudget(uint64_t{1} << 30);
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  {
    TestTransaction txn = f_.Begin();
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(txn.Put(Key(i), Value(i, 1)), "ok");
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(txn.Put(Key(i), Value(i, 2)), "ok");
    ASSERT_EQ(txn.Put("gone", Value(0, 0)), "ok");
    ASSERT_EQ(txn.Remove("gone"), "ok");
    ASSERT_EQ(txn.Commit(), "ok");
  }
  PageAllOut();
  EXPECT_EQ(f_.collector->paged_out(), static_cast<uint64_t>(kKeys));
  EXPECT_EQ(f_.Contents(), AllOf(kKeys, 2));
  EXPECT_EQ(f_.Begin().Get("gone"), "-");
  EXPECT_EQ(old->Scan(), "");
}

TEST_F(LoggedValueTest, ConditionsReadWhatIsThere) {
  const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  WriteOne("k", Value(1, 1));
  PageAllOut();
  ASSERT_EQ(f_.collector->paged_out(), 1u);
  const std::string expected = Value(1, 1), next = Value(1, 2);
  Operation compare{.kind = OperationKind::kCompareAndSet, .table = EngineFixture::kTable, .key = "k", .value = next};
  compare.expected = next;
  {
    TestTransaction txn = f_.Begin();
    RecordBatch shown;
    EXPECT_EQ(f_.manager->Change(txn.transaction(), compare, &shown, EngineFixture::Soon()).code(),
              ErrorCode::kConditionFailed);
    RecordBatch::Iterator it(shown);
    ASSERT_TRUE(it.Valid());
    EXPECT_EQ(it.record().value, expected);
    EXPECT_EQ(txn.Insert("k", "x"), "ALREADY_EXISTS");
    EXPECT_EQ(txn.Get("k"), expected);
  }
  compare.expected = expected;
  TestTransaction txn = f_.Begin();
  RecordBatch shown;
  EXPECT_TRUE(f_.manager->Change(txn.transaction(), compare, &shown, EngineFixture::Soon()).ok());
  EXPECT_EQ(txn.Get("k"), next);
  EXPECT_EQ(txn.Commit(), "ok");
  EXPECT_EQ(f_.Begin().Get("k"), next);
}

// S2. The reader has found the place. Before it reads, the DC gets everything and the log is trimmed.
TEST_F(LoggedValueTest, WhereTheLogIsGoneTheDcHasIt) {
  std::unique_ptr<TestTransaction> old = f_.BeginPointer();
  WriteOne("k", Value(1, 1));
  const Lsn place = f_.log->tail();
  PageAllOut();
  ASSERT_EQ(f_.collector->paged_out(), 1u);
  while (f_.log->tail().value < place.value + (4 << 20)) WriteOne("other", Value(2, 0));  // some files further
  const auto let_go = [&] {
    old.reset();
    const Deadline soon = EngineFixture::Soon();
    while (f_.log->first_lsn() <= place && RealRuntime().Now() < soon) {
      f_.dc->Pump();
      f_.dc->TrimLog();
    }
    ASSERT_GT(f_.log->first_lsn(), place);
  };
  TestTransaction reader = f_.Begin();
  {
    AtPoint at("logged_value.before_read", let_go);
    EXPECT_EQ(reader.Get("k"), Value(1, 1));
    EXPECT_TRUE(at.reached());
  }
}

TEST_F(LoggedValueTest, ADiskThatCannotBeReadFailsTheReaderAlone) {
  constexpr int kKeys = 300;
  constexpr uint64_t kLogBufferBytes = 1 << 20;  // as in EngineFixture
  {
    const std::unique_ptr<TestTransaction> old = f_.BeginPointer();
    const Lsn first = f_.log->tail();
    Write(kKeys, 1);
    // The readers below need the disk for each of the first keys. So every value has left memory, not only as many as
    // the budget demands; and the log's buffer cannot hold the first records, because it is shorter than what follows
    // them.
    PageAllOut();
    ASSERT_EQ(f_.collector->paged_out(), static_cast<uint64_t>(kKeys));
    ASSERT_GT(f_.log->tail().value, first.value + kLogBufferBytes + 10 * kValueBytes);
    const std::unique_ptr<TestTransaction> one = f_.BeginPointer(), other = f_.BeginPointer();
    const int fault = f_.disk->AddFault({.kinds = kDiskRead, .path_contains = "log-"});
    EXPECT_EQ(one->Get(Key(0)), "IO_ERROR");
    EXPECT_FALSE(one->open());
    const std::unique_ptr<TestTransaction> scans = f_.BeginPointer();
    EXPECT_EQ(scans->Scan(Key(0), Key(5)), "IO_ERROR");
    f_.disk->RemoveFault(fault);
    EXPECT_EQ(other->Get(Key(0)), Value(0, 1));
    EXPECT_TRUE(f_.Contents() == AllOf(kKeys, 1));
    EXPECT_TRUE(f_.log->failure().ok());
    WriteOne("more", "1");
  }
  ExpectNothingLeft();
}

// Writers, readers of all ages, a DC that applies what it may: no reader sees a value that is not of one whole
// generation, or goes back to an earlier one.
TEST_F(LoggedValueTest, Stress) {
  constexpr int kKeys = 60;
  constexpr int kRounds = 12;
  f_.SetVersionBudget(128 << 10);
  Write(kKeys, 0);
  ASSERT_TRUE(f_.Settle());
  std::atomic<bool> stop{false};
  const auto read = [&](bool scans) {
    while (!stop.load()) {
      const std::unique_ptr<TestTransaction> txn = f_.BeginPointer();
      std::string first;
      for (int again = 0; again < 3 && txn->open(); ++again) {
        const std::string now = scans ? txn->Scan() : Concat(txn->Get(Key(3)), " ", txn->Get(Key(kKeys - 1)));
        if (!txn->open()) break;  // a writer was in its way
        if (again == 0) first = now;
        ASSERT_TRUE(now == first);
      }
    }
  };
  std::thread scanner([&] { read(true); }), getter([&] { read(false); });
  std::thread collector([&] {
    while (!stop.load()) {
      f_.Fold();
      f_.dc->Pump();
    }
  });
  for (int g = 1; g <= kRounds; ++g) {
    for (int i = 0; i < kKeys; ++i) {
      const Deadline soon = EngineFixture::Soon();
      for (;;) {
        ASSERT_LT(RealRuntime().Now(), soon);
        TestTransaction txn = f_.Begin();
        if (txn.Put(Key(i), Value(i, g)) == "ok" && txn.Commit() == "ok") break;
      }
    }
  }
  stop.store(true);
  scanner.join();
  getter.join();
  collector.join();
  EXPECT_TRUE(f_.Contents() == AllOf(kKeys, kRounds));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace deut::tc
