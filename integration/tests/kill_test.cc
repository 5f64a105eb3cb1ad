// Real daemons, killed (-9) under load at random times and started again: what was acknowledged stays, transactions stay whole, reads
// never go back in time. To repeat a run: --test_env=DEUT_SEED=N (the kills' places in the programs still differ).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/concat.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/verify/verify.h"
#include "integration/harness/cluster.h"
#include "integration/tests/pair_oracle.h"
#include "tc/client/client.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

using testing::Cluster;
using testing::CounterOf;
using testing::PairOracle;
using testing::PairValue;

constexpr uint32_t kPairs = 64;
constexpr int kWorkers = 4;

uint64_t Seed() {
  const char* given = std::getenv("DEUT_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : RealRuntime().RandomSeed();
  std::cout << "DEUT_SEED=" << seed << "\n";
  return seed;
}

void Pause(Duration duration) { RealRuntime().SleepUntil(RealRuntime().Now() + duration); }

std::string LeftKey(uint32_t pair) { return Concat("left-", 1000 + pair); }
std::string RightKey(uint32_t pair) { return Concat("right-", 1000 + pair); }

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status serving = cluster_.AwaitServing();
    ASSERT_TRUE(serving.ok()) << serving.ToString();
    table_ = cluster_.client().CreateTable("pairs").value();
  }

  // Writes one pair: blindly in one message, or interactively after reading it.
  void WriteOnce(Random& random) {
    const auto pair = static_cast<uint32_t>(random.Below(kPairs));
    const uint64_t write = oracle_.NextWrite();
    const std::string value = PairValue(pair, write);
    const RetryOptions options{.timeout = seconds(30)};
    RetryReport report;
    std::optional<std::string> left, right;
    Status status;
    if (random.OneIn(2)) {
      OneShot both(cluster_.client());
      both.Put(table_, LeftKey(pair), value);
      both.Put(table_, RightKey(pair), value);
      status = RunOneShot(both, options, &report).status();
    } else {
      status = RunTransaction(
          cluster_.client(), options,
          [&](Transaction& t) -> Status {
            DEUT_ASSIGN_OR_RETURN(left, t.Get(table_, LeftKey(pair)));
            DEUT_RETURN_IF_ERROR(t.Put(table_, LeftKey(pair), value));
            DEUT_ASSIGN_OR_RETURN(right, t.Get(table_, RightKey(pair)));
            return t.Put(table_, RightKey(pair), value);
          },
          &report);
    }
    if (status.ok()) {
      EXPECT_EQ(left, right) << "a committed transaction has read half of another";
      oracle_.Acknowledge(pair, report.commit.timestamp, write);
    } else if (status == ErrorCode::kOutcomeUnknown) {
      oracle_.SetUnknown(pair, write);
    } else {
      // Refused: it never happens. Anything else than these would be news to the caller.
      EXPECT_TRUE(IsRetryable(status) || status == ErrorCode::kDeadlineExceeded) << status.ToString();
      refused_.fetch_add(1);
    }
  }

  // Until so many more writes are acknowledged.
  void AwaitWrites(uint64_t more) {
    const uint64_t enough = oracle_.acknowledged() + more;
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (oracle_.acknowledged() < enough) {
      ASSERT_LT(RealRuntime().Now(), deadline) << "writes are no longer acknowledged";
      Pause(milliseconds(2));
    }
  }

  // One serializable transaction that reads every pair by points and by scans.
  void CheckEverything() {
    std::vector<std::string> keys;
    for (uint32_t pair = 0; pair < kPairs; ++pair) keys.push_back(LeftKey(pair));
    for (uint32_t pair = 0; pair < kPairs; ++pair) keys.push_back(RightKey(pair));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<std::optional<std::string>> points;
    std::vector<std::optional<std::string>> scanned;
    Timestamp timestamp;
    const Status status = RunTransaction(cluster_.client(), {.timeout = seconds(60)}, [&](Transaction& t) -> Status {
      timestamp = t.timestamp();
      DEUT_RETURN_IF_ERROR(t.MultiGet(table_, views, &points));
      DEUT_ASSIGN_OR_RETURN(const ScanResult all, t.Scan(table_, {}));
      scanned.assign(keys.size(), std::nullopt);
      size_t at = 0;
      for (RecordBatch::Iterator i(all.records); i.Valid(); i.Next()) {
        while (at < keys.size() && keys[at] < i.record().key) ++at;
        if (at == keys.size() || keys[at] != i.record().key)
          return DEUT_ERROR(kInternal, "foreign key ", Quoted(i.record().key));
        scanned[at] = std::string(i.record().value);
      }
      return Status::Ok();
    });
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (uint32_t pair = 0; pair < kPairs; ++pair) {
      EXPECT_EQ(oracle_.Judge(pair, timestamp, points[pair], points[kPairs + pair]), "");
    }
    EXPECT_TRUE(points == scanned) << "points and scans of one transaction differ";
  }

  // What the DC has left is whole, wherever it was killed. REQUIRES: it does not run.
  void CheckDirectory() {
    const Result<dc::VerifyReport> report =
        dc::VerifyDirectory(*storage_, RealRuntime(), cluster_.directory().Sub("dc"), {});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_TRUE(report->clean()) << dc::ReportText(*report);
    if (!report->checkpoints.empty()) newest_checkpoint_ = report->checkpoints[0].head.number.value;
  }

  // Load, a kill at a random time, a start, load again; then the check, once with and once without the TC's caches.
  void Cycle(bool tc, bool dc) {
    std::atomic<bool> stop{false};
    std::vector<std::unique_ptr<Thread>> workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.push_back(RealRuntime().StartThread("worker", [this, &stop, seed = random_.Next()] {
        Random random(seed);
        while (!stop.load()) WriteOnce(random);
      }));
    }
    AwaitWrites(5);
    Pause(microseconds(random_.Below(200'000)));
    const bool tc_first = random_.OneIn(2);
    if (tc && tc_first) cluster_.KillTc();
    if (dc) cluster_.KillDc();
    if (tc && !tc_first) cluster_.KillTc();
    if (dc) CheckDirectory();
    Pause(microseconds(random_.Below(50'000)));
    if (tc && tc_first) cluster_.StartTc();
    if (dc) cluster_.StartDc();
    if (tc && !tc_first) cluster_.StartTc();
    AwaitWrites(5);
    stop.store(true);
    workers.clear();
    CheckEverything();
    const Status dropped = cluster_.client().DropCaches({.timeout = seconds(60)});
    ASSERT_TRUE(dropped.ok()) << dropped.ToString();
    CheckEverything();
  }

  void Cycles(int count, bool tc, bool dc) {
    for (int i = 0; i < count && !HasFailure(); ++i) {
      SCOPED_TRACE(Concat("cycle ", i));
      const MonotonicTime begun = RealRuntime().Now();
      Cycle(tc, dc);
      const Duration took = RealRuntime().Now() - begun;
      longest_ = std::max(longest_, took);
      total_ += took;
    }
    // Less than a second on a machine that is not busy. More means that somebody notices late that a daemon is back.
    EXPECT_LT(duration_cast<milliseconds>(total_ / count).count(), 5000);
    std::cout << oracle_.acknowledged() << " writes acknowledged, " << oracle_.unknown() << " unknown, "
              << refused_.load() << " refused; the longest cycle took " << duration_cast<milliseconds>(longest_).count()
              << " ms; checkpoints " << newest_checkpoint_ << "\n";
    if (dc) EXPECT_GT(newest_checkpoint_, 2u) << "no kill can have hit one";
  }

  Random random_{Seed()};
  // Checkpoints follow each other closely, so that kills hit them.
  Cluster cluster_{{.dc = {.flags = {"--dc_checkpoint_log=8KiB"}}}};
  const std::unique_ptr<Storage> storage_ = *NewSystemStorage(IoKind::kPosix, RealRuntime());
  uint64_t newest_checkpoint_ = 0;
  PairOracle oracle_{kPairs};
  std::atomic<uint64_t> refused_{0};
  Duration longest_{0}, total_{0};
  TableId table_;
};

TEST_F(KillTest, DcKilledTwentyTimesInMidLoad) {
  Cycles(20, false, true);
  const Result<ServiceStatus> status = cluster_.client().GetStatus();
  ASSERT_TRUE(status.ok()) << status.status().ToString();
  EXPECT_EQ(CounterOf(status->tc, "dc.incarnations_seen"), 21u) << "every kill was a new life, and the TC noticed each";
}

TEST_F(KillTest, TcKilledTwentyTimesInMidLoad) {
  Cycles(20, true, false);
  EXPECT_GT(oracle_.unknown(), 0u) << "no kill has hit a commit on its way";
}

TEST_F(KillTest, BothKilledTenTimesInMidLoad) { Cycles(10, true, true); }

// A TC that is asked to stop does so at once, although clients wait in it for a DC that is away.
TEST_F(KillTest, TheTcStopsWhileClientsWaitForTheDc) {
  OneShot put(cluster_.client());
  put.Put(table_, "key", "value");
  ASSERT_TRUE(RunOneShot(put).ok());
  ASSERT_TRUE(cluster_.client().DropCaches().ok());
  cluster_.KillDc();
  std::atomic<bool> stop{false};
  const std::unique_ptr<Thread> reader = RealRuntime().StartThread("reader", [&] {
    while (!stop.load()) {
      OneShot get(cluster_.client());
      get.Get(table_, "key");
      (void)get.Run({.timeout = seconds(60)});  // UNAVAILABLE: nobody is there
    }
  });
  const absl::Cleanup stop_reader = [&] { stop.store(true); };
  // The read waits at the gate.
  for (bool waits = false; !waits;) {
    const Result<ServiceStatus> status = cluster_.client().GetStatus();
    ASSERT_TRUE(status.ok()) << status.status().ToString();
    waits = CounterOf(status->tc, "dc.gate_open") == 0 && CounterOf(status->tc, "transactions.open") == 1;
  }
  cluster_.tc()->Terminate();
  EXPECT_EQ(cluster_.tc()->Wait(RealRuntime().Now() + seconds(15)), 0) << "has not stopped";
  EXPECT_EQ(cluster_.tc()->Output().find(" E "), std::string::npos) << cluster_.tc()->Output();
  stop.store(true);
  reader->Join();
}

// A record's only writer knows what a read must find, at once after a start of the DC, and while it starts.
TEST_F(KillTest, ReadsAfterADcRestartAreNeverOlder) {
  constexpr int kKeys = 8, kCycles = 10;
  std::atomic<uint64_t> acknowledged[kKeys] = {};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  const auto key_of = [](uint64_t key) { return Concat("counter-", key); };
  const std::unique_ptr<Thread> reader = RealRuntime().StartThread("reader", [&, seed = random_.Next()] {
    Random random(seed);
    while (!stop.load()) {
      const uint64_t key = random.Below(kKeys);
      const uint64_t floor = acknowledged[key].load();
      std::optional<std::string> value;
      const Status status = RunTransaction(cluster_.client(), {.timeout = seconds(30)}, [&](Transaction& t) -> Status {
        DEUT_ASSIGN_OR_RETURN(value, t.Get(table_, key_of(key)));
        return Status::Ok();
      });
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_GE(std::strtoull(value.value_or("0").c_str(), nullptr, 10), floor) << key_of(key);
      reads.fetch_add(1);
    }
  });
  const absl::Cleanup stop_reader = [&] { stop.store(true); };
  Timestamp last;
  const auto write = [&](uint64_t key, uint64_t number) {
    OneShot put(cluster_.client());
    put.Put(table_, key_of(key), Concat(number));
    const Result<CommitAnswer> answer = RunOneShot(put);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    last = answer->timestamp;
    acknowledged[key].store(number);
  };
  for (uint64_t cycle = 1; cycle <= kCycles && !HasFailure(); ++cycle) {
    // Of the first half of the keys the TC holds nothing any more; the second half may not even have been sent to the DC.
    for (uint64_t key = 0; key < kKeys / 2; ++key) write(key, cycle);
    ASSERT_TRUE(cluster_.client().DropCaches().ok());
    for (uint64_t key = kKeys / 2; key < kKeys; ++key) write(key, cycle);
    Pause(microseconds(random_.Below(20'000)));
    cluster_.KillDc();
    cluster_.StartDc();
    for (const Isolation isolation : {Isolation::kSerializable, Isolation::kSnapshot}) {
      RetryOptions options{.timeout = seconds(60)};
      options.transaction.isolation = isolation;
      if (isolation == Isolation::kSnapshot) options.transaction.min_timestamp = last;
      std::optional<std::string> values[kKeys];
      const Status status = RunTransaction(cluster_.client(), options, [&](Transaction& t) -> Status {
        for (uint64_t key = 0; key < kKeys; ++key) {
          DEUT_ASSIGN_OR_RETURN(values[key], t.Get(table_, key_of(key)));
        }
        return Status::Ok();
      });
      ASSERT_TRUE(status.ok()) << status.ToString();
      for (uint64_t key = 0; key < kKeys; ++key) EXPECT_EQ(values[key], Concat(cycle)) << key_of(key);
    }
  }
  stop.store(true);
  reader->Join();
  EXPECT_GE(reads.load(), kCycles * 1u);
}

}  // namespace
}  // namespace deut
