// Another peer repeats the messages of a transaction component to a data component: while both run, after the data
// component has restarted, and after the transaction component has restarted. None of them may take effect.
#include "integration/harness/stream_replay.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"
#include "tc/client/transaction.h"

namespace deut::testing {
namespace {

class StreamReplayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status serving = cluster_.AwaitServing();
    ASSERT_TRUE(serving.ok()) << serving.ToString();
    table_ = cluster_.client().CreateTable("t").value();
  }

  // Overwrites all keys, so that a replay of earlier bytes would bring older values.
  void Write(int round, int keys = 50) {
    for (int key = 0; key < keys; ++key) {
      const Status done = RunTransaction(cluster_.client(), {.timeout = seconds(60)}, [&](Transaction& t) {
        return t.Put(table_, Concat("key", key), Concat("value", round));
      });
      ASSERT_TRUE(done.ok()) << done.ToString();
      expected_[Concat("key", key)] = Concat("value", round);
    }
  }

  void Remove(const std::string& key) {
    const Status done = RunTransaction(cluster_.client(), {.timeout = seconds(60)},
                                       [&](Transaction& t) { return t.Remove(table_, key); });
    ASSERT_TRUE(done.ok()) << done.ToString();
    expected_.erase(key);
  }

  // Waits until the DC has applied everything that was acknowledged, so that its counters no longer change.
  void AwaitQuiet() {
    ASSERT_TRUE(cluster_.AwaitServing().ok());
    ASSERT_TRUE(cluster_.client().DropCaches({.timeout = seconds(60)}).ok());
  }

  // Checks the DC's own content.
  void ExpectUnharmed() {
    AwaitQuiet();
    std::map<std::string, std::string> found;
    const Status done = RunTransaction(cluster_.client(), {.timeout = seconds(60)}, [&](Transaction& t) -> Status {
      found.clear();
      DEUT_ASSIGN_OR_RETURN(const ScanResult all, t.Scan(table_, {}));
      for (RecordBatch::Iterator i(all.records); i.Valid(); i.Next()) {
        found[std::string(i.record().key)] = i.record().value;
      }
      return Status::Ok();
    });
    ASSERT_TRUE(done.ok()) << done.ToString();
    EXPECT_EQ(found, expected_);
  }

  uint64_t OfDc(const char* name) {
    const Result<ServiceStatus> status = cluster_.client().GetStatus();
    EXPECT_TRUE(status.ok()) << status.status().ToString();
    return status.ok() ? CounterOf(status->dc, name) : 0;
  }

  void AwaitApplied(uint64_t updates) {
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (OfDc("updates_applied") < updates) ASSERT_LT(RealRuntime().Now(), deadline);
  }

  // Returns the recorded connections that carry a log stream.
  std::vector<std::string> LogStreams() {
    std::vector<std::string> streams;
    for (const RecordedConnection& recorded : cluster_.tc_dc().Recorded()) {
      if (LogStreamsIn(recorded.to_server) > 0) streams.push_back(recorded.to_server);
    }
    return streams;
  }

  ReplayReport Replay(const std::string& bytes) {
    const ReplayReport report = ReplayConnection(cluster_.dc_port(), bytes, {.patience = seconds(10)});
    EXPECT_TRUE(report.connected);
    EXPECT_GT(report.frames, 5U);
    EXPECT_GT(report.answered_bytes, 0U) << "the DC has understood none of it";
    std::cout << report.frames << " frames with " << report.data_bytes << " bytes sent, " << report.answered_bytes
              << " answered, " << report.ended_streams << " streams ended, complete " << report.complete << "\n";
    return report;
  }

  Cluster cluster_{{.proxies = true}};
  TableId table_;
  std::map<std::string, std::string> expected_;
};

TEST_F(StreamReplayTest, TheLiveStreamIsDoubled) {
  Write(1);
  Write(2);
  Remove("key7");
  AwaitApplied(101);
  const std::vector<std::string> streams = LogStreams();
  ASSERT_EQ(streams.size(), 1U);
  EXPECT_EQ(OfDc("updates_duplicate"), 0U);
  EXPECT_TRUE(Replay(streams[0]).complete);
  EXPECT_GE(OfDc("updates_duplicate"), 101U) << "the replay has not reached the tables";
  ExpectUnharmed();
  Write(3);
  ExpectUnharmed();
}

TEST_F(StreamReplayTest, TheStreamToAnEarlierLifeOfTheDc) {
  Write(1);
  Write(2);
  Remove("key7");
  AwaitApplied(101);
  const std::vector<std::string> streams = LogStreams();
  ASSERT_EQ(streams.size(), 1U);
  cluster_.KillDc();
  cluster_.StartDc();
  Write(3, 20);
  AwaitQuiet();
  const uint64_t applied = OfDc("updates_applied");
  const uint64_t duplicates = OfDc("updates_duplicate");
  (void)Replay(streams[0]);
  EXPECT_EQ(OfDc("updates_applied"), applied) << "the new life has listened to what was meant for the old one";
  EXPECT_EQ(OfDc("updates_duplicate"), duplicates);
  ExpectUnharmed();
}

TEST_F(StreamReplayTest, TheStreamOfAnEarlierLifeOfTheTc) {
  Write(1);
  Write(2);
  Remove("key7");
  AwaitApplied(101);
  const std::vector<std::string> streams = LogStreams();
  ASSERT_EQ(streams.size(), 1U);
  cluster_.KillTc();
  cluster_.StartTc();
  ASSERT_TRUE(cluster_.AwaitServing().ok());
  Write(3, 20);
  AwaitQuiet();
  const uint64_t duplicates = OfDc("updates_duplicate");
  (void)Replay(streams[0]);
  EXPECT_EQ(OfDc("updates_duplicate"), duplicates) << "the DC has listened to a TC that it does not obey";
  ExpectUnharmed();
}

}  // namespace
}  // namespace deut::testing
