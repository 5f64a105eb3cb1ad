#include "protocol/connections/authorization.h"

#include <string>
#include <vector>

#include "common/base/concat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/wire/data_component.pb.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.pb.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

const std::vector<Role> kTcRoles = {Role::kReader, Role::kClient, Role::kAdmin};

Authorizer Rights(const std::string& text) {
  auto grants = Authorizer::ParseRights("rights", text, {Role::kReader, Role::kClient, Role::kAdmin, Role::kTc});
  EXPECT_TRUE(grants.ok()) << grants.status().ToString();
  return Authorizer(*std::move(grants));
}

constexpr std::string_view kSession = "/deuteronomy.v1.TransactionService/Session";
constexpr std::string_view kDropTable = "/deuteronomy.v1.TransactionService/DropTable";
constexpr std::string_view kHello = "/deuteronomy.v1.DataComponent/Hello";
constexpr std::string_view kHealth = "/grpc.health.v1.Health/Check";

TEST(AuthorizationTest, EveryCallOfBothServicesTakesARole) {
  for (const google::protobuf::FileDescriptor* file :
       {wire::HelloRequest::descriptor()->file(), wire::OneShotCalls::descriptor()->file()}) {
    ASSERT_EQ(file->service_count(), 1);
    const google::protobuf::ServiceDescriptor* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path = Concat("/", service->full_name(), "/", service->method(i)->name());
      EXPECT_FALSE(RolesForCall(path).empty()) << path << " would be open to everybody with a role";
    }
  }
}

TEST(AuthorizationTest, RolesAreSeparate) {
  const Authorizer rights = Rights("app client\nreport reader\nops admin\ntcd tc\n");
  EXPECT_TRUE(rights.CheckCall(kSession, {"app"}).ok());
  EXPECT_TRUE(rights.CheckCall(kSession, {"report"}).ok());
  EXPECT_TRUE(rights.CheckCall(kDropTable, {"ops"}).ok());
  EXPECT_TRUE(rights.CheckCall(kHello, {"x", "tcd"}).ok());
  for (const auto& [path, name] :
       {std::pair{kDropTable, "app"}, std::pair{kDropTable, "report"}, std::pair{kSession, "ops"},
        std::pair{kHello, "app"}, std::pair{kHello, "ops"}, std::pair{kSession, "tcd"}, std::pair{kDropTable, "tcd"}}) {
    const Status refused = rights.CheckCall(path, {name});
    EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied) << path << " by " << name;
    EXPECT_THAT(refused.ToString(), HasSubstr(Concat("certificate refused: \"", name, "\" may not call ")));
  }
  EXPECT_THAT(rights.CheckCall(kDropTable, {"app"}).ToString(),
              HasSubstr("DropTable, which takes a name in --tls_admins"));
}

TEST(AuthorizationTest, ACommentBeginsWithAWord) {
  const Authorizer rights = Rights("app client orders#eu.   # of the shop\nurn:a#b client\n#app admin\n");
  EXPECT_TRUE(rights.Find({"app"}).May(TableAccess::kWrite, "orders#eu.x"));
  EXPECT_FALSE(rights.Find({"app"}).May(TableAccess::kWrite, "orders"));
  EXPECT_FALSE(rights.Find({"app"}).May(TableAccess::kMake, "orders#eu.x"));
  EXPECT_TRUE(rights.Find({"urn:a#b"}).Has(Role::kClient));
}

TEST(AuthorizationTest, ARightThatIsTakenAwayIsALoss) {
  AccessControl access(RealRuntime(), Rights("app client a. b.\ntcd tc\n"));
  access.Replace(Rights("tcd tc\napp client a. b.\nnew client\n"));
  EXPECT_EQ(access.losses(), 0u);
  access.Replace(Rights("app client a. b.\n"));
  EXPECT_EQ(access.losses(), 1u);
  access.Replace(Rights("app client a.\n"));
  EXPECT_EQ(access.losses(), 2u);
}

TEST(AuthorizationTest, ANameWithoutARoleMayNotEvenAskForHealth) {
  const Authorizer rights = Rights("spiffe://bank/app client\n");
  EXPECT_TRUE(rights.CheckCall(kHealth, {"spiffe://bank/app"}).ok());
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{}, {""}, {"spiffe://bank/ap"}, {"SPIFFE://bank/app"}, {"spiffe://bank/app "}}) {
    const Status refused = rights.CheckCall(kHealth, names);
    EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(refused.ToString(), HasSubstr("certificate refused"));
  }
  EXPECT_THAT(rights.CheckCall(kHealth, {"a", "b"}).ToString(), HasSubstr("[a, b]"));
}

TEST(AuthorizationTest, PrefixesLimitTables) {
  const Authorizer rights = Rights(
      "# who may what\n"
      "app client app. shared.   # two prefixes\n"
      "\tapp reader\n"
      "ops admin app.\r\n");
  const Principal app = rights.Find({"app"}), ops = rights.Find({"ops"});
  EXPECT_TRUE(app.May(TableAccess::kWrite, "app.orders"));
  EXPECT_TRUE(app.May(TableAccess::kWrite, "shared."));
  EXPECT_FALSE(app.May(TableAccess::kWrite, "apple"));
  EXPECT_FALSE(app.May(TableAccess::kWrite, "secret"));
  EXPECT_FALSE(app.May(TableAccess::kWrite, ""));
  EXPECT_FALSE(app.MayEverywhere(TableAccess::kWrite));
  EXPECT_TRUE(app.MayEverywhere(TableAccess::kRead));
  EXPECT_TRUE(app.May(TableAccess::kRead, "secret"));
  EXPECT_FALSE(app.May(TableAccess::kMake, "app.orders"));
  EXPECT_TRUE(ops.May(TableAccess::kMake, "app.orders"));
  EXPECT_FALSE(ops.May(TableAccess::kMake, "orders"));
  EXPECT_FALSE(ops.May(TableAccess::kRead, "app.orders"));
}

TEST(AuthorizationTest, LinesThatAreNoneAreRefusedByNumber) {
  const auto refused = [](const std::string& text, const std::vector<Role>& roles) {
    const auto grants = Authorizer::ParseRights("/etc/rights", text, roles);
    EXPECT_EQ(grants.status().code(), ErrorCode::kInvalidArgument);
    return grants.status().ToString();
  };
  EXPECT_THAT(refused("a client\n\nb\n", kTcRoles), HasSubstr("/etc/rights: line 3: \"b\" has no role"));
  EXPECT_THAT(refused("a root\n", kTcRoles),
              HasSubstr("\"root\" is no role here; the roles are reader, client, admin"));
  EXPECT_THAT(refused("a tc\n", kTcRoles), HasSubstr("\"tc\" is no role here"));
  EXPECT_THAT(refused("a tc x\n", {Role::kTc, Role::kAdmin}), HasSubstr("line 1"));
}

TEST(AuthorizationTest, ReplacedRightsHoldAtOnce) {
  AccessControl access(RealRuntime(), Rights("a client\n"));
  const uint64_t before = access.generation();
  EXPECT_TRUE(access.current()->CheckCall(kSession, {"a"}).ok());
  access.Replace(Rights("b client\n"));
  EXPECT_NE(access.generation(), before);
  EXPECT_EQ(access.current()->CheckCall(kSession, {"a"}).code(), ErrorCode::kPermissionDenied);
  EXPECT_TRUE(access.current()->CheckCall(kSession, {"b"}).ok());
}

}  // namespace
}  // namespace deut
