// Real daemons are killed (-9) under load at random times and started again: acknowledged writes stay, transactions
// stay whole, and reads never go back in time. dc_kill_test.cc tests the DC with all its background work.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/tests/kill_fixture.h"
#include "tc/client/client.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

using testing::CounterOf;
using testing::Pause;

class KillTest : public testing::KillFixture {
 protected:
  // Checkpoints follow each other closely, so that kills hit them.
  KillTest() : KillFixture({.dc = {.flags = {"--dc_checkpoint_log=8KiB"}}}, {}) {}

  // Runs the load, kills the TC (and the DC) at a random time, starts them, runs the load again, then checks
  // everything.
  void Cycle(bool dc) {
    load_.Start();
    load_.AwaitProgress(5);
    Pause(microseconds(random_.Below(200'000)));
    const bool tc_first = random_.OneIn(2);
    if (tc_first) cluster_.KillTc();
    if (dc) cluster_.KillDc();
    if (!tc_first) cluster_.KillTc();
    if (dc) CheckDirectory();
    CheckLog();
    Pause(microseconds(random_.Below(50'000)));
    if (tc_first) cluster_.StartTc();
    if (dc) cluster_.StartDc();
    if (!tc_first) cluster_.StartTc();
    load_.AwaitProgress(5);
    load_.Stop();
    const Result<ServiceStatus> status = cluster_.client().GetStatus();
    ASSERT_TRUE(status.ok()) << status.status().ToString();
    asked_ += CounterOf(status->tc, "outcomes.asked");
    CheckEverything();
  }

  void Cycles(int count, bool dc) {
    for (int i = 0; i < count && !HasFailure(); ++i) {
      SCOPED_TRACE(Concat("cycle ", i));
      const MonotonicTime begun = RealRuntime().Now();
      Cycle(dc);
      const Duration took = RealRuntime().Now() - begun;
      longest_ = std::max(longest_, took);
      total_ += took;
    }
    // A cycle takes less than a second on an idle machine. If it takes longer, a component notices late that a daemon
    // is back.
    std::cout << load_.acknowledged() << " writes acknowledged, " << load_.unknown() << " unknown, " << load_.refused()
              << " refused; a cycle took " << duration_cast<milliseconds>(total_ / count).count() << " ms, the longest "
              << duration_cast<milliseconds>(longest_).count() << " ms; checkpoints " << newest_checkpoint_
              << "; commits in the logs " << verified_commits_ << "\n";
    EXPECT_GT(verified_commits_, 0u);
    if (dc) EXPECT_GT(newest_checkpoint_, 2u) << "no kill can have hit one";
  }

  Duration longest_{0}, total_{0};
  uint64_t asked_ = 0;  // commits whose answer was lost and whose outcome a client asked for
};

TEST_F(KillTest, TcKilledTwentyTimesInMidLoad) {
  Cycles(20, /*dc=*/false);
  EXPECT_GT(asked_, 0u) << "no kill has hit a commit on its way";
  EXPECT_EQ(load_.unknown(), 0u) << "the TC knows what became of each commit";
}

TEST_F(KillTest, BothKilledTenTimesInMidLoad) {
  Cycles(10, /*dc=*/true);
  EXPECT_EQ(load_.unknown(), 0u) << "the TC knows what became of each commit";
}

// A TC that is told to stop stops at once, although clients wait in it for a DC that is away.
TEST_F(KillTest, TheTcStopsWhileClientsWaitForTheDc) {
  OneShot put(cluster_.client());
  put.Put(load_.pairs_table(), "key", "value");
  ASSERT_TRUE(RunOneShot(put).ok());
  ASSERT_TRUE(cluster_.client().DropCaches().ok());
  cluster_.KillDc();
  std::atomic<bool> stop{false};
  const std::unique_ptr<Thread> reader = RealRuntime().StartThread("reader", [&] {
    while (!stop.load()) {
      OneShot get(cluster_.client());
      get.Get(load_.pairs_table(), "key");
      (void)get.Run({.timeout = seconds(60)});  // UNAVAILABLE: the DC is away
    }
  });
  const absl::Cleanup stop_reader = [&] { stop.store(true); };
  // Waits until the read waits at the gate.
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

// The only writer of a record knows the value that a read must find, right after a start of the DC and during it.
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
        DEUT_ASSIGN_OR_RETURN(value, t.Get(load_.pairs_table(), key_of(key)));
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
    put.Put(load_.pairs_table(), key_of(key), Concat(number));
    const Result<CommitAnswer> answer = RunOneShot(put);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    last = answer->timestamp;
    acknowledged[key].store(number);
  };
  for (uint64_t cycle = 1; cycle <= kCycles && !HasFailure(); ++cycle) {
    // The TC no longer holds the first half of the keys; the second half may not even have been sent to the DC.
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
          DEUT_ASSIGN_OR_RETURN(values[key], t.Get(load_.pairs_table(), key_of(key)));
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
