#include "protocol/connections/daemon_tls.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/io/read_file.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/few_descriptors.h"
#include "common/testing/recorded_log.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/testing/test_authority.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

class DaemonTlsTest : public ::testing::Test {
 protected:
  DaemonTlsTest() {
    options_.roles = {Role::kTc, Role::kAdmin};
    options_.files = {.cert_file = dir_.Sub("cert.pem"),
                      .key_file = dir_.Sub("key.pem"),
                      .ca_file = dir_.Sub("ca.pem"),
                      .allow = {},
                      .allow_flag = ""};
    options_.tcs = {"tcd"};
    Write("ca.pem", authority_.ca_pem());
    Certify("dcd");
  }

  // Replaces the file by a rename, as certificates should be replaced.
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_.Sub("new"), std::ios::binary) << content;
    std::filesystem::rename(dir_.Sub("new"), dir_.Sub(name));
  }
  void Certify(const std::string& name) {
    const auto issued = authority_.Issue(name, {});
    Write("cert.pem", issued.cert_pem);
    Write("key.pem", issued.key_pem);
  }
  Result<std::unique_ptr<DaemonTls>> Load() { return DaemonTls::Load(RealRuntime(), options_, *storage_); }
  void Start() {
    auto loaded = Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    tls_ = *std::move(loaded);
    RpcServerOptions options;
    options.tls = tls_->keys();
    options.access = tls_->access();
    auto server = RpcServer::Start(RealRuntime(), options, {service_.service()});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  // Makes a new connection with this identity.
  Status Call(std::shared_ptr<const TlsIdentity> identity) {
    auto peer = RpcPeer::Create("the server", "--server", server_->address(),
                                testing::Loopback::KeysOf(std::move(identity)), /*insecure=*/false);
    EXPECT_TRUE(peer.ok());
    return testing::Health(**peer).status();
  }

  testing::TempDir dir_;
  testing::TestAuthority authority_{"ca"};
  const std::unique_ptr<Storage> storage_ = std::move(NewSystemStorage(IoKind::kPosix, RealRuntime())).value();
  DaemonTlsOptions options_;
  testing::ScriptedDataComponent component_{RealRuntime()};
  GrpcDataComponentService service_{RealRuntime(), component_, RpcServiceOptions()};
  std::unique_ptr<DaemonTls> tls_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(DaemonTlsTest, FlagsThatServeNobodyAreRefused) {
  options_.tcs.clear();
  EXPECT_THAT(Load().status().ToString(), HasSubstr("nobody would be served"));
  EXPECT_THAT(Load().status().ToString(), HasSubstr("--tls_tc, --tls_admins, --tls_rights"));
  options_.tcs = {""};
  EXPECT_EQ(Load().status().code(), ErrorCode::kInvalidArgument);
  options_.tcs = {"tcd"};
  options_.allow = {"tcd"};
  EXPECT_THAT(Load().status().ToString(), HasSubstr("--tls_allow=tcd is no longer taken by daemons"));
  options_.allow.clear();
  options_.rights_file = dir_.Sub("rights");
  EXPECT_THAT(Load().status().ToString(), HasSubstr("--tls_rights " + options_.rights_file));
  Write("rights", "ops root\n");
  EXPECT_THAT(Load().status().ToString(), HasSubstr("line 1"));
  Write("rights", "ops admin\n");
  EXPECT_TRUE(Load().ok());
}

TEST_F(DaemonTlsTest, RightsBeyondAMebibyteAreRefused) {
  options_.rights_file = dir_.Sub("rights");
  const std::string right = "ops admin\n", filler(kMaxSmallFileBytes - right.size(), '#');
  Write("rights", right + filler);
  EXPECT_TRUE(Load().ok());
  Write("rights", right + filler + "#");
  EXPECT_EQ(Load().status().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(Load().status().ToString(), HasSubstr("--tls_rights " + options_.rights_file));
  EXPECT_THAT(Load().status().ToString(), HasSubstr("the limit is 1048576"));
}

TEST_F(DaemonTlsTest, NewCertificatesAreUsedWithoutARestart) {
  Start();
  EXPECT_TRUE(Call(authority_.Identity("tcd", {}, {"dcd"})).ok());
  // The daemon gets a certificate with another name.
  Certify("dcd2");
  ASSERT_TRUE(tls_->Reload().ok());
  EXPECT_TRUE(testing::Eventually([&] { return Call(authority_.Identity("tcd", {}, {"dcd2"})).ok(); }));
  EXPECT_EQ(Call(authority_.Identity("tcd", {}, {"dcd"})).code(), ErrorCode::kPermissionDenied);
  // Then the authority changes: certificates from the old one no longer count.
  testing::TestAuthority next("next");
  const auto issued = next.Issue("dcd", {});
  Write("ca.pem", next.ca_pem());
  Write("cert.pem", issued.cert_pem);
  Write("key.pem", issued.key_pem);
  ASSERT_TRUE(tls_->Reload().ok());
  EXPECT_TRUE(testing::Eventually([&] { return Call(next.Identity("tcd", {}, {"dcd"})).ok(); }));
  EXPECT_FALSE(Call(authority_.Identity("tcd", {}, {"dcd"})).ok());
}

TEST_F(DaemonTlsTest, APairThatDoesNotBelongTogetherIsRefusedAndTheOldOneStays) {
  Start();
  Write("cert.pem", authority_.Issue("dcd2", {}).cert_pem);
  EXPECT_THAT(tls_->Reload().ToString(), HasSubstr("is not the key of --tls_cert"));
  const MonotonicTime until = RealRuntime().Now() + TlsKeys::kEffectiveWithin;
  while (RealRuntime().Now() < until) {
    ASSERT_TRUE(Call(authority_.Identity("tcd", {}, {"dcd"})).ok());
  }
}

TEST_F(DaemonTlsTest, RightsThatAreReadAgainHoldForOpenConnections) {
  options_.tcs.clear();
  options_.rights_file = dir_.Sub("rights");
  Write("rights", "tcd tc\n");
  Start();
  auto peer = RpcPeer::Create("the server", "--server", server_->address(),
                              testing::Loopback::KeysOf(authority_.Identity("tcd", {}, {"dcd"})), false);
  const auto stub = wire::DataComponent::NewStub((*peer)->NewChannel(RpcTraffic::kShort));
  const auto counters = [&] {
    grpc::ClientContext context;
    wire::CountersAnswer answer;
    return (*peer)->FromRpc(stub->Counters(&context, wire::CountersRequest(), &answer));
  };
  EXPECT_TRUE(counters().ok()) << counters().ToString();
  Write("rights", "other tc\n");
  ASSERT_TRUE(tls_->Reload().ok());
  EXPECT_EQ(counters().code(), ErrorCode::kPermissionDenied);
  // A file without a valid right leaves the old rights in force.
  Write("rights", "tcd\n");
  EXPECT_FALSE(tls_->Reload().ok());
  EXPECT_EQ(counters().code(), ErrorCode::kPermissionDenied);
}

TEST_F(DaemonTlsTest, AClientCertificateIsNoTransactionComponent) {
  testing::RecordedLog lines;
  options_.admins = {"ops"};
  Start();
  for (const std::string name : {"client", "dcd", "ops"}) {
    auto peer = RpcPeer::Create("the server", "--server", server_->address(),
                                testing::Loopback::KeysOf(authority_.Identity(name, {}, {"dcd"})), false);
    const auto stub = wire::DataComponent::NewStub((*peer)->NewChannel(RpcTraffic::kShort));
    grpc::ClientContext context;
    wire::HelloAnswer answer;
    const Status refused = (*peer)->FromRpc(stub->Hello(&context, wire::HelloRequest(), &answer));
    EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied) << name;
    EXPECT_THAT(refused.ToString(), HasSubstr("certificate refused")) << name;
  }
  EXPECT_TRUE(Call(authority_.Identity("ops", {}, {"dcd"})).ok()) << "it may ask for health";
  EXPECT_TRUE(
      lines.HasLineWith("a client at 127.0.0.1:", "was refused: certificate refused: it carries the names [client"))
      << ::testing::PrintToString(lines.lines());
}

TEST_F(DaemonTlsTest, ChangedFilesAreTakenUpOnceTheyStayAsTheyAre) {
  Start();
  bool reloaded = false;
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_FALSE(reloaded);
  const auto issued = authority_.Issue("dcd2", {});
  Write("cert.pem", issued.cert_pem);
  // The new key has not been written yet.
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_FALSE(reloaded);
  Write("key.pem", issued.key_pem);
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_FALSE(reloaded);
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_TRUE(reloaded);
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_FALSE(reloaded);
  // A wrong change is reported once, not at every look.
  Write("key.pem", "rubbish");
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_FALSE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_FALSE(reloaded);
}

// The fault is not in the files, so the next look may succeed, and no signal is needed.
TEST_F(DaemonTlsTest, AChangeThatCouldNotBeReadIsReportedOnceAndRetried) {
  Start();
  bool reloaded = false;
  Certify("dcd2");
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  {
    const testing::FewDescriptors none(0);
    const Status first = tls_->LookForChanges(&reloaded);
    EXPECT_FALSE(first.ok());
    EXPECT_NE(first.code(), ErrorCode::kInvalidArgument) << first.ToString();
    EXPECT_TRUE(tls_->LookForChanges(&reloaded).ok()) << "the same error is one line";
    EXPECT_FALSE(reloaded);
  }
  ASSERT_TRUE(tls_->LookForChanges(&reloaded).ok());
  EXPECT_TRUE(reloaded);
  EXPECT_TRUE(testing::Eventually([&] { return Call(authority_.Identity("tcd", {}, {"dcd2"})).ok(); }));
}

}  // namespace
}  // namespace deut
