#include "protocol/rpc/rpc_peer.h"

#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/rpc_stream.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/testing/test_authority.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(RpcPeerTest, SameRuleAsTheServer) {
  const auto far = Address::Parse("--dc", "10.0.0.1:7702");
  const auto refused = RpcPeer::Create("the data component", "--dc", *far, nullptr, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().ToString(), HasSubstr("--dc: 10.0.0.1:7702"));
  EXPECT_TRUE(RpcPeer::Create("the data component", "--dc", *far, nullptr, true).ok());
  EXPECT_FALSE(RpcPeer::Create("the data component", "--dc", Address(), nullptr, false).ok());
}

// Both ends have certificates of one authority, and each allows the other's name, no matter which host names they
// contain.
class TlsLinkTest : public ::testing::Test {
 protected:
  TlsLinkTest() { Serve({"tc"}); }

  void Serve(const std::vector<std::string>& allow) {
    loopback_.reset();
    service_ = std::make_unique<GrpcDataComponentService>(RealRuntime(), component_, RpcServiceOptions());
    loopback_ = std::make_unique<testing::Loopback>(std::vector<grpc::Service*>{service_->service()},
                                                    authority_.Identity("server", {"dc", "dc.example.com"}, allow));
  }

  Status Call(std::shared_ptr<const TlsIdentity> identity) {
    const auto peer = loopback_->Peer(std::move(identity));
    const auto channel = peer->NewChannel(RpcTraffic::kShort);
    const auto stub = wire::DataComponent::NewStub(channel);
    wire::CountersAnswer answer;
    Status status = CallRpc(
        RealRuntime(), *peer, *channel, RealRuntime().Now() + seconds(20),
        [&](grpc::ClientContext* context) { return stub->Counters(context, wire::CountersRequest(), &answer); });
    if (status.ok()) EXPECT_EQ(answer.counters_size(), 1);
    return status;
  }

  testing::TestAuthority authority_{"ca"};
  testing::TestAuthority other_authority_{"ca"};
  testing::ScriptedDataComponent component_{RealRuntime()};
  std::unique_ptr<GrpcDataComponentService> service_;
  std::unique_ptr<testing::Loopback> loopback_;
};

TEST_F(TlsLinkTest, AllowedNamesOnBothSides) {
  EXPECT_EQ(Call(authority_.Identity("tc", {}, {"dc"})).ToString(), "OK");
  // A subject alternative name counts as much as the common name of a certificate without alternative names.
  EXPECT_EQ(Call(authority_.Identity("anything", {"x.example.com", "tc"}, {"dc.example.com"})).ToString(), "OK");
}

