// Real daemons face more connections than they have descriptors for: connections that never send a byte, and sessions
// that work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "common/runtime/descriptor_budget.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "protocol/connections/endpoint.h"
#include "protocol/testing/raw_socket.h"
#include "protocol/testing/test_authority.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

using testing::Cluster;
using testing::ClusterOptions;
using ::testing::HasSubstr;

struct Setting {
  uint64_t descriptors;
  bool tls;
};

class ConnectionsTest : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr int kFlood = 1100;

  static void SetUpTestSuite() { ASSERT_TRUE(RaiseDescriptorLimit().ok()); }

  void Start() {
    ClusterOptions options;
    const std::string limit = Concat("--nofile=", GetParam().descriptors, ":", GetParam().descriptors);
    options.tc.prefix = options.dc.prefix = {"prlimit", limit};
    if (GetParam().tls) {
      const auto issued = authority_.Issue("node", {"node"});
      options.connect.tls = {.cert_file = WriteFile("cert.pem", issued.cert_pem),
                             .key_file = WriteFile("key.pem", issued.key_pem),
                             .ca_file = WriteFile("ca.pem", authority_.ca_pem()),
                             .allow = {"node"}};
      const TlsOptions& tls = options.connect.tls;
      for (auto* flags : {&options.tc.flags, &options.dc.flags}) {
        flags->insert(flags->end(), {Concat("--tls_cert=", tls.cert_file), Concat("--tls_key=", tls.key_file),
                                     Concat("--tls_ca=", tls.ca_file), "--tls_admins=node"});
      }
      options.dc.flags.push_back("--tls_tc=node");
      options.tc.flags.insert(options.tc.flags.end(), {"--tls_dc=node", "--tls_clients=node"});
    }
    cluster_ = std::make_unique<Cluster>(std::move(options));
    const Status serving = cluster_->AwaitServing();
    ASSERT_TRUE(serving.ok()) << serving.ToString();
    table_ = *cluster_->client().CreateTable("t");
  }

  // Writes and reads back until it is stopped; every call must succeed at once.
  void StartWorker() {
    worker_ = RealRuntime().StartThread("worker", [this] {
      Client& client = cluster_->client();
      for (uint64_t i = 0; !stop_.load(); ++i) {
        const Status done = WriteAndRead(client, Concat("worker ", i % 100), i);
        if (!done.ok() && errors_.fetch_add(1) == 0) first_error_ = done;
        rounds_.fetch_add(1);
      }
    });
  }
  void StopWorker() {
    stop_.store(true);
    worker_.reset();
  }
  Status WriteAndRead(Client& client, const std::string& key, uint64_t value) const {
    DEUT_ASSIGN_OR_RETURN(Transaction transaction, client.Begin());
    DEUT_RETURN_IF_ERROR(transaction.Put(table_, key, Concat(value)));
    DEUT_RETURN_IF_ERROR(transaction.Get(table_, Concat("other ", value)).status());
    return transaction.Commit().status();
  }
  void AwaitRounds(uint64_t more) {
    const uint64_t goal = rounds_.load() + more;
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (rounds_.load() < goal && RealRuntime().Now() < deadline) Pause();
    EXPECT_GE(rounds_.load(), goal) << "the client beside the flood makes no progress";
  }
  static void Pause() { RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(5)); }

  // Opens connections that never send. It also keeps those that the daemon closes at once.
  static std::vector<Descriptor> Flood(const std::string& address) {
    std::vector<Descriptor> flood;
    for (int i = 0; i < kFlood; ++i) flood.push_back(testing::ConnectRaw(*Address::Parse("address", address)));
    return flood;
  }
  // Returns true once another client, with connections of its own, has committed.
  bool NewClientIsServed() {
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (RealRuntime().Now() < deadline) {
      if (WriteAndRead(*cluster_->NewClient(), "new", 1).ok()) return true;
      Pause();
    }
    return false;
  }

  void FloodBesideAWorker(const std::string& address, testing::Process& daemon) {
    StartWorker();
    AwaitRounds(50);
    std::vector<Descriptor> flood = Flood(address);
    AwaitRounds(200);
    EXPECT_TRUE(daemon.Running()) << testing::EndOfLog(daemon.log());
    flood.clear();
    EXPECT_TRUE(NewClientIsServed());
    AwaitRounds(50);
    StopWorker();
    EXPECT_EQ(errors_.load(), 0u) << first_error_.ToString();
    EXPECT_TRUE(daemon.Running()) << testing::EndOfLog(daemon.log());
    EXPECT_THAT(daemon.Output(), HasSubstr("--max_connections"));
  }

  std::string WriteFile(const char* name, const std::string& text) const {
    const std::string path = directory_.Sub(name);
    std::ofstream(path) << text;
    return path;
  }

  const testing::TempDir directory_;
  testing::TestAuthority authority_{"ca"};
  std::unique_ptr<Cluster> cluster_;
  TableId table_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> rounds_{0}, errors_{0};
  Status first_error_;
  std::unique_ptr<Thread> worker_;
};

INSTANTIATE_TEST_SUITE_P(Limits, ConnectionsTest,
                         ::testing::Values(Setting{256, false}, Setting{1024, false}, Setting{1024, true}),
                         [](const auto& about) {
                           return Concat(about.param.descriptors, about.param.tls ? "Tls" : "Plain");
                         });

TEST_P(ConnectionsTest, TcdServesItsClientsBesideAFloodOfSilentConnections) {
  ASSERT_NO_FATAL_FAILURE(Start());
  FloodBesideAWorker(cluster_->tc_address(), *cluster_->tc());
}

TEST_P(ConnectionsTest, DcdServesItsTcBesideAFloodOfSilentConnections) {
  ASSERT_NO_FATAL_FAILURE(Start());
  FloodBesideAWorker(cluster_->dc_address(), *cluster_->dc());
}

}  // namespace
}  // namespace deut
