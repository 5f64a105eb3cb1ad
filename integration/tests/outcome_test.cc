// The outcome of a commit whose answer is lost. tcd is killed (-9) between the commit record and the acknowledgement,
// or the commit never arrives, or only the connection breaks. The client must report the right outcome, and the store
// must have exactly that.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/harness/fault_proxy.h"
#include "tc/client/client.h"
#include "tc/client/connect.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

using testing::Cluster;
using testing::Direction;

class OutcomeTest : public ::testing::Test {
 protected:
  static constexpr Duration kPatience = seconds(60);

  void SetUp() override {
    ASSERT_TRUE(cluster_.AwaitServing().ok());
    Result<TableId> table = cluster_.client().CreateTable("t");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
    // This client bypasses the proxy.
    Result<std::unique_ptr<Client>> direct = Client::Connect(cluster_.tc_address(), {});
    ASSERT_TRUE(direct.ok()) << direct.status().ToString();
    direct_ = *std::move(direct);
  }

  std::optional<std::string> Read(const std::string& key) {
    std::optional<std::string> value;
    const Status read = RunTransaction(*direct_, {.timeout = kPatience}, [&](Transaction& t) -> Status {
      DEUT_ASSIGN_OR_RETURN(value, t.Get(table_, key));
      return Status();
    });
    EXPECT_TRUE(read.ok()) << read.ToString();
    return value;
  }
  // A read is acknowledged when the data that it has read is durable (D1). So the commit's record is then in the log
  // for good.
  void AwaitDurable(const std::string& key) {
    const Deadline deadline = RealRuntime().Now() + kPatience;
    while (!Read(key).has_value()) ASSERT_LT(RealRuntime().Now(), deadline) << key << " is not committed";
  }

  enum class Fault : uint8_t { kConnection, kTc };

  // Commits `key` while one direction is cut. With `arrives`, the commit reaches the TC and its answer is lost;
  // otherwise the commit is lost.
  Result<CommitAnswer> CommitCutOff(const std::string& key, bool arrives, Fault fault, bool one_shot) {
    Result<CommitAnswer> answer = DEUT_ERROR(kInternal, "not run");
    std::optional<Transaction> interactive;
    OneShot put(cluster_.client());
    put.Put(table_, key, "v");
    if (!one_shot) {
      Result<Transaction> begun = cluster_.client().Begin();
      EXPECT_TRUE(begun.ok()) << begun.status().ToString();
      interactive.emplace(*std::move(begun));
      EXPECT_TRUE(interactive->Put(table_, key, "v").ok());
    } else {
      // Makes sure that connection and session exist.
      EXPECT_TRUE(cluster_.client().Begin().value().Abort().ok());
    }
    const uint64_t before = cluster_.client_tc().Counters().dropped;
    cluster_.client_tc().SetFlow(arrives ? Direction::kToClient : Direction::kToServer, {.drop = true});
    const std::unique_ptr<Thread> committer = RealRuntime().StartThread("committer", [&] {
      answer = one_shot ? put.Run({.timeout = kPatience}) : interactive->Commit({.timeout = kPatience});
    });
    if (arrives) {
      AwaitDurable(key);
    } else {
      while (cluster_.client_tc().Counters().dropped == before) RealRuntime().Yield();
    }
    if (fault == Fault::kTc) {
      cluster_.KillTc();
      cluster_.StartTc();
    }
    cluster_.client_tc().Heal();  // resets connections that have lost bytes
    committer->Join();
    return answer;
  }

  Cluster cluster_{{.proxies = true}};
  TableId table_;
  std::unique_ptr<Client> direct_;
};

TEST_F(OutcomeTest, TheAnswerIsLostButNotTheOutcome) {
  int number = 0;
  for (const Fault fault : {Fault::kTc, Fault::kConnection}) {
    for (const bool one_shot : {false, true}) {
      for (const bool arrives : {true, false}) {
        const std::string key = Concat("key-", number++);
        SCOPED_TRACE(Concat(key, fault == Fault::kTc ? ", tcd killed" : ", connection broken",
                            one_shot ? ", one-shot" : ", interactive", arrives ? ", arrived" : ", lost"));
        const Result<CommitAnswer> answer = CommitCutOff(key, arrives, fault, one_shot);
        if (arrives) {
          ASSERT_TRUE(answer.ok()) << answer.status().ToString();
          EXPECT_EQ(Read(key), "v");
        } else {
          ASSERT_EQ(answer.status().code(), ErrorCode::kUnavailable) << answer.status().ToString();
          EXPECT_EQ(Read(key), std::nullopt);
        }
      }
    }
  }
}

// The retry loop needs no help: each Add adds one, whatever message is lost.
TEST_F(OutcomeTest, CountersCountRight) {
  constexpr int kAdds = 40;
  // Each transaction meets at most this number of resets. Otherwise none would ever end on a machine that needs longer
  // for a transaction, with its connection, than the pause between two resets.
  constexpr int kMaxResets = 20;
  std::atomic<int> added{0};
  std::atomic<bool> stop{false};
  const std::unique_ptr<Thread> breaker = RealRuntime().StartThread("breaker", [&] {
    int seen = 0;
    int resets = 0;
    while (!stop.load()) {
      if (const int now = added.load(); now != seen) {
        seen = now;
        resets = 0;
      }
      if (resets++ < kMaxResets) cluster_.client_tc().Reset();
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(3));
    }
  });
  for (int i = 0; i < kAdds; ++i) {
    const Status status = RunTransaction(cluster_.client(), {.timeout = kPatience},
                                         [&](Transaction& t) { return t.Add(table_, "n", 1).status(); });
    EXPECT_TRUE(status.ok()) << status.ToString();
    added.fetch_add(1);
  }
  stop.store(true);
  breaker->Join();
  int64_t sum = 0;
  ASSERT_TRUE(RunTransaction(*direct_, {}, [&](Transaction& t) -> Status {
                DEUT_ASSIGN_OR_RETURN(sum, t.Add(table_, "n", 0));
                return Status();
              }).ok());
  EXPECT_EQ(sum, added.load());
}

}  // namespace
}  // namespace deut