// A common name is any text. An authority that checks URIs and DNS names may sign one that looks like them.
TEST_F(TlsLinkTest, ACommonNameBesideAlternativeNamesIsNoName) {
  const Status by_server = Call(authority_.Identity("tc", {"x.example.com"}, {"dc"}));
  EXPECT_EQ(by_server.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(by_server.ToString(), HasSubstr("it carries the names [x.example.com]"));
  const Status by_client = Call(authority_.Identity("tc", {}, {"server"}));
  EXPECT_EQ(by_client.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(by_client.ToString(), HasSubstr("carries the names [dc, dc.example.com]"));
}

// Records the errors that gRPC logs.
class Complaints {
 public:
  Complaints() {
    Lines().clear();
    gpr_set_log_function([](gpr_log_func_args* args) {
      if (args->severity == GPR_LOG_SEVERITY_ERROR) {
        MutexLock lock(LinesMutex());
        Lines().emplace_back(args->message);
      }
    });
  }
  ~Complaints() { gpr_set_log_function(nullptr); }
  std::vector<std::string> lines() {
    MutexLock lock(LinesMutex());
    return Lines();
  }

 private:
  static Mutex& LinesMutex() {
    static Mutex mutex(RealRuntime());
    return mutex;
  }
  static std::vector<std::string>& Lines() {
    static std::vector<std::string> lines;
    return lines;
  }
};

// The address is 127.0.0.1, which is none of the server's names.
TEST_F(TlsLinkTest, NothingToComplainAboutInAGoodConnection) {
  Complaints complaints;
  EXPECT_EQ(Call(authority_.Identity("tc", {}, {"spiffe://no.host/name", "dc.example.com"})).ToString(), "OK");
  EXPECT_THAT(complaints.lines(), IsEmpty());
}

TEST_F(TlsLinkTest, ClientWithAnotherNameIsDenied) {
  const Status status = Call(authority_.Identity("intruder", {"intruder.example.com"}, {"dc"}));
  EXPECT_EQ(status.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(status.ToString(), HasSubstr("intruder"));
  // The rule holds for every service, health included.
  EXPECT_EQ(testing::Health(*loopback_->Peer(authority_.Identity("intruder", {}, {"dc"}))).status().code(),
            ErrorCode::kPermissionDenied);
  EXPECT_TRUE(testing::Health(*loopback_->Peer(authority_.Identity("tc", {}, {"dc"}))).ok());
}

TEST_F(TlsLinkTest, ServerWithAnotherNameIsDenied) {
  const Status status = Call(authority_.Identity("tc", {}, {"another-dc"}));
  EXPECT_EQ(status.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(status.ToString(), HasSubstr("dc.example.com"));
}

TEST_F(TlsLinkTest, CertificateOfAnotherAuthorityIsUseless) {
  const auto foreign = other_authority_.Issue("tc", {});
  auto identity = std::make_shared<TlsIdentity>(TlsIdentity{
      .cert_pem = foreign.cert_pem, .key_pem = foreign.key_pem, .ca_pem = authority_.ca_pem(), .allow = {"dc"}});
  const Status refused = Call(identity);
  EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.ToString(), HasSubstr("certificate refused"));
  // The other way round: the client refuses the server.
  const auto own = authority_.Issue("tc", {});
  identity = std::make_shared<TlsIdentity>(TlsIdentity{
      .cert_pem = own.cert_pem, .key_pem = own.key_pem, .ca_pem = other_authority_.ca_pem(), .allow = {"dc"}});
  EXPECT_EQ(Call(identity).code(), ErrorCode::kUnavailable);
}

class RefusedCertificateTest : public TlsLinkTest {
 protected:
  RefusedCertificateTest() {
    const auto foreign = other_authority_.Issue("tc", {});
    peer_ = loopback_->Peer(std::make_shared<TlsIdentity>(TlsIdentity{
        .cert_pem = foreign.cert_pem, .key_pem = foreign.key_pem, .ca_pem = authority_.ca_pem(), .allow = {"dc"}}));
  }
  // Fails with gRPC's wording.
  Status Fail(const std::string& end) const {
    return peer_->FromRpc(
        grpc::Status(grpc::StatusCode::UNAVAILABLE,
                     "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7701: " + end));
  }

  std::shared_ptr<const RpcPeer> peer_;
};

TEST_F(RefusedCertificateTest, AServerThatRefusesIsNotCalledDown) {
  Status status;
  ASSERT_TRUE(testing::Eventually([&] {
    status = testing::Health(*peer_).status();
    EXPECT_THAT(status.ToString(), HasSubstr("right after the TLS handshake"));
    return status == ErrorCode::kPermissionDenied;
  })) << status.ToString();
  EXPECT_THAT(status.ToString(), HasSubstr("certificate refused"));
}

TEST_F(RefusedCertificateTest, AServerThatWasDownMeanwhileIsAskedAgain) {
  ASSERT_TRUE(testing::Eventually([&] { return testing::Health(*peer_).status() == ErrorCode::kPermissionDenied; }));
  EXPECT_EQ(Fail("Connection refused").code(), ErrorCode::kUnavailable);
  const Status first = Fail("recvmsg:Connection reset by peer");
  EXPECT_EQ(first.code(), ErrorCode::kUnavailable) << "a server that stops ends connections, too";
  EXPECT_THAT(first.ToString(), HasSubstr("if it is not about to stop"));
  EXPECT_EQ(Fail("recvmsg:Connection reset by peer").code(), ErrorCode::kUnavailable) << "the same connection";
  const Status quoted = peer_->FromRpc(
      grpc::Status(grpc::StatusCode::UNAVAILABLE, "the data component: failed to connect: Socket closed"));
  EXPECT_THAT(quoted.ToString(), Not(HasSubstr("TLS handshake"))) << "the server quotes an error of its own";
  EXPECT_TRUE(testing::Eventually([&] { return testing::Health(*peer_).status() == ErrorCode::kPermissionDenied; }));
}

TEST_F(TlsLinkTest, NoTlsNoCall) { EXPECT_EQ(Call(nullptr).code(), ErrorCode::kUnavailable); }

TEST_F(TlsLinkTest, PlainServerIsNoTlsServer) {
  GrpcDataComponentService service(RealRuntime(), component_, RpcServiceOptions());
  testing::Loopback plain({service.service()});
  const auto peer = plain.Peer(authority_.Identity("tc", {}, {"dc"}));
  const auto channel = peer->NewChannel(RpcTraffic::kShort);
  const auto stub = wire::DataComponent::NewStub(channel);
  wire::CountersAnswer answer;
  EXPECT_EQ(
      CallRpc(RealRuntime(), *peer, *channel, RealRuntime().Now() + seconds(20),
              [&](grpc::ClientContext* context) { return stub->Counters(context, wire::CountersRequest(), &answer); })
          .code(),
      ErrorCode::kUnavailable);
}

TEST_F(TlsLinkTest, RefusalIsForgottenWhenTheRightServerComes) {
  const auto identity = authority_.Identity("tc", {}, {"dc"});
  const auto peer = loopback_->Peer(identity);
  EXPECT_TRUE(peer->FromRpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "away")) == ErrorCode::kUnavailable);
  EXPECT_TRUE(testing::Health(*peer).ok());
  EXPECT_TRUE(peer->FromRpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "away")) == ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace deut
