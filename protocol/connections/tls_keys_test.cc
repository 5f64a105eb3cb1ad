#include "protocol/connections/tls_keys.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "common/testing/test_points.h"
#include "protocol/connections/tls.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/test_authority.h"

namespace deut {
namespace {

class TlsKeysTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TlsIdentity> Server(testing::TestAuthority& authority) {
    return authority.Identity("server", {"server", "localhost"}, {"client"});
  }
  static bool Serves(const testing::Loopback& loopback, const std::shared_ptr<const TlsIdentity>& client) {
    return testing::Health(*loopback.Peer(client)).ok();
  }

  testing::TestAuthority before_{"ca"}, after_{"another ca"};
  const std::shared_ptr<const TlsIdentity> client_before_ = before_.Identity("client", {}, {"server"});
  const std::shared_ptr<const TlsIdentity> client_after_ = after_.Identity("client", {}, {"server"});
};

TEST_F(TlsKeysTest, HoldsWhatWasGivenLast) {
  const auto first = Server(before_), second = Server(after_);
  auto keys = TlsKeys::Create(RealRuntime(), first);
  ASSERT_TRUE(keys.ok()) << keys.status().ToString();
  EXPECT_EQ((*keys)->identity(), first);
  const auto provider = (*keys)->provider();
  ASSERT_TRUE((*keys)->Replace(second).ok());
  EXPECT_EQ((*keys)->identity(), second);
  EXPECT_EQ((*keys)->provider(), provider) << "credentials that exist already see the new certificate";
}

TEST_F(TlsKeysTest, NewHandshakesUseWhatReplacedTheOldOne) {
  testing::Loopback loopback({}, Server(before_));
  EXPECT_TRUE(Serves(loopback, client_before_));
  EXPECT_FALSE(Serves(loopback, client_after_));
  ASSERT_TRUE(loopback.keys()->Replace(Server(after_)).ok());
  EXPECT_TRUE(testing::Eventually([&] { return Serves(loopback, client_after_); }));
  EXPECT_FALSE(Serves(loopback, client_before_)) << "the old authority is not trusted any more";
}

TEST_F(TlsKeysTest, AnExchangeThatFailsHalfwayChangesNothing) {
  testing::Loopback loopback({}, Server(before_));
  ASSERT_TRUE(Serves(loopback, client_before_));
  {
    // One of the two new files finds a descriptor. A limit of 0 refuses the other one, whichever descriptors are free or become free.
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const auto limit_to = [&](rlim_t most) {
      const rlimit limit{.rlim_cur = most, .rlim_max = before.rlim_max};
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    };
    testing::SetPointHandler([&](std::string_view name) {
      if (name == "tls_keys.one_prepared") limit_to(0);
    });
    EXPECT_EQ(loopback.keys()->Replace(Server(after_)).code(), ErrorCode::kResourceExhausted);
    testing::SetPointHandler(nullptr);
    limit_to(before.rlim_cur);
  }
  // gRPC may have lacked a descriptor, too, and reads again within a second.
  ASSERT_TRUE(testing::Eventually([&] { return Serves(loopback, client_before_); }));
  const MonotonicTime until = RealRuntime().Now() + TlsKeys::kEffectiveWithin;
  while (RealRuntime().Now() < until) {
    ASSERT_FALSE(Serves(loopback, client_after_));
    ASSERT_TRUE(Serves(loopback, client_before_)) << "the authority was exchanged without the certificate";
  }
  // Nothing prevents the next replacement.
  ASSERT_TRUE(loopback.keys()->Replace(Server(after_)).ok());
  EXPECT_TRUE(testing::Eventually([&] { return Serves(loopback, client_after_); }));
}

TEST_F(TlsKeysTest, LoadReadsTheFilesAndRefusesWhatIsNotThere) {
  const testing::TempDir dir;
  const auto storage = std::move(NewSystemStorage(IoKind::kPosix, RealRuntime())).value();
  const auto issued = before_.Issue("node", {"localhost"});
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(dir.Sub(name), std::ios::binary) << content;
    return dir.Sub(name);
  };
  TlsOptions options{.cert_file = write("cert.pem", issued.cert_pem),
                     .key_file = write("key.pem", issued.key_pem),
                     .ca_file = write("ca.pem", before_.ca_pem()),
                     .allow = {"peer"}};
  const auto keys = TlsKeys::Load(RealRuntime(), options, *storage);
  ASSERT_TRUE(keys.ok()) << keys.status().ToString();
  EXPECT_EQ((*keys)->identity()->ca_pem, before_.ca_pem());
  options.key_file = dir.Sub("absent.pem");
  const auto refused = TlsKeys::Load(RealRuntime(), options, *storage);
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.status().ToString().find(options.key_file), std::string::npos);
}

}  // namespace
}  // namespace deut
