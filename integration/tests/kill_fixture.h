// KillFixture: a cluster, the load of kill_load.h, and the checks after every kill. For the tests that kill daemons.
// To repeat a run: --test_env=DEUT_SEED=N (the kills still hit the programs at different points). Thread-safety: one
// thread.
#ifndef INTEGRATION_TESTS_KILL_FIXTURE_H_
#define INTEGRATION_TESTS_KILL_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/verify/verify.h"
#include "integration/harness/cluster.h"
#include "integration/tests/kill_load.h"
#include "tc/verify/verify.h"

namespace deut::testing {

inline uint64_t Seed() {
  const char* given = std::getenv("DEUT_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : RealRuntime().RandomSeed();
  std::cout << "DEUT_SEED=" << seed << "\n";
  return seed;
}

inline void Pause(Duration duration) { RealRuntime().SleepUntil(RealRuntime().Now() + duration); }

class KillFixture : public ::testing::Test {
 protected:
  KillFixture(const ClusterOptions& cluster, const KillLoadOptions& load)
      : cluster_(cluster), load_(cluster_.client(), random_.Next(), load) {}

  void SetUp() override {
    const Status serving = cluster_.AwaitServing();
    ASSERT_TRUE(serving.ok()) << serving.ToString();
    const Status prepared = load_.Prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.ToString();
  }

  // Checks the load's content twice: with and without the TC's caches.
  void CheckEverything() {
    ASSERT_NO_FATAL_FAILURE(load_.Check());
    const Status dropped = cluster_.client().DropCaches({.timeout = seconds(60)});
    ASSERT_TRUE(dropped.ok()) << dropped.ToString();
    load_.Check();
  }

  // Checks that the DC's directory is whole, whatever point the kill has hit. REQUIRES: the DC does not run.
  void CheckDirectory() {
    const Result<dc::VerifyReport> report =
        dc::VerifyDirectory(*storage_, RealRuntime(), cluster_.directory().Sub("dc"), {});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_TRUE(report->clean()) << dc::ReportText(*report);
    if (!report->checkpoints.empty()) newest_checkpoint_ = report->checkpoints[0].head.number.value;
  }

  // Checks that the TC's log is whole, and that its records agree with each other. REQUIRES: the TC does not run.
  void CheckLog() {
    const Result<tc::LogReport> report = tc::VerifyLog(*storage_, cluster_.directory().Sub("tc"), {});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_TRUE(report->clean()) << tc::ReportText(*report);
    verified_commits_ += report->counts.of(tc::RecordType::kCommit).count;
  }

  Random random_{Seed()};
  Cluster cluster_;
  const std::unique_ptr<Storage> storage_ = *NewSystemStorage(IoKind::kPosix, RealRuntime());
  KillLoad load_;
  uint64_t newest_checkpoint_ = 0;
  uint64_t verified_commits_ = 0;  // counted by CheckLog, which counts a commit each time that it sees it
};

}  // namespace deut::testing

#endif  // INTEGRATION_TESTS_KILL_FIXTURE_H_
