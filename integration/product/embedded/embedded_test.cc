// TC, Bw-tree DC and client library in one process, over real files: the whole system without the network.
#include "integration/product/embedded/embedded.h"

#include <atomic>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/runtime/random.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

constexpr int kAccounts = 200;
constexpr int64_t kStart = 1000;

int64_t Number(std::string_view text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string Account(int64_t i) { return absl::StrCat("account", 1000 + i); }

class EmbeddedTest : public ::testing::Test {
 protected:
  void Open() {
    EmbeddedOptions options;
    options.data_dir = dir_.path();
    options.tc.log.segment_bytes = 16 << 20;
    options.tc.log.ring_bytes = 16 << 20;
    options.tc.memory.log2_record_buckets = 12;
    options.tc.ranges.records_per_range = 20;
    options.tc.ranges.period = milliseconds(20);
    options.tc.read_cache.bytes = read_cache_bytes_;
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
  }
  void OpenBank() {
    Open();
    Result<TableId> table = store_->client().CreateTable("bank");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
    RetryReport report;
    const Status loaded = RunTransaction(
        store_->client(), {},
        [&](Transaction& t) {
          for (int i = 0; i < kAccounts; ++i) {
            Status put = t.Put(table_, Account(i), absl::StrCat(kStart));
            if (!put.ok()) return put;
          }
          return Status::Ok();
        },
        &report);
    ASSERT_TRUE(loaded.ok()) << loaded.ToString();
    loaded_ = report.commit.timestamp;
  }

  // Moves money between two accounts. Sometimes it closes the source account, which a later transfer opens again.
  Status Transfer(Random& random) {
    const int64_t from = static_cast<int64_t>(random.Below(kAccounts));
    const int64_t to = static_cast<int64_t>(random.Below(kAccounts));
    if (from == to) return Status::Ok();
    RetryOptions retry;
    retry.transaction.durability = Durability::kBuffered;
    return RunTransaction(store_->client(), retry, [&](Transaction& t) -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> a, t.Get(table_, Account(from)));
      DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> b, t.Get(table_, Account(to)));
      const int64_t have = a ? Number(*a) : 0, has = b ? Number(*b) : 0;
      if (have == 0) return Status::Ok();
      const int64_t amount = random.Below(64) == 0 ? have : 1;
      // An account whose balance reaches zero is removed, so that transfers also delete and insert records.
      DEUT_RETURN_IF_ERROR(amount == have ? t.Remove(table_, Account(from))
                                          : t.Put(table_, Account(from), absl::StrCat(have - amount)));
      return t.Put(table_, Account(to), absl::StrCat(has + amount));
    });
  }

  // Returns the sum over a scan of the whole table, in one transaction.
  Result<int64_t> Sum(bool ascending, Isolation isolation) {
    int64_t sum = 0;
    RetryOptions retry;
    retry.transaction.isolation = isolation;
    if (isolation == Isolation::kSnapshot) retry.transaction.min_timestamp = loaded_;
    retry.transaction.durability = Durability::kBuffered;
    const Status done = RunTransaction(store_->client(), retry, [&](Transaction& t) -> Status {
      sum = 0;
      ScanOptions scan;
      scan.direction = ascending ? Direction::kAscending : Direction::kDescending;
      Scanner scanner = t.OpenScanner(table_, scan);
      while (scanner.Next()) sum += Number(scanner.value());
      return scanner.status();
    });
    if (!done.ok()) return done;
    return sum;
  }

  uint64_t read_cache_bytes_ = 0;
  testing::TempDir dir_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
  Timestamp
      loaded_;  // timestamp of the commit that opened the accounts; snapshots may be stale, so they must not read below it
};

TEST_F(EmbeddedTest, CommittedDataIsThereAfterReopening) {
  for (int life = 0; life < 3; ++life) {
    if (life == 0) {
      OpenBank();
    } else {
      Open();
      Result<TableId> table = store_->client().OpenTable("bank");
      ASSERT_TRUE(table.ok()) << table.status().ToString();
      table_ = *table;
    }
    const Result<int64_t> sum = Sum(true, Isolation::kSerializable);
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    EXPECT_EQ(*sum, kAccounts * kStart);
    store_.reset();
  }
}

