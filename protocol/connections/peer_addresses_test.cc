#include "protocol/connections/peer_addresses.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/descriptor.h"
#include "common/testing/leaping_runtime.h"
#include "grpcpp/channel.h"
#include "protocol/connections/handshake_pace.h"
#include "protocol/connections/peer_key.h"
#include "protocol/connections/tls.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/test_authority.h"

namespace deut {
namespace {

class PeerAddressesTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TlsIdentity> Client(const std::string& name) {
    return authority_.Identity(name, {}, {"server"});
  }
  // Returns a channel; the connection stays open while the channel does.
  std::shared_ptr<grpc::Channel> Connect(const std::shared_ptr<const TlsIdentity>& identity) {
    auto channel = loopback_.Peer(identity)->NewChannel(RpcTraffic::kShort);
    EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    return channel;
  }

  testing::TestAuthority authority_{"ca"};
  testing::Loopback loopback_{{}, authority_.Identity("server", {"server", "localhost"}, {"client", "another"})};
};

TEST_F(PeerAddressesTest, NamesTheAddressesOfTheHolderOfACertificate) {
  const auto client = Client("client"), another = Client("another");
  const auto one = Connect(client);
  EXPECT_TRUE(testing::Eventually([&] { return PeerAddresses(client->cert_pem).starts_with("127.0.0.1:"); }))
      << PeerAddresses(client->cert_pem);
  EXPECT_EQ(PeerAddresses(another->cert_pem), "an unknown address");
  const auto two = Connect(another);
  EXPECT_TRUE(testing::Eventually([&] { return PeerAddresses(another->cert_pem).starts_with("127.0.0.1:"); }));
  EXPECT_NE(PeerAddresses(another->cert_pem), PeerAddresses(client->cert_pem));
}

TEST_F(PeerAddressesTest, NamesAtMostThreeAddresses) {
  const auto client = Client("client");
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 5; ++i) channels.push_back(Connect(client));
  const auto commas = [&] { return std::ranges::count(PeerAddresses(client->cert_pem), ','); };
  EXPECT_TRUE(testing::Eventually([&] { return commas() == 2; })) << PeerAddresses(client->cert_pem);
}

TEST_F(PeerAddressesTest, ACertificateThatNoPeerHasShownIsUnknown) {
  EXPECT_EQ(PeerAddresses(""), "an unknown address");
  EXPECT_EQ(PeerAddresses("rubbish"), "an unknown address");
}

template <typename T, auto kFree>
struct Freed {
  void operator()(T* one) const { kFree(one); }
};
template <typename T, auto kFree>
using Owned = std::unique_ptr<T, Freed<T, kFree>>;

// Both ends of a connection with mutual TLS, in this thread. The server's end has a slot.
class HandshakeSlotTest : public ::testing::TestWithParam<int> {
 protected:
  static constexpr size_t kMaxInFlight = HandshakePace::kMaxHandshakesInFlight;

  HandshakeSlotTest() {
    WatchTlsConnections();
    // All slots but this one's are taken until the end, and one more connection waits.
    for (size_t i = 0; i < kMaxInFlight + 1; ++i) Arrive();
    for (size_t i = 0; i < kMaxInFlight; ++i) taken_.push_back(*pace_->AwaitNext());
    std::shared_ptr<HandshakePace::Slot> slot = std::move(taken_.back().slot);
    slot_ = slot;
    {
      const TlsConnectionScope scope(taken_.back().socket.get(), std::move(slot));
      server_.reset(SSL_new(server_context_.get()));
    }
    client_.reset(SSL_new(client_context_.get()));
    SSL_set_accept_state(server_.get());
    SSL_set_connect_state(client_.get());
    BIO *of_server = nullptr, *of_client = nullptr;
    EXPECT_EQ(BIO_new_bio_pair(&of_server, 1 << 16, &of_client, 1 << 16), 1);
    SSL_set_bio(server_.get(), of_server, of_server);
    SSL_set_bio(client_.get(), of_client, of_client);
  }

