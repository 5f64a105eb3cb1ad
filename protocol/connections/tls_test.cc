#include "protocol/connections/tls.h"

#include <fstream>
#include <memory>
#include <string>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/testing/test_authority.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    const auto issued = authority_.Issue("node", {"node.example.com"});
    options_ = TlsOptions{.cert_file = Write("cert.pem", issued.cert_pem),
                          .key_file = Write("key.pem", issued.key_pem),
                          .ca_file = Write("ca.pem", authority_.ca_pem()),
                          .allow = {"peer"}};
  }

  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_.Sub(name), std::ios::binary) << content;
    return dir_.Sub(name);
  }

  std::string Error() {
    const auto identity = LoadTls(options_, *storage_);
    EXPECT_FALSE(identity.ok());
    return identity.status().ToString();
  }

  testing::TempDir dir_;
  testing::TestAuthority authority_{"ca"};
  const std::unique_ptr<Storage> storage_ = std::move(NewSystemStorage(IoKind::kPosix, RealRuntime())).value();
  TlsOptions options_;
};

TEST_F(TlsTest, LoadsWhatBelongsTogether) {
  const auto identity = LoadTls(options_, *storage_);
  ASSERT_TRUE(identity.ok()) << identity.status().ToString();
  EXPECT_EQ((*identity)->ca_pem, authority_.ca_pem());
  EXPECT_EQ((*identity)->allow, std::vector<std::string>{"peer"});
  EXPECT_FALSE(TlsOptions().any());
}

TEST_F(TlsTest, NamesMissingFlags) {
  options_.key_file.clear();
  options_.allow.clear();
  EXPECT_TRUE(options_.any());
  EXPECT_THAT(Error(), HasSubstr("missing: --tls_key, --tls_allow"));
}

TEST_F(TlsTest, NamesUnreadableFiles) {
  options_.ca_file = dir_.Sub("absent.pem");
  EXPECT_THAT(Error(), HasSubstr("--tls_ca " + options_.ca_file));
}

TEST_F(TlsTest, NamesFilesThatAreNotWhatTheyShouldBe) {
  const TlsOptions good = options_;
  options_.cert_file = Write("rubbish.pem", "rubbish");
  EXPECT_THAT(Error(), HasSubstr("--tls_cert " + options_.cert_file + ": holds no certificate"));
  options_ = good;
  options_.cert_file = good.key_file;
  EXPECT_THAT(Error(), HasSubstr("--tls_cert"));
  options_ = good;
  options_.key_file = good.cert_file;
  EXPECT_THAT(Error(), HasSubstr("--tls_key " + options_.key_file + ": holds no private key"));
  options_ = good;
  options_.ca_file = Write("empty.pem", "");
  EXPECT_THAT(Error(), HasSubstr("--tls_ca"));
  options_ = good;
  options_.ca_file = Write("huge.pem", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(Error(), HasSubstr("--tls_ca"));
  options_ = good;
  options_.key_file = Write("other.pem", authority_.Issue("other", {}).key_pem);
  EXPECT_THAT(Error(), HasSubstr("is not the key of --tls_cert"));
}

TEST_F(TlsTest, ABundleThatIsCutOffAnywhereIsRefused) {
  testing::TestAuthority next("next");
  const std::string first = authority_.ca_pem(), second = next.ca_pem();
  Write("ca.pem", first + second);
  ASSERT_TRUE(LoadTls(options_, *storage_).ok());
  // Without its last bytes, OpenSSL still accepts the line of dashes at the end.
  for (size_t bytes = 1; bytes + 7 < second.size(); ++bytes) {
    Write("ca.pem", first + second.substr(0, bytes));
    ASSERT_FALSE(LoadTls(options_, *storage_).ok()) << bytes << " bytes of the second certificate";
  }
  EXPECT_THAT(Error(), HasSubstr("--tls_ca " + options_.ca_file + ": certificate 2 of the file is damaged or cut off"));
  std::string damaged = second;
  damaged[damaged.size() / 2] ^= 1;
  damaged[damaged.size() / 2 + 1] = '*';
  Write("ca.pem", first + damaged);
  EXPECT_THAT(Error(), HasSubstr("certificate 2 of the file is damaged"));
  // A chain is checked as completely as a bundle.
  const auto issued = authority_.Issue("node", {});
  Write("key.pem", issued.key_pem);
  Write("ca.pem", first);
  Write("cert.pem", issued.cert_pem + first.substr(0, first.size() / 2));
  EXPECT_THAT(Error(), HasSubstr("--tls_cert " + options_.cert_file + ": certificate 2"));
}

TEST_F(TlsTest, OneAllowedNameIsEnough) {
  TlsIdentity identity;
  identity.allow = {"a", "b.example.com"};
  EXPECT_TRUE(CheckPeerNames(identity, "the client", {"x", "b.example.com"}).ok());
  const Status refused = CheckPeerNames(identity, "the client", {"x", "A"});
  EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.ToString(), HasSubstr("the client's certificate carries the names [x, A]"));
  EXPECT_EQ(CheckPeerNames(identity, "the client", {}).code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(CheckPeerNames(identity, "the client", {""}).code(), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace deut