TEST_F(EmbeddedTest, AScanSeesItsOwnTransactionsWritesAsOfItsOpening) {
  OpenBank();
  const Status done = RunTransaction(store_->client(), {}, [&](Transaction& t) -> Status {
    DEUT_RETURN_IF_ERROR(t.Put(table_, "b1", "before"));
    ScanOptions scan;
    scan.low = "b";
    scan.batch_bytes = 1;  // a record a batch
    Scanner scanner = t.OpenScanner(table_, scan);
    // Each record shown makes the transaction insert another one further on. The scan must show none of these.
    int shown = 0;
    while (scanner.Next()) {
      EXPECT_EQ(scanner.value(), "before");
      if (++shown > 100) return Status(ErrorCode::kInternal, "the scan feeds on its own transaction's writes");
      DEUT_RETURN_IF_ERROR(t.Put(table_, absl::StrCat("c", 100 + shown), "during"));
    }
    DEUT_RETURN_IF_ERROR(scanner.status());
    EXPECT_EQ(shown, 1);
    DEUT_ASSIGN_OR_RETURN(const ScanResult after, t.Scan(table_, scan));
    EXPECT_EQ(after.records.size(), 2u);
    return Status::Ok();
  });
  EXPECT_TRUE(done.ok()) << done.ToString();
}

// X3: the scan loses no record, shows none twice, and shows nothing that was committed since it began.
TEST_F(EmbeddedTest, ALongScanGoesOnOverRestartsOfTheDc) {
  OpenBank();
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    Result<Transaction> reader = store_->client().Begin();
    ASSERT_TRUE(reader.ok());
    ScanOptions scan;
    scan.direction = direction;
    scan.batch_bytes = 100;
    Scanner scanner = reader->OpenScanner(table_, scan);
    Random random(1);
    int64_t sum = 0;
    int shown = 0;
    std::string last;
    for (; scanner.Next(); ++shown) {
      const std::string key(scanner.key());
      EXPECT_TRUE(last.empty() || (direction == Direction::kAscending ? last < key : last > key)) << last << ' ' << key;
      last = key;
      sum += Number(scanner.value());
      if (shown % 7 == 3) ASSERT_TRUE(Transfer(random).ok());
      if (shown % 40 == 20) ASSERT_TRUE(store_->RestartDc().ok());
    }
    ASSERT_TRUE(scanner.status().ok()) << scanner.status().ToString();
    EXPECT_GT(shown, 50);
    EXPECT_EQ(sum, kAccounts * kStart);
    EXPECT_TRUE(reader->Commit().ok());
  }
}

TEST_F(EmbeddedTest, MoneyIsNeitherMadeNorLostWhileTheDcRestartsAndRangesChange) {
  OpenBank();
  std::atomic<bool> stop{false};
  std::atomic<int> transfers{0}, sums{0};
  std::vector<std::string> failures(4);
  std::vector<std::unique_ptr<Thread>> threads;
  for (int w = 0; w < 4; ++w) {
    threads.push_back(RealRuntime().StartThread("worker", [&, w] {
      Random random(static_cast<uint64_t>(w) + 1);
      for (int n = 0; !stop.load() && failures[static_cast<size_t>(w)].empty(); ++n) {
        if (w < 2) {
          const Status moved = Transfer(random);
          if (!moved.ok()) failures[static_cast<size_t>(w)] = moved.ToString();
          ++transfers;
        } else {
          const Result<int64_t> sum = Sum(n % 2 == 0, w == 2 ? Isolation::kSerializable : Isolation::kSnapshot);
          if (!sum.ok()) {
            failures[static_cast<size_t>(w)] = sum.status().ToString();
          } else if (*sum != kAccounts * kStart) {
            failures[static_cast<size_t>(w)] =
                absl::StrCat("scan ", n, " of ", w == 2 ? "a serializable" : "a snapshot", " worker saw ", *sum,
                             " in place of ", kAccounts * kStart);
          }
          ++sums;
        }
      }
    }));
  }
  for (int restart = 0; restart < 5; ++restart) {
    const int seen = transfers.load(), seen_sums = sums.load();
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while ((transfers.load() < seen + 300 || sums.load() < seen_sums + 10) && RealRuntime().Now() < deadline) {
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(2));
    }
    EXPECT_GE(transfers.load(), seen + 300) << "no progress after restart " << restart;
    EXPECT_GE(sums.load(), seen_sums + 10) << "no scans after restart " << restart;
    const Status restarted = store_->RestartDc();
    ASSERT_TRUE(restarted.ok()) << restarted.ToString();
  }
  stop.store(true);
  threads.clear();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  ASSERT_TRUE(store_->client().DropCaches().ok());
  const Result<int64_t> from_dc = Sum(true, Isolation::kSerializable);
  ASSERT_TRUE(from_dc.ok()) << from_dc.status().ToString();
  EXPECT_EQ(*from_dc, kAccounts * kStart);
  store_.reset();
}