  void Arrive() {
    int ends[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    peers_.emplace_back(ends[0]);
    // The peer's first record is complete, so the slot would last for the patience with the server.
    EXPECT_EQ(send(ends[0], "\x16\x03\x01\0\1x", 6, 0), 6);
    pace_->Arrive(PeerKey(), static_cast<int>(peers_.size()), Descriptor(ends[1]));
  }
  Owned<SSL_CTX, SSL_CTX_free> NewContext(const std::string& name) {
    Owned<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_method()));
    const testing::TestAuthority::Issued issued = authority_.Issue(name, {name});
    const auto bio = [](const std::string& pem) {
      return Owned<BIO, BIO_free_all>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    };
    const Owned<X509, X509_free> certificate(PEM_read_bio_X509(bio(issued.cert_pem).get(), nullptr, nullptr, nullptr));
    const Owned<X509, X509_free> ca(PEM_read_bio_X509(bio(authority_.ca_pem()).get(), nullptr, nullptr, nullptr));
    const Owned<EVP_PKEY, EVP_PKEY_free> key(
        PEM_read_bio_PrivateKey(bio(issued.key_pem).get(), nullptr, nullptr, nullptr));
    EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
    EXPECT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get()), 1);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    EXPECT_EQ(SSL_CTX_set_max_proto_version(context.get(), GetParam()), 1);
    return context;
  }
  // Returns how long the next connection waits until it gets the slot.
  Duration WaitForTheNext() {
    const Duration before = time_.passed();
    EXPECT_TRUE(pace_->AwaitNext().has_value());
    return time_.passed() - before;
  }

  testing::LeapingRuntime time_;
  const std::shared_ptr<HandshakePace> pace_ = HandshakePace::Create(time_);
  std::vector<Descriptor> peers_;
  std::vector<HandshakePace::Next> taken_;
  testing::TestAuthority authority_{"ca"};
  const Owned<SSL_CTX, SSL_CTX_free> server_context_ = NewContext("server"), client_context_ = NewContext("client");
  Owned<SSL, SSL_free> server_, client_;
  std::weak_ptr<HandshakePace::Slot> slot_;
};

TEST_P(HandshakeSlotTest, TheEndOfAHandshakeEndsItsSlot) {
  for (int step = 0; SSL_is_init_finished(server_.get()) == 0; ++step) {
    ASSERT_LT(step, 10);
    EXPECT_FALSE(slot_.expired()) << "the handshake is under way";
    (void)SSL_do_handshake(client_.get());
    (void)SSL_do_handshake(server_.get());
  }
  EXPECT_EQ(SSL_do_handshake(client_.get()), 1);
  EXPECT_EQ(SSL_version(server_.get()), GetParam());
  EXPECT_TRUE(slot_.expired());
  EXPECT_EQ(WaitForTheNext(), Duration(0));
}

TEST_P(HandshakeSlotTest, ThePeersPartOfAHandshakeHasTheSlotTimeForPeers) {
  (void)SSL_do_handshake(client_.get());
  (void)SSL_do_handshake(server_.get());
  EXPECT_FALSE(slot_.expired());
  EXPECT_EQ(WaitForTheNext(), HandshakePace::kSlotTimeWhilePeerIsAwaited);
}

// The server has no key of the group that the client has guessed, and asks for another one.
// Only TLS 1.3 has a request for another key.
class HandshakeRetryTest : public HandshakeSlotTest {};

TEST_P(HandshakeRetryTest, APeerThatIsAskedForAnotherKeyHasTheSlotTimeForPeers) {
  EXPECT_EQ(SSL_set1_groups_list(server_.get(), "P-256"), 1);
  EXPECT_EQ(SSL_set1_groups_list(client_.get(), "X25519:P-256"), 1);
  (void)SSL_do_handshake(client_.get());
  (void)SSL_do_handshake(server_.get());
  EXPECT_FALSE(slot_.expired());
  EXPECT_EQ(WaitForTheNext(), HandshakePace::kSlotTimeWhilePeerIsAwaited);
  for (int step = 0; SSL_is_init_finished(server_.get()) == 0; ++step) {
    ASSERT_LT(step, 10);
    (void)SSL_do_handshake(client_.get());
    (void)SSL_do_handshake(server_.get());
  }
  EXPECT_TRUE(slot_.expired());
}

TEST_P(HandshakeSlotTest, AConnectionThatEndsInItsHandshakeEndsItsSlot) {
  (void)SSL_do_handshake(client_.get());
  EXPECT_FALSE(slot_.expired());
  server_.reset();
  EXPECT_TRUE(slot_.expired());
  EXPECT_EQ(WaitForTheNext(), Duration(0));
}

INSTANTIATE_TEST_SUITE_P(Versions, HandshakeSlotTest, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& version) { return version.param == TLS1_2_VERSION ? "Tls12" : "Tls13"; });
INSTANTIATE_TEST_SUITE_P(Tls13, HandshakeRetryTest, ::testing::Values(TLS1_3_VERSION));

}  // namespace
}  // namespace deut
