// Readers of 24 timestamps stay open while writers overwrite everything repeatedly. The version budget holds only a
// small part of the versions that the readers need (rule S9). Each reader sees, by points and by scans, exactly the
// commits before its timestamp. None is aborted, because there is room to spill, and pinned memory stays within the
// budget. After the readers have ended, the spilled files are removed.
//   DEUT_UPDATES   number of keys written while the readers are open (default 60,000). The long run: some millions; it prints figures.
// The test fails without any of S9.look_at_spilled, S9.gather_spilled, S9.publish_before_cut, S9.spill_merge_keeps,
// S6.spill_merge_read (DEUT_OMIT).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/harness/cluster.h"
#include "tc/client/client.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"
#include "tc/client/transaction.h"

namespace deut {
namespace {

using testing::Cluster;
using testing::CounterOf;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBudget = kMiB;
constexpr size_t kReaders = 24;
constexpr size_t kWriters = 3;
constexpr size_t kKeys = 3000;
constexpr size_t kBatch = 8;  // one transaction writes this many keys
constexpr Duration kPatience = seconds(120);

std::string KeyOf(size_t key) { return Concat("key", 10'000 + key); }

// One update in sixteen removes the key.
bool Removed(size_t key, uint64_t generation) { return Mix64(key ^ (generation << 20)) % 16 == 0; }
// Some values are long enough to be paged out of memory first, others are too short for that.
std::string ValueOf(size_t key, uint64_t generation) {
  if (Removed(key, generation)) return "-";
  std::string value = Concat(key, ".", generation, ".");
  value.resize(value.size() + Mix64(key + generation) % 120, 'v');
  return value;
}

class SpilledReadersTest : public ::testing::Test {
 protected:
  SpilledReadersTest()
      : cluster_({.tc = {.flags = {"--record_buckets_log2=14", "--log_segment=16MiB", "--log_buffer=16MiB",
                                   Concat("--version_budget=", kBudget), "--over_budget=abort_reader",
                                   "--idle_timeout=3600s"}}}),
        histories_(kKeys) {
    const char* const updates = std::getenv("DEUT_UPDATES");
    if (updates != nullptr) updates_ = std::strtoull(updates, nullptr, 10);
  }

  // The updates of a key, in the order of its commits. Each key has one writer.
  struct Written {
    Timestamp timestamp;
    std::string value;
  };
  struct Reader {
    std::optional<Transaction> transaction;
    std::vector<std::string> seen;  // by key
  };

  Client& client() { return cluster_.client(); }
  uint64_t Counter(std::string_view name) {
    const Result<ServiceStatus> status = client().GetStatus();
    EXPECT_TRUE(status.ok()) << status.status().ToString();
    return status.ok() ? CounterOf(status->tc, name) : 0;
  }
  static Deadline Soon() { return RealRuntime().Now() + kPatience; }

  void Load() {
    for (size_t first = 0; first < kKeys; first += 100) {
      OneShot puts(client());
      for (size_t key = first; key < first + 100; ++key) {
        std::string value = Concat(key, ".loaded");
        puts.Put(table_, KeyOf(key), value);
        histories_[key].push_back({Timestamp{0}, std::move(value)});
      }
      const Result<CommitAnswer> done = RunOneShot(puts, RetryOptions{.timeout = kPatience});
      ASSERT_TRUE(done.ok()) << done.status().ToString();
    }
  }

  // Overwrites the writer's keys until all updates are written.
  void Write(size_t writer) {
    Random random(1 + writer);
    RetryOptions options{.timeout = kPatience};
    options.transaction.durability = Durability::kBuffered;
    while (!HasFailure() && written_.load() < updates_) {
      OneShot writes(client());
      std::vector<size_t> keys;
      for (size_t i = 0; i < kBatch; ++i) {
        // One write in a hundred goes to the same key of the writer.
        const size_t place = random.Below(100) == 0 ? 0 : random.Below(kKeys / kWriters);
        const size_t key = place * kWriters + writer;
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
        keys.push_back(key);
        const std::string value = ValueOf(key, histories_[key].size());
        if (value == "-") {
          writes.Remove(table_, KeyOf(key));
        } else {
          writes.Put(table_, KeyOf(key), value);
        }
      }
      const Result<CommitAnswer> done = RunOneShot(writes, options);
      if (!done.ok()) return Fail(done.status(), "a writer");
      for (const size_t key : keys) histories_[key].push_back({done->timestamp, ValueOf(key, histories_[key].size())});
      written_.fetch_add(keys.size());
    }
  }

  // Reads the keys [first, end) by a scan.
  Status Scan(Transaction& transaction, size_t first, size_t end, Direction direction, std::vector<std::string>* seen) {
    seen->assign(end - first, "-");
    ScanOptions options{.low = KeyOf(first), .high = KeyOf(end)};
    options.direction = direction;
    DEUT_ASSIGN_OR_RETURN(const ScanResult found, transaction.Scan(table_, options));
    for (RecordBatch::Iterator it(found.records); it.Valid(); it.Next()) {
      const size_t key = std::strtoull(std::string(it.record().key.substr(3)).c_str(), nullptr, 10) - 10'000;
      if (key < first || key >= end) return DEUT_ERROR(kCorruption, it.record().key, " is out of the scan's bounds");
      (*seen)[key - first] = it.record().value;
    }
    return Status::Ok();
  }
  Status Points(Transaction& transaction, const std::vector<size_t>& keys, std::vector<std::string>* seen) {
    std::vector<std::string> names;
    for (const size_t key : keys) names.push_back(KeyOf(key));
    std::vector<std::optional<std::string>> values;
    DEUT_RETURN_IF_ERROR(
        transaction.MultiGet(table_, std::vector<std::string_view>(names.begin(), names.end()), &values));
    seen->clear();
    for (const std::optional<std::string>& value : values) seen->push_back(value.value_or("-"));
    return Status::Ok();
  }

  // The first scan covers everything. Until it ends, an earlier writer may cause a conflict; afterwards none does.
  void BeginReader(Reader* reader) {
    for (const Deadline end = Soon();;) {
      ASSERT_LT(RealRuntime().Now(), end);
      Result<Transaction> begun = client().Begin();
      ASSERT_TRUE(begun.ok()) << begun.status().ToString();
      reader->transaction.emplace(*std::move(begun));
      const Status looked = Scan(*reader->transaction, 0, kKeys, Direction::kAscending, &reader->seen);
      if (looked.ok()) return;
      ASSERT_EQ(looked, ErrorCode::kAborted) << looked.ToString();
      ASSERT_NE(looked.abort()->reason, AbortReason::kOverBudget) << looked.ToString();
    }
  }
  // Reads some points and a range again.
  void LookAgain(Reader& reader, Random& random) {
    std::vector<size_t> keys;
    for (int i = 0; i < 16; ++i) keys.push_back(i == 0 ? random.Below(kWriters) : random.Below(kKeys));
    std::vector<std::string> seen;
    Status looked = Points(*reader.transaction, keys, &seen);
    ASSERT_TRUE(looked.ok()) << looked.ToString();
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(seen[i], reader.seen[keys[i]]) << KeyOf(keys[i]);
    const size_t first = random.Below(kKeys - 100);
    const Direction direction = random.Below(2) == 0 ? Direction::kAscending : Direction::kDescending;
    looked = Scan(*reader.transaction, first, first + 100, direction, &seen);
    ASSERT_TRUE(looked.ok()) << looked.ToString();
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(seen[i], reader.seen[first + i]) << KeyOf(first + i);
    ++looks_;
  }
  // REQUIRES: no transaction writes.
  void ExpectHistory(const Reader& reader) {
    const Timestamp at = reader.transaction->timestamp();
    for (size_t key = 0; key < kKeys; ++key) {
      const std::vector<Written>& history = histories_[key];
      const auto after = std::partition_point(history.begin(), history.end(),
                                              [&](const Written& written) { return written.timestamp < at; });
      ASSERT_EQ(reader.seen[key], std::prev(after)->value) << KeyOf(key) << " at " << at.value;
    }
  }

  void LookAtBudget() {
    const Result<ServiceStatus> status = client().GetStatus();
    ASSERT_TRUE(status.ok()) << status.status().ToString();
    pinned_ = std::max(pinned_, CounterOf(status->tc, "versions.bytes"));
    ASSERT_EQ(CounterOf(status->tc, "transactions.aborted.over-budget"), 0u);
  }
  void Print(size_t readers) {
    const Result<ServiceStatus> status = client().GetStatus();
    ASSERT_TRUE(status.ok()) << status.status().ToString();
    std::printf("%2zu readers, %9" PRIu64 " keys written:", readers, written_.load());
    for (const char* const name :
         {"versions.bytes", "versions.spilled_now", "versions.spilled_runs", "versions.spilled_file_bytes",
          "versions.spill_merges", "versions.spilled_bytes_written", "versions.spill_merge_bytes_written",
          "outcomes.bytes", "memory.awaiting_reclamation_bytes", "memory.pool_bytes", "memory.resident_bytes"})
      std::printf(" %s %" PRIu64, name, CounterOf(status->tc, name));
    std::printf("\n");
    (void)std::fflush(stdout);
  }

  void Fail(const Status& status, std::string_view who) {
    const MutexLock lock(mutex_);
    ADD_FAILURE() << who << ": " << status.ToString();
  }

  Cluster cluster_;
  TableId table_;
  uint64_t updates_ = 150'000;
  std::vector<std::vector<Written>> histories_;  // by key; owned by the key's writer until that has ended
  std::atomic<uint64_t> written_{0};
  uint64_t pinned_ = 0;  // the maximum that LookAtBudget saw
  uint64_t looks_ = 0;
  Mutex mutex_{RealRuntime()};
};

TEST_F(SpilledReadersTest, EachSeesItsTimeAndTheBudgetIsKept) {
  const Status serving = cluster_.AwaitServing();
  ASSERT_TRUE(serving.ok()) << serving.ToString();
  const Result<TableId> created = client().CreateTable("records");
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  table_ = *created;
  ASSERT_NO_FATAL_FAILURE(Load());

  std::vector<std::unique_ptr<Thread>> writers;
  for (size_t w = 0; w < kWriters; ++w) writers.push_back(RealRuntime().StartThread("writer", [this, w] { Write(w); }));
  std::vector<Reader> readers;
  Random random(7);
  uint64_t tell_at = 0;
  while (!HasFailure() && (readers.size() < kReaders || written_.load() < updates_)) {
    // The last third is written while all readers are open.
    if (readers.size() < kReaders && written_.load() >= readers.size() * updates_ * 2 / 3 / kReaders) {
      BeginReader(&readers.emplace_back());
    } else {
      LookAgain(readers[random.Below(readers.size())], random);
    }
    LookAtBudget();
    if (written_.load() < tell_at) continue;
    Print(readers.size());
    tell_at += updates_ / 20;
  }
  writers.clear();  // waits for them
  for (Reader& reader : readers) {
    if (HasFailure()) return;
    LookAgain(reader, random);
    ExpectHistory(reader);
    std::vector<std::string> seen;
    const Status looked = Scan(*reader.transaction, 0, kKeys, Direction::kDescending, &seen);
    ASSERT_TRUE(looked.ok()) << looked.ToString();
    ASSERT_TRUE(seen == reader.seen);
  }
  LookAtBudget();
  if (HasFailure()) return;
  Print(readers.size());
  std::printf("%" PRIu64 " looks; pinned at most %" PRIu64 " bytes of %" PRIu64 "\n", looks_, pinned_, kBudget);
  // A writer checks the budget before it writes, so some transactions may exceed it.
  EXPECT_LE(pinned_, 2 * kBudget);
  EXPECT_GT(Counter("versions.spilled"), 2 * kKeys) << "else the budget was no matter";
  EXPECT_GT(Counter("versions.spill_merges"), 0u);
  EXPECT_EQ(Counter("versions.failed_spills"), 0u);

  for (size_t r = 0; r < readers.size(); ++r) {
    if (r % 2 == 0) {
      const Result<CommitAnswer> ended = readers[r].transaction->Commit();
      EXPECT_TRUE(ended.ok()) << ended.status().ToString();
    } else {
      EXPECT_TRUE(readers[r].transaction->Abort().ok());
    }
  }
  readers.clear();
  const Status dropped = client().DropCaches({.timeout = kPatience});
  ASSERT_TRUE(dropped.ok()) << dropped.ToString();
  EXPECT_EQ(Counter("versions.spilled_now"), 0u);
  EXPECT_EQ(Counter("versions.spilled_file_bytes"), 0u);
  // A spilled file is removed with the last thread that may read it.
  const std::unique_ptr<Storage> storage = *NewSystemStorage(IoKind::kPosix, RealRuntime());
  const std::string folder = cluster_.directory().Sub("tc/spill");
  for (const Deadline end = Soon(); storage->List(folder)->size() > 2;) {  // the lock, and the name of its owner
    ASSERT_LT(RealRuntime().Now(), end) << "files are left";
    OneShot touch(client());
    touch.Put(table_, "touched", "");
    ASSERT_TRUE(RunOneShot(touch, RetryOptions{.timeout = kPatience}).ok());
  }
  Reader last;
  ASSERT_NO_FATAL_FAILURE(BeginReader(&last));
  ExpectHistory(last);
}

}  // namespace
}  // namespace deut