// DropCaches also drops values that were just written: such a value enters the read cache when it is collected while
// caches are dropped.
TEST_F(EmbeddedTest, DroppedCachesAreEmpty) {
  read_cache_bytes_ = 1 << 20;
  OpenBank();
  for (int round = 0; round < 20; ++round) {
    Client& client = store_->client();
    OneShot put(client);
    put.Put(table_, Account(round), "1");
    ASSERT_TRUE(RunOneShot(put).ok());
    ASSERT_TRUE(client.DropCaches().ok());
    const Result<ServiceStatus> status = client.GetStatus();
    ASSERT_TRUE(status.ok()) << status.status().ToString();
    int seen = 0;
    for (const CounterValue& value : status->tc) {
      if (value.name != "read_cache.bytes" && value.name != "records.entries") continue;
      EXPECT_EQ(value.value, 0u) << value.name;
      ++seen;
    }
    EXPECT_EQ(seen, 2);
  }
}

// The client's calls, before and after a restart of the data component.
TEST_F(EmbeddedTest, StampedKeysAndValuesSortInTheOrderOfTheCommits) {
  Open();
  const Result<TableId> log = store_->client().CreateTable("log");
  ASSERT_TRUE(log.ok()) << log.status().ToString();
  constexpr int kEntries = 20;
  std::vector<std::string> keys;
  std::string last_value;
  for (int i = 0; i < kEntries; ++i) {
    if (i == kEntries / 2) {
      ASSERT_TRUE(store_->RestartDc().ok());
    }
    RetryReport report;
    std::string key;
    const Status written = RunTransaction(
        store_->client(), {},
        [&](Transaction& t) -> Status {
          DEUT_ASSIGN_OR_RETURN(key, t.PutStampedKey(*log, "entry/--------/x", 6, absl::StrCat("value", i)));
          return t.PutStampedValue(*log, "last", "at --------.", 3);
        },
        &report);
    ASSERT_TRUE(written.ok()) << written.ToString();
    std::string stamp;
    for (int shift = 56; shift >= 0; shift -= 8) stamp += static_cast<char>(report.commit.timestamp.value >> shift);
    EXPECT_EQ(key, absl::StrCat("entry/", stamp, "/x"));
    keys.push_back(key);
    last_value = absl::StrCat("at ", stamp, ".");
  }
  const Status read = RunTransaction(store_->client(), {}, [&](Transaction& t) -> Status {
    ScanOptions options;
    options.low = "entry/";
    options.high = "entry0";
    DEUT_ASSIGN_OR_RETURN(const ScanResult entries, t.Scan(*log, options));
    int i = 0;
    for (RecordBatch::Iterator it(entries.records); it.Valid(); it.Next(), ++i) {
      if (i == kEntries) return DEUT_ERROR(kInternal, "more entries than were written");
      EXPECT_EQ(it.record().key, keys[static_cast<size_t>(i)]);
      EXPECT_EQ(it.record().value, absl::StrCat("value", i));
    }
    EXPECT_EQ(i, kEntries);
    DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> last, t.Get(*log, "last"));
    EXPECT_EQ(last, last_value);
    return Status::Ok();
  });
  EXPECT_TRUE(read.ok()) << read.ToString();
}

TEST_F(EmbeddedTest, AStampThatDoesNotFitIsRefused) {
  Open();
  const Result<TableId> log = store_->client().CreateTable("log");
  ASSERT_TRUE(log.ok()) << log.status().ToString();
  const Status key = RunTransaction(store_->client(), {}, [&](Transaction& t) -> Status {
    return t.PutStampedKey(*log, "entry/-------", 6, "v").status();
  });
  EXPECT_EQ(key, ErrorCode::kInvalidArgument);
  EXPECT_NE(key.message().find("stamp_offset: 6 and 8 bytes go beyond the 13 bytes"), std::string::npos)
      << key.ToString();
  EXPECT_EQ(RunTransaction(store_->client(), {},
                           [&](Transaction& t) { return t.PutStampedValue(*log, "key", "12345678", UINT32_MAX); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace deut
